/* What the product drivers share: a weight resolved to its kernels, activations prepared for it, and the
 * loop over rows and tokens that keeps a result independent of how work is cut. */
#ifndef LG_WEIGHTS_H
#define LG_WEIGHTS_H

#include "lg_blocks.h"
#include "lg_pool.h"

/* One matrix or stack. In exact mode kernel takes decoded rows and decode makes them. */
typedef struct {
    const uint8_t *data;
    const lg_kernel *kernel;
    lg_decode_fn decode; /* NULL: kernel reads the stored row */
    int64_t cols, row_bytes;
    int family; /* what kernel wants of the activations */
} lg_weight;

/* Activation rows in the form of one family; free with lg_acts_free. */
typedef struct {
    lg_row *rows;
    void *memory;
} lg_acts;

/* NULL when the instruction set is absent. */
const lg_kernel_set *lg_kernels_of(int isa);

int lg_weight_init(lg_weight *weight, const lg_kernel_set *set, int exact, int type, const void *data,
                   int64_t cols);

/* x [count, cols]; also runs on the pool. */
int lg_acts_init(lg_acts *acts, lg_pool *pool, const lg_kernel_set *set, int family, const float *x,
                 int64_t count, int64_t cols);
void lg_acts_free(lg_acts *acts);

/* Scratch memory, a piece per worker, each at a multiple of 64. */
typedef struct {
    void *memory;
    uint8_t *first;
    int64_t bytes;
} lg_scratch;

/* What lg_rows_times needs of one piece for up to `tokens` tokens; 0 when it needs none. */
int64_t lg_scratch_bytes(const lg_weight *weight, int64_t tokens);
/* LG_OK or LG_NO_MEMORY. Free with lg_scratch_free. */
int lg_scratch_init(lg_scratch *scratch, int64_t bytes, int threads);
void lg_scratch_free(lg_scratch *scratch);
void *lg_scratch_of(const lg_scratch *scratch, int worker);

/* y[t][at + r] = row first + r of the weight times x[t], r in [0, count). scratch is this worker's. */
void lg_rows_times(const lg_weight *weight, int64_t first, int64_t count, const lg_row *x, int64_t tokens,
                   float *const *y, int64_t at, void *scratch);

/* Rows one task takes: about 256 KiB of weights, as what is fetched beyond its end is lost, and enough tasks for all
 * threads; whole panels if any. */
int64_t lg_chunk_rows(const lg_weight *weight, int64_t rows, int threads);

#endif
