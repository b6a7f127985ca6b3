/* Row products with AVX-512 VNNI, VBMI and GFNI for types of few magnitudes, for one, two and four tokens.
 *
 * A cluster is eight neighbouring weights, the reach of a sign byte. Weight v of 64 clusters makes a vector: all
 * clusters of two blocks. A 128-bit lane c of it has clusters 8 c .. 8 c + 7 of the first block, then those of the
 * second one, so that four neighbouring bytes belong to one group of 32 weights and two to one of 16. Activations
 * are kept in the same order (lg_row.woven). Then a sub-scale is a whole lane: products of 32 weights add up there
 * before they are multiplied by it, signs are part of a look-up, and nothing is exchanged between lanes but the
 * bytes of the blocks.
 *
 * Weights are held as u = w + 64, 0 < u < 128: -64 * (sum of x) is added through the sums kept with x. A pair of
 * products is at most 2 * 127 * 127 = 32258, so 16 bits do not saturate. */
#ifndef LG_DOT_WOVEN_AVX512_H
#define LG_DOT_WOVEN_AVX512_H

#include "dot_avx512.h"

/* Weight v of the clusters of two blocks, and a sub-scale for each 32-bit (group of 32) or 16-bit lane (16). */
typedef struct {
    __m512i u[8], scale;
} lg_woven;

typedef void (*lg_woven_fn)(const uint8_t *first, const uint8_t *second, lg_woven *w);

/* Two blocks against each token. In every 128-bit lane of a sum two words belong to the first, two to the second.
 * Two chains of products: one would be too long to run beside those of the next pairs. */
LG_INLINE void multiply_woven(const lg_woven *w, const lg_row *x, int64_t pair, __m512i *s, int tokens, int group) {
    const __m512i centre = _mm512_set1_epi16(-64);
    __m512i bias = group == 32 ? centre : _mm512_mullo_epi16(w->scale, centre), other[MOST_TOKENS];
    for (int t = 0; t < tokens; t++) {
        s[t] = _mm512_madd_epi16(bias, load512(x[t].woven_sum + 32 * pair));
        other[t] = _mm512_setzero_si512();
    }
#pragma clang loop unroll(full)
    for (int v = 0; v < 8; v++)
        for (int t = 0; t < tokens; t++) {
            __m512i q = load512(x[t].woven + 512 * pair + 64 * v), *sum = v % 2 ? &s[t] : &other[t];
            *sum = group == 32 ? _mm512_dpbusd_epi32(*sum, w->u[v], q)
                               : add_scaled_pairs(*sum, _mm512_maddubs_epi16(w->u[v], q), w->scale);
        }
    for (int t = 0; t < tokens; t++) {
        s[t] = _mm512_add_epi32(s[t], other[t]);
        if (group == 32) s[t] = _mm512_mullo_epi32(s[t], w->scale);
    }
}

LG_INLINE __m512i even_words(__m512i a, __m512i b) {
    return _mm512_castps_si512(_mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0x88));
}

LG_INLINE __m512i odd_words(__m512i a, __m512i b) {
    return _mm512_castps_si512(_mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0xdd));
}

/* The sums of blocks 0 .. 7 from those of four pairs. */
LG_INLINE __m256i add_lanes_of_pairs(const __m512i *s) {
    __m512i low = _mm512_add_epi32(even_words(s[0], s[1]), odd_words(s[0], s[1]));
    __m512i high = _mm512_add_epi32(even_words(s[2], s[3]), odd_words(s[2], s[3]));
    return add_lane_pairs(
        _mm512_add_epi32(_mm512_shuffle_i64x2(low, high, 0x44), _mm512_shuffle_i64x2(low, high, 0xee)));
}

/* Blocks b .. b + 7 into the partials of each token. */
LG_INLINE void woven8(const uint8_t *row, int64_t b, const lg_row *x, __m256 *partials, int tokens,
                      lg_form256 form, int group, lg_woven_fn weave) {
    const uint8_t *block = row + b * form.bytes;
    __m512i s[MOST_TOKENS][4];
#pragma clang loop unroll(full)
    for (int k = 0; k < 4; k++) {
        const uint8_t *first = block + 2 * k * form.bytes;
        __m512i pair_s[MOST_TOKENS];
        lg_woven w;
        fetch_far_and_near(first, 2 * form.bytes);
        weave(first, first + form.bytes, &w);
        multiply_woven(&w, x, b / 2 + k, pair_s, tokens, group);
        for (int t = 0; t < tokens; t++) s[t][k] = pair_s[t];
    }
    __m256 d = _mm256_mul_ps(halves_of_run(block, form.bytes, 0), _mm256_set1_ps(form.factor));
    for (int t = 0; t < tokens; t++) {
        __m256 dx = _mm256_loadu_ps(x[t].d + b);
        partials[t] = sum_super8(partials[t], _mm256_mul_ps(d, dx), add_lanes_of_pairs(s[t]));
    }
}

/* One or two blocks behind the last whole group of eight. */
LG_INLINE void woven_rest(const uint8_t *row, int64_t b, int count, const lg_row *x, float partials[][8],
                          int tokens, lg_form256 form, int group, lg_woven_fn weave) {
    const uint8_t *first = row + b * form.bytes, *second = count == 2 ? first + form.bytes : first;
    float d[2] = {lg_half(lg_load16(first)) * form.factor, lg_half(lg_load16(second)) * form.factor};
    __m512i s[MOST_TOKENS];
    lg_woven w;
    weave(first, second, &w);
    multiply_woven(&w, x, b / 2, s, tokens, group);
    for (int t = 0; t < tokens; t++)
        for (int i = 0; i < count; i++) {
            int32_t sum = _mm512_mask_reduce_add_epi32(i ? 0xcccc : 0x3333, s[t]);
            sum_super(partials[t], b + i, d[i] * x[t].d[b + i], sum);
        }
}

LG_INLINE void avx512_woven(const uint8_t *row, int64_t n, const lg_row *x, float *y, int tokens,
                            lg_form256 form, int group, lg_woven_fn weave) {
    __m256 partials[MOST_TOKENS];
    float stored[MOST_TOKENS][8];
    int64_t blocks = n / 256, whole = blocks / 8 * 8;
    for (int t = 0; t < tokens; t++) partials[t] = _mm256_setzero_ps();
#pragma clang loop unroll(disable)
    for (int64_t b = 0; b < whole; b += 8) woven8(row, b, x, partials, tokens, form, group, weave);
    for (int t = 0; t < tokens; t++) _mm256_storeu_ps(stored[t], partials[t]);
#pragma clang loop unroll(disable)
    for (int64_t b = whole; b < blocks; b += 2)
        woven_rest(row, b, blocks - b > 1 ? 2 : 1, x, stored, tokens, form, group, weave);
    for (int t = 0; t < tokens; t++) y[t] = sum_finish(stored[t]);
}

#endif
