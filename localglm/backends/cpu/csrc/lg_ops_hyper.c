/* Exported ops of hyper-connections. */
#include "lg_ops.h"

enum { CHUNK = 64 }; /* tokens normalised together; bounds the scratch memory */

static int mix_chunk(lg_pool *pool, int isa, int exact, int type, const void *fn, lg_norm_args norm,
                     lg_hyper_args a, int64_t tokens, float *mix) {
    const int64_t n = a.s * a.d;
    int status = lg_dispatch(pool, isa, LG_TASKS(lg_unit_rms_task), &norm, tokens, 1);
    if (status != LG_OK) return status;
    status = lg_matmul(pool, isa, exact, type, fn, a.s * (2 + a.s), n, norm.out, tokens, mix);
    if (status != LG_OK) return status;
    return lg_dispatch(pool, isa, LG_TASKS(lg_hyper_mix_task), &a, tokens, lg_grain(n));
}

LG_EXPORT int lg_hyper_pre(lg_pool *pool, int isa, int exact, int type, const void *fn, const float *streams,
                           const float *base, const float *scale, float *input, float *post, float *comb,
                           int64_t tokens, int64_t s, int64_t d, int rounds, float epsilon,
                           float norm_epsilon) {
    if (s < 1 || s > LG_MAX_STREAMS || d < 1) return LG_BAD_SHAPE;
    const int64_t chunk = tokens < CHUNK ? tokens : CHUNK, n = s * d, mixes = s * (2 + s);
    float *unit = malloc((size_t)(chunk * (n + mixes)) * sizeof *unit);
    if (!unit) return LG_NO_MEMORY;
    float *mix = unit + chunk * n;
    int status = LG_OK;
    for (int64_t t = 0; t < tokens && status == LG_OK; t += CHUNK) {
        lg_norm_args norm = {streams + t * n, NULL, NULL, NULL, unit, n, norm_epsilon};
        lg_hyper_args a = {streams + t * n, mix, base, scale, input + t * d, post + t * s, comb + t * s * s,
                           s, d, rounds, epsilon};
        status = mix_chunk(pool, isa, exact, type, fn, norm, a, tokens - t < CHUNK ? tokens - t : CHUNK, mix);
    }
    free(unit);
    return status;
}

LG_EXPORT int lg_hyper_post(lg_pool *pool, int isa, const float *y, const float *streams, const float *post,
                            const float *comb, float *out, int64_t tokens, int64_t s, int64_t d) {
    lg_streams_args a = {y, streams, post, comb, out, s, d};
    return lg_dispatch(pool, isa, LG_TASKS(lg_hyper_post_task), &a, tokens, lg_grain(s * d));
}

LG_EXPORT int lg_stream_mean(lg_pool *pool, int isa, const float *streams, float *out, int64_t tokens,
                             int64_t s, int64_t d) {
    lg_streams_args a = {NULL, streams, NULL, NULL, out, s, d};
    return lg_dispatch(pool, isa, LG_TASKS(lg_stream_mean_task), &a, tokens, lg_grain(s * d));
}
