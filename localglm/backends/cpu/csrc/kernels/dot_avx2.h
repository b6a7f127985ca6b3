/* Row products with AVX2. Eight block sums become one vector, so that the float steps of section 3 run for
 * eight blocks at once.
 *
 * Weights are held as unsigned bytes u for the unsigned-by-signed multiply, in one of three ways:
 *   plain   the weight is u;
 *   biased  the weight is u - c; -c * scale * (sum of x) is added through the sums kept with x;
 *   signed  the weight is u with the sign of the byte s, which is given to x instead.
 * The multiply adds two neighbours in 16 bits with saturation. It never saturates here: u <= 128 in every
 * type (-128 of Q8_0 is the largest magnitude) and |x| <= 127 by section 1, so a pair is at most
 * 2 * 128 * 127 = 32512 < 32767. The next multiply, by 16-bit scales of magnitude <= 128, adds pairs in 32
 * bits: at most 2 * 32512 * 128 in each of the eight steps of a lane, far below 2^31. */
#ifndef LG_DOT_AVX2_H
#define LG_DOT_AVX2_H

#include <immintrin.h>

#include "dot_portable.h"

/* What a super-block says about all its weights. Scales, biases and minima are 16 int16: groups 0, 2, .., 14,
 * then 1, 3, .., 15, the order of lg_row.sum. Types that compute their sign bits keep them here. */
typedef struct {
    __m256i scale, bias, min;
    uint16_t d, m;
    uint8_t signs[32];
    uint16_t index[64];
    _Alignas(32) uint8_t codes[2][32]; /* LG_LOOKED_UP: signs as signs_and_scales makes them */
    int32_t pairs[8]; /* and scales of 32 weights, twice 16 bits */
} lg_head256;

/* 32 weights in order, and the scale of all pairs of them for types that say LG_LOOKED_UP. */
typedef struct {
    __m256i u, s, scale;
} lg_part;

typedef struct {
    __m256i u, s;
    uint16_t d, m;
} lg_vector32;

/* Weights 32 j .. 32 j + 31 are made where they are used, so that they stay in registers. */
typedef void (*lg_head_fn)(const uint8_t *block, lg_head256 *head);
typedef lg_part (*lg_part_fn)(const uint8_t *block, const lg_head256 *head, int j);
typedef void (*lg_vector_unpack32)(const uint8_t *block, lg_vector32 *out);

/* Rows are fetched ahead in two steps: from memory two pages ahead, because the processor's own prefetching stops at
 * the end of a page, into the second cache, which has more requests under way than the first; then near their use. */
enum { FAR_BYTES = 8192, NEAR_BYTES = 2048 };

LG_INLINE void fetch_far_and_near(const uint8_t *block, int bytes) {
    for (int at = 0; at < bytes; at += 64) {
        _mm_prefetch((const char *)block + FAR_BYTES + at, _MM_HINT_T1);
        _mm_prefetch((const char *)block + NEAR_BYTES + at, _MM_HINT_T0);
    }
}

LG_INLINE __m256i load256(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
LG_INLINE __m128i load128(const void *p) { return _mm_loadu_si128((const __m128i *)p); }

LG_INLINE __m256 halves8(const uint16_t *h) { return _mm256_cvtph_ps(load128(h)); }

/* Lane k of the result is the sum of the lanes of v[k]. */
LG_INLINE __m256i add_lanes8(const __m256i *v) {
    __m256i a = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    __m256i b = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

LG_INLINE int32_t add_lanes(__m256i v) {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_hadd_epi32(s, s);
    return _mm_cvtsi128_si32(_mm_hadd_epi32(s, s));
}

LG_INLINE __m256i multiply32(__m256i u, __m256i s, const int8_t *q, int flags) {
    __m256i x = load256(q);
    return _mm256_maddubs_epi16(u, flags & LG_SIGNED ? _mm256_sign_epi8(x, s) : x);
}

/* Block b against each token: vectors whose lanes add up to S, and to M for types with minima. */
LG_INLINE void multiply256(const uint8_t *block, const lg_head256 *head, int64_t b, const lg_row *x, __m256i *s,
                           __m256i *m, int tokens, int flags, lg_part_fn part) {
    for (int t = 0; t < tokens; t++) {
        __m256i sum = flags & (LG_BIASED | LG_HAS_MIN) ? load256(x[t].sum + 16 * b) : _mm256_setzero_si256();
        s[t] = flags & LG_BIASED ? _mm256_madd_epi16(head->bias, sum) : _mm256_setzero_si256();
        if (flags & LG_HAS_MIN) m[t] = _mm256_madd_epi16(head->min, sum);
    }
#pragma clang loop unroll(full)
    for (int j = 0; j < 8; j++) {
        const __m256i pick = _mm256_set1_epi16((short)(2 * j | (2 * j + 1) << 8));
        lg_part w = part(block, head, j); /* groups 2 j and 2 j + 1 */
        __m256i scale = flags & LG_LOOKED_UP ? w.scale : _mm256_shuffle_epi8(head->scale, pick);
        for (int t = 0; t < tokens; t++) {
            __m256i pairs = multiply32(w.u, w.s, x[t].q + 256 * b + 32 * j, flags);
            s[t] = _mm256_add_epi32(s[t], _mm256_madd_epi16(pairs, scale));
        }
    }
}

/* Blocks b .. b + 7 into the partials of each token. */
LG_INLINE void super8(const uint8_t *row, int64_t b, const lg_row *x, __m256 *partials, int tokens,
                      lg_form256 form, lg_head_fn read_head, lg_part_fn part) {
    __m256i s[LG_TILE][8], m[LG_TILE][8];
    uint16_t halves[8], minima[8];
#pragma clang loop unroll(disable)
    for (int k = 0; k < 8; k++) {
        const uint8_t *block = row + (b + k) * form.bytes;
        if (tokens == 1) fetch_far_and_near(block, form.bytes);
        __m256i block_s[LG_TILE], block_m[LG_TILE];
        lg_head256 head;
        read_head(block, &head);
        halves[k] = head.d;
        if (form.flags & LG_HAS_MIN) minima[k] = head.m;
        multiply256(block, &head, b + k, x, block_s, block_m, tokens, form.flags, part);
        for (int t = 0; t < tokens; t++) {
            s[t][k] = block_s[t];
            if (form.flags & LG_HAS_MIN) m[t][k] = block_m[t];
        }
    }
    __m256 d = _mm256_mul_ps(halves8(halves), _mm256_set1_ps(form.factor));
    for (int t = 0; t < tokens; t++) {
        __m256 dx = _mm256_loadu_ps(x[t].d + b);
        partials[t] = sum_super8(partials[t], _mm256_mul_ps(d, dx), add_lanes8(s[t]));
        if (form.flags & LG_HAS_MIN)
            partials[t] = sum_minimum8(partials[t], _mm256_mul_ps(halves8(minima), dx), add_lanes8(m[t]));
    }
}

/* A block behind the last whole group of eight. */
LG_INLINE void super_rest(const uint8_t *row, int64_t b, const lg_row *x, float partials[][8], int tokens,
                          lg_form256 form, lg_head_fn read_head, lg_part_fn part) {
    const uint8_t *block = row + b * form.bytes;
    __m256i s[LG_TILE], m[LG_TILE];
    lg_head256 head;
    read_head(block, &head);
    multiply256(block, &head, b, x, s, m, tokens, form.flags, part);
    float d = lg_half(head.d) * form.factor;
    for (int t = 0; t < tokens; t++) {
        float dx = x[t].d[b];
        sum_super(partials[t], b, d * dx, add_lanes(s[t]));
        if (form.flags & LG_HAS_MIN) sum_minimum(partials[t], b, lg_half(head.m) * dx, add_lanes(m[t]));
    }
}

LG_INLINE void avx2_super(const uint8_t *row, int64_t n, const lg_row *x, float *y, int tokens, lg_form256 form,
                          lg_head_fn read_head, lg_part_fn part) {
    __m256 partials[LG_TILE];
    float stored[LG_TILE][8];
    int64_t blocks = n / 256, whole = blocks / 8 * 8;
    for (int t = 0; t < tokens; t++) partials[t] = _mm256_setzero_ps();
    for (int64_t b = 0; b < whole; b += 8) super8(row, b, x, partials, tokens, form, read_head, part);
    for (int t = 0; t < tokens; t++) _mm256_storeu_ps(stored[t], partials[t]);
    for (int64_t b = whole; b < blocks; b++) super_rest(row, b, x, stored, tokens, form, read_head, part);
    for (int t = 0; t < tokens; t++) y[t] = sum_finish(stored[t]);
}

/* Run r of eight whole 32-value blocks. */
LG_INLINE void run8(const uint8_t *row, int64_t r, const lg_row *x, float partials[][8], int tokens,
                    lg_form32 form, lg_vector_unpack32 unpack) {
    lg_vector32 w[8];
    uint16_t halves[8], minima[8];
    if (tokens == 1) fetch_far_and_near(row + 8 * r * form.bytes, 8 * form.bytes);
#pragma clang loop unroll(full)
    for (int k = 0; k < 8; k++) {
        unpack(row + (8 * r + k) * form.bytes, &w[k]);
        halves[k] = w[k].d;
        if (form.flags & LG_HAS_MIN) minima[k] = w[k].m;
    }
    __m256 d = halves8(halves), m = form.flags & LG_HAS_MIN ? halves8(minima) : d;
#pragma clang loop unroll(disable)
    for (int t = 0; t < tokens; t++) {
        __m256i s[8];
#pragma clang loop unroll(full)
        for (int k = 0; k < 8; k++) {
            __m256i pairs = multiply32(w[k].u, w[k].s, x[t].q + 256 * r + 32 * k, form.flags);
            s[k] = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
        }
        __m256 dx = _mm256_loadu_ps(x[t].d + 8 * r);
        __m256i sum = _mm256_cvtepi16_epi32(load128(x[t].sum + 8 * r)), total = add_lanes8(s);
        if (form.flags & LG_BIASED)
            total = _mm256_sub_epi32(total, _mm256_mullo_epi32(sum, _mm256_set1_epi32(form.centre)));
        __m256 p = _mm256_mul_ps(_mm256_mul_ps(d, dx), _mm256_cvtepi32_ps(total));
        if (form.flags & LG_HAS_MIN)
            p = _mm256_fmadd_ps(_mm256_mul_ps(m, dx), _mm256_cvtepi32_ps(sum), p);
        sum_run8(partials[t], r, p);
    }
}

/* The last run of a row when it has fewer than eight blocks. */
LG_INLINE void run_rest(const uint8_t *row, int64_t r, int64_t blocks, const lg_row *x, float partials[][8],
                        int tokens, lg_form32 form, lg_vector_unpack32 unpack) {
    float p[LG_TILE][8] = {{0.0f}};
    for (int64_t b = 8 * r; b < blocks; b++) {
        lg_vector32 w;
        unpack(row + b * form.bytes, &w);
        for (int t = 0; t < tokens; t++) {
            __m256i pairs = multiply32(w.u, w.s, x[t].q + 32 * b, form.flags);
            int32_t s = add_lanes(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
            if (form.flags & LG_BIASED) s -= form.centre * x[t].sum[b];
            float value = (lg_half(w.d) * x[t].d[b]) * (float)s;
            if (form.flags & LG_HAS_MIN) value = lg_fma(lg_half(w.m) * x[t].d[b], (float)x[t].sum[b], value);
            p[t][b & 7] = value;
        }
    }
    for (int t = 0; t < tokens; t++) sum_run(partials[t], r, p[t]);
}

LG_INLINE void avx2_run32(const uint8_t *row, int64_t n, const lg_row *x, float *y, int tokens, lg_form32 form,
                          lg_vector_unpack32 unpack) {
    float partials[LG_TILE][8] = {{0.0f}};
    int64_t blocks = n / 32, whole = blocks / 8;
    for (int64_t r = 0; r < whole; r++) run8(row, r, x, partials, tokens, form, unpack);
    if (blocks % 8) run_rest(row, whole, blocks, x, partials, tokens, form, unpack);
    for (int t = 0; t < tokens; t++) y[t] = sum_finish(partials[t]);
}

#endif
