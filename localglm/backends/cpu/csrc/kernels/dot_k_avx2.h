/* K-type super-blocks to vectors; the layouts are those of dot_k_unpack.h. */
#ifndef LG_DOT_K_AVX2_H
#define LG_DOT_K_AVX2_H

#include "dot_avx2.h"
#include "dot_k_unpack.h"

/* Eight bytes, one per 32 weights, as the 16 scales of an lg_vector256. */
LG_INLINE __m256i scales_of_pairs(uint64_t bytes) {
    return _mm256_broadcastsi128_si256(_mm_cvtepu8_epi16(_mm_cvtsi64_si128((long long)bytes)));
}

/* Sixteen bytes in group order to even groups, then odd ones. */
LG_INLINE __m128i even_then_odd(__m128i bytes) {
    return _mm_shuffle_epi8(bytes, _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
}

/* Bits `from` .. of every byte moved to `to`; mask keeps them in place first. */
LG_INLINE __m256i move_bits(__m256i v, int mask, int from, int to) {
    v = _mm256_and_si256(v, _mm256_set1_epi8((char)mask));
    return from > to ? _mm256_srli_epi16(v, from - to) : _mm256_slli_epi16(v, to - from);
}

LG_INLINE void nibbles_of_pairs(const uint8_t *p, __m256i *u) {
    for (int c = 0; c < 4; c++) {
        __m256i bytes = load256(p + 32 * c);
        u[2 * c] = _mm256_and_si256(bytes, _mm256_set1_epi8(15));
        u[2 * c + 1] = move_bits(bytes, 0xf0, 4, 0);
    }
}

LG_INLINE void crumbs(const uint8_t *p, __m256i *u) {
    for (int j = 0; j < 8; j++) u[j] = move_bits(load256(p + j / 4 * 32), 3 << (j % 4 * 2), j % 4 * 2, 0);
}

LG_INLINE void vector_q2_k(const uint8_t *p, lg_vector256 *out) {
    __m128i bytes = even_then_odd(load128(p)), low = _mm_set1_epi8(15);
    out->d = lg_load16(p + 80);
    out->m = lg_load16(p + 82);
    out->scale = _mm256_cvtepu8_epi16(_mm_and_si128(bytes, low));
    out->min = _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(bytes, 4), low));
    crumbs(p + 16, out->u);
}

LG_INLINE void vector_q3_k(const uint8_t *p, lg_vector256 *out) {
    uint64_t low, high;
    __m256i mask = load256(p);
    scales_q3_k(p + 96, &low, &high);
    __m128i bytes = even_then_odd(_mm_set_epi64x((long long)high, (long long)low));
    out->d = lg_load16(p + 108);
    out->scale = _mm256_sub_epi16(_mm256_cvtepu8_epi16(bytes), _mm256_set1_epi16(32));
    out->bias = _mm256_mullo_epi16(out->scale, _mm256_set1_epi16(-4));
    crumbs(p + 32, out->u);
    for (int j = 0; j < 8; j++) out->u[j] = _mm256_or_si256(out->u[j], move_bits(mask, 1 << j, j, 2));
}

LG_INLINE void vector_pairs(const uint8_t *p, lg_vector256 *out) {
    uint64_t scales, minima;
    out->d = lg_load16(p);
    out->m = lg_load16(p + 2);
    scales_and_minima(p + 4, &scales, &minima);
    out->scale = scales_of_pairs(scales);
    out->min = scales_of_pairs(minima);
}

LG_INLINE void vector_q4_k(const uint8_t *p, lg_vector256 *out) {
    vector_pairs(p, out);
    nibbles_of_pairs(p + 16, out->u);
}

LG_INLINE void vector_q5_k(const uint8_t *p, lg_vector256 *out) {
    __m256i fifth = load256(p + 16);
    vector_pairs(p, out);
    nibbles_of_pairs(p + 48, out->u);
    for (int j = 0; j < 8; j++) out->u[j] = _mm256_or_si256(out->u[j], move_bits(fifth, 1 << j, j, 4));
}

LG_INLINE void vector_q6_k(const uint8_t *p, lg_vector256 *out) {
    out->d = lg_load16(p + 208);
    out->scale = _mm256_cvtepi8_epi16(even_then_odd(load128(p + 192)));
    out->bias = _mm256_mullo_epi16(out->scale, _mm256_set1_epi16(-32));
    for (int j = 0; j < 8; j++) {
        int low = j % 4 / 2 * 4, high = j % 4 * 2;
        __m256i four = move_bits(load256(p + j / 4 * 64 + j % 2 * 32), 15 << low, low, 0);
        __m256i two = move_bits(load256(p + 128 + j / 4 * 32), 3 << high, high, 4);
        out->u[j] = _mm256_or_si256(four, two);
    }
}

#endif
