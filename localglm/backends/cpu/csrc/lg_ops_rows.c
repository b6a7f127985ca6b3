/* Exported ops on rows and elements. Signatures: pool, instruction set, inputs, outputs, sizes, constants. */
#include "lg_ops.h"

LG_EXPORT int lg_swiglu(lg_pool *pool, int isa, const float *gate, const float *up, float *out, int64_t count,
                        int has_limit, float limit) {
    lg_pair_args a = {gate, up, out, limit, has_limit};
    return lg_dispatch(pool, isa, LG_TASKS(lg_swiglu_task), &a, count, 8192);
}

LG_EXPORT int lg_add(lg_pool *pool, int isa, const float *x, const float *y, float *out, int64_t count) {
    lg_pair_args a = {x, y, out, 0.0f, 0};
    return lg_dispatch(pool, isa, LG_TASKS(lg_add_task), &a, count, 16384);
}

LG_EXPORT int lg_sigmoid_all(lg_pool *pool, int isa, const float *x, float *out, int64_t count) {
    lg_pair_args a = {x, NULL, out, 0.0f, 0};
    return lg_dispatch(pool, isa, LG_TASKS(lg_sigmoid_task), &a, count, 8192);
}

LG_EXPORT int lg_rms_norm(lg_pool *pool, int isa, const float *x, const float *weight, float *out,
                          int64_t rows, int64_t n, float epsilon) {
    lg_norm_args a = {x, weight, NULL, NULL, out, n, epsilon};
    return lg_dispatch(pool, isa, LG_TASKS(lg_rms_norm_task), &a, rows, lg_grain(n));
}

LG_EXPORT int lg_layer_norm(lg_pool *pool, int isa, const float *x, const float *weight, const float *bias,
                            float *out, int64_t rows, int64_t n, float epsilon) {
    lg_norm_args a = {x, weight, bias, NULL, out, n, epsilon};
    return lg_dispatch(pool, isa, LG_TASKS(lg_layer_norm_task), &a, rows, lg_grain(n));
}

LG_EXPORT int lg_gated_norm(lg_pool *pool, int isa, const float *x, const float *weight, const float *gate,
                            float *out, int64_t rows, int64_t n, float epsilon) {
    lg_norm_args a = {x, weight, NULL, gate, out, n, epsilon};
    return lg_dispatch(pool, isa, LG_TASKS(lg_gated_norm_task), &a, rows, lg_grain(n));
}

LG_EXPORT int lg_store_half(lg_pool *pool, int isa, const float *rows, void *cache, int64_t count,
                            int64_t n) {
    lg_store_args a = {rows, cache, n};
    return lg_dispatch(pool, isa, LG_TASKS(lg_store_half_task), &a, count, lg_grain(n));
}

LG_EXPORT int lg_combine(lg_pool *pool, int isa, const float *rows, const float *weights, const float *shared,
                         float *out, int64_t tokens, int64_t x, int64_t d) {
    lg_combine_args a = {rows, weights, shared, out, x, d};
    return lg_dispatch(pool, isa, LG_TASKS(lg_combine_task), &a, tokens, lg_grain(x * d));
}

LG_EXPORT int lg_route(lg_pool *pool, int isa, const float *logits, const float *bias, const int32_t *forced,
                       int32_t *ids, float *weights, int64_t tokens, int64_t e, int64_t x, float scale) {
    float *scratch = malloc((size_t)lg_pool_threads(pool) * 2 * (size_t)e * sizeof *scratch);
    if (!scratch) return LG_NO_MEMORY;
    lg_route_args a = {logits, bias, forced, ids, weights, scratch, e, x, scale, LG_OK};
    int status = lg_dispatch(pool, isa, LG_TASKS(lg_route_task), &a, tokens, 8);
    free(scratch);
    return status != LG_OK ? status : a.status;
}

/* 1 when no value is infinite or NaN. */
LG_EXPORT int lg_is_finite(const float *x, int64_t count) {
    uint32_t largest = 0;
    const uint32_t *bits = (const uint32_t *)(const void *)x;
    for (int64_t i = 0; i < count; i++) {
        uint32_t size = bits[i] & 0x7fffffffu;
        largest = size > largest ? size : largest;
    }
    return largest < 0x7f800000u;
}
