/* Arguments of the float ops and their tasks. A task works on items [begin, end) of its op (rows,
 * tokens, heads: said beside each) and never depends on how the items were cut. Axis letters as in
 * model/geometry.py. */
#ifndef LG_OPS_H
#define LG_OPS_H

#include <stdlib.h>

#include "lg_isa.h"
#include "lg_pool.h"
#include "lg_products.h" /* status codes */

enum { LG_NUMERIC = 6 }; /* a NaN where a choice must be made */

#define LG_DECLARE_FOR(name, isa) void name##_##isa(void *, int64_t, int64_t, int)
#if defined(__x86_64__)
#define LG_DECLARE(name)            \
    LG_DECLARE_FOR(name, portable); \
    LG_DECLARE_FOR(name, avx2);     \
    LG_DECLARE_FOR(name, avx512)
#define LG_TASKS(name)                                              \
    ((const lg_task[LG_ISA_COUNT]){[LG_ISA_PORTABLE] = name##_portable, \
                                   [LG_ISA_AVX2] = name##_avx2,     \
                                   [LG_ISA_AVX512] = name##_avx512})
#else
#define LG_DECLARE(name)            \
    LG_DECLARE_FOR(name, portable); \
    LG_DECLARE_FOR(name, neon)
#define LG_TASKS(name) \
    ((const lg_task[LG_ISA_COUNT]){[LG_ISA_PORTABLE] = name##_portable, [LG_ISA_NEON] = name##_neon})
#endif

static inline int lg_dispatch(lg_pool *pool, int isa, const lg_task *tasks, void *context, int64_t count,
                              int64_t grain) {
    if (isa < 0 || isa >= LG_ISA_COUNT || !tasks[isa]) return LG_BAD_ISA;
    if (count > 0) lg_pool_run(pool, tasks[isa], context, count, grain > 1 ? grain : 1);
    return LG_OK;
}

/* Items per piece so that a piece touches about 16384 values. */
static inline int64_t lg_grain(int64_t values_per_item) {
    return values_per_item > 0 && values_per_item < 16384 ? 16384 / values_per_item : 1;
}

/* Items: elements. */
typedef struct {
    const float *x, *y;
    float *out;
    float limit;
    int has_limit;
} lg_pair_args;
LG_DECLARE(lg_swiglu_task);
LG_DECLARE(lg_add_task);
LG_DECLARE(lg_sigmoid_task);

/* Items: rows of n values. */
typedef struct {
    const float *x, *weight, *bias, *gate;
    float *out;
    int64_t n;
    float epsilon;
} lg_norm_args;
LG_DECLARE(lg_rms_norm_task);
LG_DECLARE(lg_layer_norm_task);
LG_DECLARE(lg_gated_norm_task);
LG_DECLARE(lg_unit_rms_task); /* no weight */

/* Items: tokens. mix [t, s(2+s)] is the product with fn. */
enum { LG_MAX_STREAMS = 8 };
typedef struct {
    const float *streams, *mix, *base, *scale;
    float *input, *post, *comb;
    int64_t s, d;
    int rounds;
    float epsilon;
} lg_hyper_args;
LG_DECLARE(lg_hyper_mix_task);

/* Items: tokens. */
typedef struct {
    const float *y, *streams, *post, *comb;
    float *out;
    int64_t s, d;
} lg_streams_args;
LG_DECLARE(lg_hyper_post_task);
LG_DECLARE(lg_stream_mean_task);

/* Items: blocks of LG_CONV_BLOCK channels. */
enum { LG_CONV_BLOCK = 128, LG_MAX_TAPS = 16 };
typedef struct {
    const float *raw, *filters;
    float *window, *out;
    int64_t tokens, channels, taps;
} lg_conv_args;
LG_DECLARE(lg_short_conv_task);

/* Items: tokens. */
typedef struct {
    const float *raw, *bias, *rate;
    float *out;
    int64_t h, k;
    float lower_bound;
} lg_decay_args;
LG_DECLARE(lg_kda_decay_task);

/* Items: heads. scratch holds LG_KDA_SCRATCH * k values per worker: three blocks and a strip of the state. */
enum { LG_KDA_BLOCK = 16, LG_KDA_SCRATCH = 3 * LG_KDA_BLOCK + 64 };
typedef struct {
    const float *query, *key, *value, *decay, *beta;
    float *state, *out, *scratch;
    int64_t tokens, h, k, v;
} lg_kda_args;
LG_DECLARE(lg_kda_scan_task);

/* Items: heads. The convolutions of query, key and value, then the scan; query, key and value of scan are not
 * read. scan.scratch holds scratch_stride values per worker. */
typedef struct {
    lg_kda_args scan;
    const float *raw[3], *filters[3];
    float *window[3];
    int64_t taps, scratch_stride;
} lg_conv_scan_args;
LG_DECLARE(lg_conv_scan_task);

/* Items: tokens times groups of heads. scratch holds scratch_stride values per worker. status becomes
 * LG_BAD_INDEX when a cell lies outside the cache. */
enum { LG_PIECE = 128, LG_MAX_GROUP = 16 };
typedef struct {
    const float *query;
    const void *latents;
    const int32_t *index, *count;
    float *out, *scratch;
    int64_t h, l, columns, capacity, group, groups, scratch_stride;
    int half, status;
    float scale;
} lg_attend_args;
LG_DECLARE(lg_mla_attend_task);

/* Items: rows of n values, written to a float32 or half-precision cache. */
typedef struct {
    const float *rows;
    void *cache;
    int64_t n;
} lg_store_args;
LG_DECLARE(lg_store_half_task);

/* Items: pools. */
typedef struct {
    const float *keys, *gates, *slot_bias;
    float *out;
    int64_t pool, i;
} lg_pool_keys_args;
LG_DECLARE(lg_pool_keys_task);

/* Items: tokens times blocks of LG_SCORE_BLOCK pools. scratch holds 8 * i values per worker. */
enum { LG_SCORE_BLOCK = 256 };
typedef struct {
    const float *query, *head_weight;
    const void *pools;
    float *out, *scratch;
    int64_t g, i, columns, blocks, first_position, pool;
    int half;
} lg_scores_args;
LG_DECLARE(lg_indexer_scores_task);

/* Items: tokens. status becomes LG_NUMERIC or LG_BAD_INDEX. */
typedef struct {
    const float *logits, *bias;
    const int32_t *forced;
    int32_t *ids;
    float *weights, *scratch;
    int64_t e, x;
    float scale;
    int status;
} lg_route_args;
LG_DECLARE(lg_route_task);

/* Items: tokens. */
typedef struct {
    const float *rows, *weights, *shared;
    float *out;
    int64_t x, d;
} lg_combine_args;
LG_DECLARE(lg_combine_task);

#endif
