/* Products of stored weights with float32 activations, as docs/design/arithmetic.md defines them.
 * Every result depends only on its row and its token: not on tokens, threads or instruction set.
 *
 * isa is an id of lg_isa.h. exact != 0 decodes the weights to float32 and takes float activations.
 * Matrices are rows of blocks without padding; stacks are matrices one after another.
 * Every function returns LG_OK or one of the codes below and then leaves y unspecified. */
#ifndef LG_PRODUCTS_H
#define LG_PRODUCTS_H

#include <stdint.h>

#include "lg_isa.h"
#include "lg_pool.h"

enum {
    LG_OK = 0,
    LG_NO_MEMORY = 1,
    LG_BAD_TYPE = 2,  /* an id without kernels */
    LG_BAD_SHAPE = 3, /* a length below 1, or not a multiple of the type's block */
    LG_BAD_INDEX = 4, /* a row or expert outside its matrix */
    LG_BAD_ISA = 5    /* an instruction set this library or processor lacks */
};

/* Bytes of a row of cols values, or 0 when the type is unknown or cols does not fit its blocks. */
LG_EXPORT int64_t lg_row_bytes(int type, int64_t cols);

/* y [count, cols] = rows ids[0..count) of w [rows, cols], decoded. */
LG_EXPORT int lg_embed(lg_pool *pool, int isa, int type, const void *w, int64_t rows, int64_t cols,
                       const int64_t *ids, int64_t count, float *y);

/* y [tokens, rows] = x [tokens, cols] times w [rows, cols] transposed. */
LG_EXPORT int lg_matmul(lg_pool *pool, int isa, int exact, int type, const void *w, int64_t rows,
                        int64_t cols, const float *x, int64_t tokens, float *y);

/* One of several products of the same activations: y [tokens, rows]. */
typedef struct {
    const void *w;
    float *y;
    int64_t rows;
    int32_t type;
} lg_product;

/* lg_matmul for each of products[0..count), whose matrices all have cols columns: activations are quantised
 * once per form that is wanted, and the threads are called once. */
LG_EXPORT int lg_matmuls(lg_pool *pool, int isa, int exact, const lg_product *products, int64_t count,
                         int64_t cols, const float *x, int64_t tokens);

/* y [tokens, heads, rows]: head h of x [tokens, heads, cols] times w [heads, rows, cols]. */
LG_EXPORT int lg_head_matmul(lg_pool *pool, int isa, int exact, int type, const void *w, int64_t heads,
                             int64_t rows, int64_t cols, const float *x, int64_t tokens, float *y);

/* Weights of the experts of a layer, an address each: gate and up [f, d], down [d, f]. An expert whose gate
 * is NULL is absent. */
typedef struct {
    const void *const *gate, *const *up, *const *down;
    int32_t gate_type, up_type, down_type, has_limit;
    int64_t experts, d, f;
    float limit; /* read when has_limit != 0 */
} lg_experts;

/* y [tokens, used, d]: for each id of ids [tokens, used], down(silu(min(gate(x), limit)) *
 * clip(up(x), -limit, limit)) with that expert's weights. NaN passes through the clamps. Rows of absent experts
 * are left as they are. */
LG_EXPORT int lg_expert_ffn(lg_pool *pool, int isa, int exact, const lg_experts *experts, const float *x,
                            const int32_t *ids, int64_t tokens, int64_t used, float *y);

/* Section 1 alone, for tests: run is 32 or 256; q [tokens, cols], d [tokens, runs of a row]. */
LG_EXPORT int lg_quantise(lg_pool *pool, int isa, int run, const float *x, int64_t tokens, int64_t cols,
                          int8_t *q, float *d);

#endif
