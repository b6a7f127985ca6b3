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

LG_INLINE __m256i nibbles_of_pair(const uint8_t *p, int j) {
    return move_bits(load256(p + j / 2 * 32), 15 << (j % 2 * 4), j % 2 * 4, 0);
}

LG_INLINE __m256i crumbs_of_four(const uint8_t *p, int j) {
    return move_bits(load256(p + j / 4 * 32), 3 << (j % 4 * 2), j % 4 * 2, 0);
}

LG_INLINE lg_part plain_part(__m256i u) { return (lg_part){u, u, u}; }

LG_INLINE void head_q2_k(const uint8_t *p, lg_head256 *head) {
    __m128i bytes = even_then_odd(load128(p)), low = _mm_set1_epi8(15);
    head->d = lg_load16(p + 80);
    head->m = lg_load16(p + 82);
    head->scale = _mm256_cvtepu8_epi16(_mm_and_si128(bytes, low));
    head->min = _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(bytes, 4), low));
}

LG_INLINE lg_part part_q2_k(const uint8_t *p, const lg_head256 *head, int j) {
    (void)head;
    return plain_part(crumbs_of_four(p + 16, j));
}

LG_INLINE void head_q3_k(const uint8_t *p, lg_head256 *head) {
    uint64_t low, high;
    scales_q3_k(p + 96, &low, &high);
    __m128i bytes = even_then_odd(_mm_set_epi64x((long long)high, (long long)low));
    head->d = lg_load16(p + 108);
    head->scale = _mm256_sub_epi16(_mm256_cvtepu8_epi16(bytes), _mm256_set1_epi16(32));
    head->bias = _mm256_mullo_epi16(head->scale, _mm256_set1_epi16(-4));
}

LG_INLINE lg_part part_q3_k(const uint8_t *p, const lg_head256 *head, int j) {
    (void)head;
    return plain_part(_mm256_or_si256(crumbs_of_four(p + 32, j), move_bits(load256(p), 1 << j, j, 2)));
}

LG_INLINE void head_q4_k(const uint8_t *p, lg_head256 *head) {
    uint64_t scales, minima;
    head->d = lg_load16(p);
    head->m = lg_load16(p + 2);
    scales_and_minima(p + 4, &scales, &minima);
    head->scale = scales_of_pairs(scales);
    head->min = scales_of_pairs(minima);
}

LG_INLINE lg_part part_q4_k(const uint8_t *p, const lg_head256 *head, int j) {
    (void)head;
    return plain_part(nibbles_of_pair(p + 16, j));
}

LG_INLINE void head_q5_k(const uint8_t *p, lg_head256 *head) { head_q4_k(p, head); }

LG_INLINE lg_part part_q5_k(const uint8_t *p, const lg_head256 *head, int j) {
    (void)head;
    return plain_part(_mm256_or_si256(nibbles_of_pair(p + 48, j), move_bits(load256(p + 16), 1 << j, j, 4)));
}

LG_INLINE void head_q6_k(const uint8_t *p, lg_head256 *head) {
    head->d = lg_load16(p + 208);
    head->scale = _mm256_cvtepi8_epi16(even_then_odd(load128(p + 192)));
    head->bias = _mm256_mullo_epi16(head->scale, _mm256_set1_epi16(-32));
}

LG_INLINE lg_part part_q6_k(const uint8_t *p, const lg_head256 *head, int j) {
    int low = j % 4 / 2 * 4, high = j % 4 * 2;
    __m256i four = move_bits(load256(p + j / 4 * 64 + j % 2 * 32), 15 << low, low, 0);
    __m256i two = move_bits(load256(p + 128 + j / 4 * 32), 3 << high, high, 4);
    (void)head;
    return plain_part(_mm256_or_si256(four, two));
}

#endif
