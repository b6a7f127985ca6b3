/* One row times one activation row under each order. Rows are whole multiples of 2,048 values. */
#ifndef SPIKE_MATVEC_H
#define SPIKE_MATVEC_H

#include "sums.h"

static inline float in_order(const float *p, int n) {
    float y = p[0];
    for (int j = 1; j < n; j++) y += p[j];
    return y;
}

static inline float by_tree(float *p, int n) {
    for (int h = n / 2; h >= 1; h /= 2)
        for (int j = 0; j < h; j++) p[j] += p[j + h];
    return p[0];
}

/* The orders over stored factors d_w * d_x and sums S. */
static inline float finish(int format, int order, const float *f, const int32_t *s, int blocks) {
    float p[32] = {0};
    int count = order == ORDER_D ? 32 : order == ORDER_C ? 1 : 8;
    if (order == FREE) {
        for (int b = 0; b < blocks; b++) p[0] += f[b] * (float)s[b];
        return p[0];
    }
    if (format == Q8_0 && count == 8) {
        for (int r = 0; r < blocks / 8; r++) {
            float t[8];
            for (int i = 0; i < 8; i++) t[i] = f[8 * r + i] * (float)s[8 * r + i];
            p[r & 7] += ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]));
        }
    } else {
        for (int b = 0; b < blocks; b++) {
            int j = b & (count - 1);
            p[j] = lg_fma(f[b], (float)s[b], p[j]);
        }
    }
    return order == ORDER_A || order == ORDER_C ? in_order(p, count) : by_tree(p, count);
}

/* Kept out of line, so that every order is timed with the same machine code for its sums. */
static __attribute__((noinline, unused)) void row_sums(int format, const uint8_t *w, int blocks,
                                                       operand x, const float *scale, float *f,
                                                       int32_t *s) {
    for (int b = 0; b < blocks; b++, w += BYTES[format]) {
        f[b] = weight_scale(format, w) * scale[b];
        s[b] = block_sum(format, w, x, b);
    }
}

static inline float row_portable(int format, int order, const uint8_t *w, int blocks, operand x,
                                 const float *scale) {
    float f[512];
    int32_t s[512];
    row_sums(format, w, blocks, x, scale, f, s);
    return finish(format, order, f, s, blocks);
}

#ifdef __AVX2__
static inline __m256 eight_scales(int format, const uint8_t *w) {
    short h[8]; /* inserted one by one: eight small stores before a wide load would stall */
    for (int i = 0; i < 8; i++) memcpy(h + i, w + BYTES[format] * i + (format == Q6_K ? 208 : 0), 2);
    __m256 d = _mm256_cvtph_ps(_mm_set_epi16(h[7], h[6], h[5], h[4], h[3], h[2], h[1], h[0]));
    return format == IQ2_XXS ? _mm256_mul_ps(d, _mm256_set1_ps(0.125f)) : d;
}

static inline __m256 eight_sums(int format, const uint8_t *w, operand x, int block) {
    __m256i v[8];
#pragma clang loop unroll(full)
    for (int i = 0; i < 8; i++) v[i] = lanes(format, w + BYTES[format] * i, x, block + i);
    return _mm256_cvtepi32_ps(across(v));
}

static inline __m256 free_step(int format, const uint8_t *w, operand x, const float *scale, int b,
                               __m256 acc) {
    __m256 f = _mm256_set1_ps(weight_scale(format, w) * scale[b]);
    return _mm256_fmadd_ps(f, _mm256_cvtepi32_ps(lanes(format, w, x, b)), acc);
}

/* Two blocks a turn for Q8_0 and eight for the others: the faster of the two for each. */
static inline float row_free(int format, const uint8_t *w, int blocks, operand x,
                             const float *scale) {
    __m256 acc[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    const int bytes = BYTES[format];
    if (format == Q8_0)
        for (int b = 0; b < blocks; b += 2, w += 2 * bytes) {
            acc[0] = free_step(format, w, x, scale, b, acc[0]);
            acc[1] = free_step(format, w + bytes, x, scale, b + 1, acc[1]);
        }
    else
        for (int b = 0; b < blocks; b += 8, w += 8 * bytes)
#pragma clang loop unroll(full)
            for (int i = 0; i < 8; i++)
                acc[i & 1] = free_step(format, w + bytes * i, x, scale, b + i, acc[i & 1]);
    float p[8];
    _mm256_storeu_ps(p, _mm256_add_ps(acc[0], acc[1]));
    return by_tree(p, 8);
}

/* Orders A and B of 32-value types: eight runs of eight products become one vector of trees. */
static inline __m256 partials_by_runs(const uint8_t *w, int blocks, operand x, const float *scale) {
    __m256 acc = _mm256_setzero_ps();
    for (int b = 0; b < blocks; b += 64) {
        __m256 p[8];
        for (int r = 0; r < 8; r++, w += 8 * BYTES[Q8_0]) {
            __m256 f = _mm256_mul_ps(eight_scales(Q8_0, w), _mm256_loadu_ps(scale + b + 8 * r));
            p[r] = _mm256_mul_ps(f, eight_sums(Q8_0, w, x, b + 8 * r));
        }
        acc = _mm256_add_ps(acc, across_ps(p));
    }
    return acc;
}

static inline float row_avx2(int format, int order, const uint8_t *w, int blocks, operand x,
                             const float *scale) {
    __m256 acc[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                     _mm256_setzero_ps()};
    float p[32], y = 0.0f;
    if (order == FREE) return row_free(format, w, blocks, x, scale);
    if (format == Q8_0 && order <= ORDER_B) {
        acc[0] = partials_by_runs(w, blocks, x, scale);
    } else {
        for (int b = 0; b < blocks; b += 8, w += 8 * BYTES[format]) {
            __m256 s = eight_sums(format, w, x, b);
            __m256 f = _mm256_mul_ps(eight_scales(format, w), _mm256_loadu_ps(scale + b));
            if (order != ORDER_C) {
                int k = order == ORDER_D ? b / 8 & 3 : 0;
                acc[k] = _mm256_fmadd_ps(f, s, acc[k]);
                continue;
            }
            float fs[8], ss[8];
            _mm256_storeu_ps(fs, f);
            _mm256_storeu_ps(ss, s);
            for (int i = 0; i < 8; i++) y = lg_fma(fs[i], ss[i], y);
        }
    }
    if (order == ORDER_C) return y;
    for (int k = 0; k < 4; k++) _mm256_storeu_ps(p + 8 * k, acc[k]);
    if (order == ORDER_A) return in_order(p, 8);
    return by_tree(p, order == ORDER_B ? 8 : 32);
}
#endif

#endif
