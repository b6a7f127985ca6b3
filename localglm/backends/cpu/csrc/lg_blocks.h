/* Storage types, quantised activations and the interface of the product kernels. */
#ifndef LG_BLOCKS_H
#define LG_BLOCKS_H

#include <stdint.h>
#include <stddef.h>
#include <string.h>

/* Ids of the file format. */
enum {
    LG_F32 = 0, LG_F16 = 1, LG_Q4_0 = 2, LG_Q4_1 = 3, LG_Q5_0 = 6, LG_Q5_1 = 7, LG_Q8_0 = 8,
    LG_Q2_K = 10, LG_Q3_K = 11, LG_Q4_K = 12, LG_Q5_K = 13, LG_Q6_K = 14, LG_IQ2_XXS = 16,
    LG_IQ2_XS = 17, LG_IQ3_XXS = 18, LG_IQ1_S = 19, LG_IQ4_NL = 20, LG_IQ3_S = 21, LG_IQ2_S = 22,
    LG_IQ4_XS = 23, LG_IQ1_M = 29, LG_BF16 = 30, LG_TYPE_LIMIT = 31
};

/* How a type takes part in a product (docs/design/arithmetic.md, sections 1 to 4). */
enum { LG_FLOAT = 1, LG_RUN32 = 2, LG_SUPER = 3 };

typedef struct {
    int32_t values, bytes, family; /* per block; family 0 marks an id without kernels */
} lg_layout;

/* NULL for an unknown id. */
const lg_layout *lg_layout_of(int type);

/* One activation row as the kernels read it. Float types use x, the others q, d and sum.
 * sum, super-blocks: 16 int16 a block, sums over 16 values, even groups 0, 2, .., 14 then odd groups.
 * sum, runs of 32: one int16 a run.
 * woven, woven_sum: q and sum of super-blocks once more in another order, for sets that have weave. */
typedef struct {
    const float *x;
    const int8_t *q;
    const float *d;
    const int16_t *sum;
    const int8_t *woven;
    const int16_t *woven_sum;
} lg_row;

enum { LG_TILE = 8 }; /* the most tokens one pass over a weight row serves */

/* y[t] = row . x[t] for as many tokens as the kernel's name says. n is a multiple of the block's values. */
typedef void (*lg_dot_fn)(const uint8_t *row, int64_t n, const lg_row *x, float *y);
/* The float32 values of a row. */
typedef void (*lg_decode_fn)(const uint8_t *row, int64_t n, float *out);
/* Section 1 for one row. q has room for n rounded up to 256, filled with zeros. */
typedef void (*lg_quantise_fn)(const float *x, int64_t n, int8_t *q, float *d, int16_t *sum);

/* Fills woven and woven_sum, both at a multiple of 64; an odd last block is followed by one of zeros. */
typedef void (*lg_weave_fn)(const int8_t *q, const int16_t *sum, int64_t blocks, int8_t *woven, int16_t *woven_sum);

/* y[t][at + r] = row r . x[t] for count neighbouring rows and any number of tokens. room is at a multiple
 * of 64. */
typedef void (*lg_panel_fn)(const uint8_t *row, int64_t row_bytes, int64_t count, int64_t n, const lg_row *x,
                            int64_t tokens, float *const *y, int64_t at, void *room);

/* A type has eight, or else two and panel, which pays from panel_from tokens on. */
typedef struct {
    lg_dot_fn one, two, four, eight;
    lg_decode_fn decode;
    lg_panel_fn panel;
    int panel_from, panel_bytes; /* 0: lg_panel_bytes(n) */
} lg_kernel;

typedef struct {
    lg_quantise_fn run32, super;
    lg_weave_fn weave; /* NULL where no kernel reads it */
    lg_kernel types[LG_TYPE_LIMIT];
} lg_kernel_set;

/* The kernels of one instruction set, one definition per compilation of kernels/dot_table.c. */
extern const lg_kernel_set lg_kernels_portable, lg_kernels_avx2, lg_kernels_neon, lg_kernels_avx512;

/* Memory a panel of n columns needs: for 256 of them a decoded block and the offsets of eight tokens. */
static inline int64_t lg_panel_bytes(int64_t n) { return (n + 255) / 256 * (5760 + 8 * 16 * 4); }

static inline uint16_t lg_load16(const uint8_t *p) {
    uint16_t u;
    memcpy(&u, p, 2);
    return u;
}

static inline uint32_t lg_load32(const uint8_t *p) {
    uint32_t u;
    memcpy(&u, p, 4);
    return u;
}

static inline uint64_t lg_load64(const uint8_t *p) {
    uint64_t u;
    memcpy(&u, p, 8);
    return u;
}

#define LG_INLINE static inline __attribute__((always_inline))

#endif
