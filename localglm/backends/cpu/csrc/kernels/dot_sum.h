/* The order of float32 additions between blocks (section 3): the only place that knows it.
 * Scalar steps serve the portable kernels and the ends of rows, vector steps the others. */
#ifndef LG_DOT_SUM_H
#define LG_DOT_SUM_H

#include "../lg_blocks.h"
#include "../lg_math.h"

/* Super-block b into its partial. */
LG_INLINE void sum_super(float *partials, int64_t b, float dd, int32_t s) {
    partials[b & 7] = lg_fma(dd, (float)s, partials[b & 7]);
}

LG_INLINE void sum_minimum(float *partials, int64_t b, float md, int32_t m) {
    partials[b & 7] = lg_fma(-md, (float)m, partials[b & 7]);
}

/* Eight 32-value blocks of run r, p[k] = +0 for those the row lacks. */
LG_INLINE void sum_run(float *partials, int64_t r, const float *p) {
    float t = ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
    partials[r & 7] = partials[r & 7] + t;
}

LG_INLINE float sum_finish(const float *partials) {
    float y = partials[0];
    for (int j = 1; j < 8; j++) y = y + partials[j];
    return y;
}

#if defined(__AVX2__)
#include <immintrin.h>

/* Eight super-blocks b, b + 1, .. with b a multiple of 8: one step of each partial. */
LG_INLINE __m256 sum_super8(__m256 partials, __m256 dd, __m256i s) {
    return _mm256_fmadd_ps(dd, _mm256_cvtepi32_ps(s), partials);
}

LG_INLINE __m256 sum_minimum8(__m256 partials, __m256 md, __m256i m) {
    return _mm256_fnmadd_ps(md, _mm256_cvtepi32_ps(m), partials);
}

/* sum_run for a vector: each horizontal addition is one level of the same tree. */
LG_INLINE void sum_run8(float *partials, int64_t r, __m256 p) {
    p = _mm256_hadd_ps(p, p);
    p = _mm256_hadd_ps(p, p);
    __m128 t = _mm_add_ss(_mm256_castps256_ps128(p), _mm256_extractf128_ps(p, 1));
    partials[r & 7] = partials[r & 7] + _mm_cvtss_f32(t);
}

/* Eight runs r, r + 1, .. with r a multiple of 8: lane k gets the tree of run r + k. */
LG_INLINE __m256 sum_runs8(__m256 partials, const __m256 *p) {
    __m256 a = _mm256_hadd_ps(_mm256_hadd_ps(p[0], p[1]), _mm256_hadd_ps(p[2], p[3]));
    __m256 b = _mm256_hadd_ps(_mm256_hadd_ps(p[4], p[5]), _mm256_hadd_ps(p[6], p[7]));
    __m256 t = _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    return _mm256_add_ps(partials, t);
}
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>

/* sum_run for two vectors: each pairwise addition is one level of the same tree. */
LG_INLINE void sum_run8(float *partials, int64_t r, float32x4_t low, float32x4_t high) {
    float32x4_t p = vpaddq_f32(low, high);
    partials[r & 7] = partials[r & 7] + vpadds_f32(vget_low_f32(vpaddq_f32(p, p)));
}
#endif

#endif
