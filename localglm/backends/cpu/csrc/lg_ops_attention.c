/* Exported ops of linear attention, latent attention and its indexer. */
#include "lg_ops.h"

LG_EXPORT int lg_short_conv(lg_pool *pool, int isa, const float *raw, const float *filters, float *window,
                            float *out, int64_t tokens, int64_t channels, int64_t taps) {
    if (taps < 1 || taps > LG_MAX_TAPS) return LG_BAD_SHAPE;
    lg_conv_args a = {raw, filters, window, out, tokens, channels, taps};
    const int64_t blocks = (channels + LG_CONV_BLOCK - 1) / LG_CONV_BLOCK;
    const int64_t grain = lg_grain(tokens * LG_CONV_BLOCK);
    return tokens > 0 ? lg_dispatch(pool, isa, LG_TASKS(lg_short_conv_task), &a, blocks, grain) : LG_OK;
}

LG_EXPORT int lg_kda_decay(lg_pool *pool, int isa, const float *raw, const float *bias, const float *rate,
                           float *out, int64_t tokens, int64_t h, int64_t k, float lower_bound) {
    lg_decay_args a = {raw, bias, rate, out, h, k, lower_bound};
    return lg_dispatch(pool, isa, LG_TASKS(lg_kda_decay_task), &a, tokens, lg_grain(h * k));
}

LG_EXPORT int lg_kda_scan(lg_pool *pool, int isa, const float *query, const float *key, const float *value,
                          const float *decay, const float *beta, float *state, float *out, int64_t tokens,
                          int64_t h, int64_t k, int64_t v) {
    const size_t values = (size_t)lg_pool_threads(pool) * LG_KDA_SCRATCH * (size_t)k;
    float *scratch = malloc(values * sizeof *scratch);
    if (!scratch) return LG_NO_MEMORY;
    lg_kda_args a = {query, key, value, decay, beta, state, out, scratch, tokens, h, k, v};
    int status = lg_dispatch(pool, isa, LG_TASKS(lg_kda_scan_task), &a, h, 1);
    free(scratch);
    return status;
}

/* lg_short_conv of raw query, key and value, then lg_kda_scan of what comes out, head by head. */
LG_EXPORT int lg_conv_scan(lg_pool *pool, int isa, const float *const *raw, const float *const *filters,
                           float *const *windows, const float *decay, const float *beta, float *state,
                           float *out, int64_t tokens, int64_t h, int64_t k, int64_t v, int64_t taps) {
    if (taps < 1 || taps > LG_MAX_TAPS) return LG_BAD_SHAPE;
    const int64_t stride = LG_KDA_SCRATCH * k + LG_KDA_BLOCK * (2 * k + v) + taps * (2 * k + v);
    float *scratch = malloc((size_t)lg_pool_threads(pool) * (size_t)stride * sizeof *scratch);
    if (!scratch) return LG_NO_MEMORY;
    lg_conv_scan_args a = {
        .scan = {NULL, NULL, NULL, decay, beta, state, out, scratch, tokens, h, k, v},
        .raw = {raw[0], raw[1], raw[2]},
        .filters = {filters[0], filters[1], filters[2]},
        .window = {windows[0], windows[1], windows[2]},
        .taps = taps,
        .scratch_stride = stride,
    };
    int status = lg_dispatch(pool, isa, LG_TASKS(lg_conv_scan_task), &a, h, 1);
    free(scratch);
    return status;
}

LG_EXPORT int lg_pool_keys(lg_pool *pool, int isa, const float *keys, const float *gates,
                           const float *slot_bias, float *out, int64_t pools, int64_t slots, int64_t i) {
    lg_pool_keys_args a = {keys, gates, slot_bias, out, slots, i};
    return lg_dispatch(pool, isa, LG_TASKS(lg_pool_keys_task), &a, pools, lg_grain(slots * i));
}

LG_EXPORT int lg_indexer_scores(lg_pool *pool, int isa, const float *query, const float *head_weight,
                                const void *pools, int half, float *out, int64_t tokens, int64_t g, int64_t i,
                                int64_t columns, int64_t first_position, int64_t slots) {
    const int64_t blocks = (columns + LG_SCORE_BLOCK - 1) / LG_SCORE_BLOCK;
    float *scratch = malloc((size_t)lg_pool_threads(pool) * 8 * (size_t)i * sizeof *scratch);
    if (!scratch) return LG_NO_MEMORY;
    lg_scores_args a = {query, head_weight, pools,  out,            scratch, g,
                        i,     columns,     blocks, first_position, slots,   half};
    int status = lg_dispatch(pool, isa, LG_TASKS(lg_indexer_scores_task), &a, tokens * blocks, 1);
    free(scratch);
    return status;
}

/* Heads that share one gathered piece, an even number: fewer when there are too few items to keep every
 * thread busy. */
static int64_t heads_per_item(int64_t tokens, int64_t h, int threads) {
    int64_t group = LG_MAX_GROUP;
    while (group > 2 && tokens * ((h + group - 1) / group) < 2 * (int64_t)threads) group /= 2;
    return group;
}

static int has_valid_counts(const int32_t *count, int64_t tokens, int64_t columns) {
    for (int64_t t = 0; t < tokens; t++)
        if (count[t] < 0 || count[t] > columns) return 0;
    return 1;
}

LG_EXPORT int lg_mla_attend(lg_pool *pool, int isa, const float *query, const void *latents, int half,
                            const int32_t *index, const int32_t *count, float *out, int64_t tokens, int64_t h,
                            int64_t l, int64_t columns, int64_t capacity, float scale) {
    if (!has_valid_counts(count, tokens, columns)) return LG_BAD_SHAPE;
    const int64_t group = heads_per_item(tokens, h, lg_pool_threads(pool)), groups = (h + group - 1) / group;
    const int64_t stride = l * (half ? LG_PIECE + 3 : 3);
    float *scratch = malloc((size_t)lg_pool_threads(pool) * (size_t)stride * sizeof *scratch);
    if (!scratch) return LG_NO_MEMORY;
    lg_attend_args a = {query, latents, index, count, out, scratch, h, l, columns, capacity, group, groups,
                        stride, half, LG_OK, scale};
    int status = lg_dispatch(pool, isa, LG_TASKS(lg_mla_attend_task), &a, tokens * groups, 1);
    free(scratch);
    return status != LG_OK ? status : a.status;
}
