/* 32-value blocks to vectors; the layouts are those of dot_run32_unpack.h. */
#ifndef LG_DOT_RUN32_AVX2_H
#define LG_DOT_RUN32_AVX2_H

#include "../generated/lg_tables.h"
#include "dot_avx2.h"

/* Low halves of 16 bytes, then their high halves. */
LG_INLINE __m256i vector_nibbles(const uint8_t *p) {
    const __m256i shift = _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4);
    __m256i bytes = _mm256_broadcastsi128_si256(load128(p));
    return _mm256_and_si256(_mm256_srlv_epi32(bytes, shift), _mm256_set1_epi8(15));
}

/* All bits of byte i set where bit i of the word is. */
LG_INLINE __m256i vector_bits(uint32_t word) {
    const __m256i byte_of = _mm256_setr_epi64x(0x0000000000000000ll, 0x0101010101010101ll,
                                               0x0202020202020202ll, 0x0303030303030303ll);
    const __m256i bit_of = _mm256_set1_epi64x((long long)0x8040201008040201ull);
    __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32((int)word), byte_of);
    return _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit_of), bit_of);
}

LG_INLINE __m256i with_fifth_bits(__m256i nibbles, uint32_t word) {
    return _mm256_or_si256(nibbles, _mm256_and_si256(vector_bits(word), _mm256_set1_epi8(16)));
}

/* Table values of codes 0..15, as magnitudes and as they are. */
LG_INLINE void vector_iq4(__m256i codes, __m256i *u, __m256i *s) {
    *s = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load128(lg_kvalues_iq4nl)), codes);
    *u = _mm256_abs_epi8(*s);
}

LG_INLINE void vector_q8_0(const uint8_t *p, lg_vector32 *out) {
    out->d = lg_load16(p);
    out->s = load256(p + 2);
    out->u = _mm256_abs_epi8(out->s);
}

LG_INLINE void vector_q4_0(const uint8_t *p, lg_vector32 *out) {
    out->d = lg_load16(p);
    out->u = vector_nibbles(p + 2);
}

LG_INLINE void vector_q4_1(const uint8_t *p, lg_vector32 *out) {
    out->d = lg_load16(p);
    out->m = lg_load16(p + 2);
    out->u = vector_nibbles(p + 4);
}

LG_INLINE void vector_q5_0(const uint8_t *p, lg_vector32 *out) {
    out->d = lg_load16(p);
    out->u = with_fifth_bits(vector_nibbles(p + 6), lg_load32(p + 2));
}

LG_INLINE void vector_q5_1(const uint8_t *p, lg_vector32 *out) {
    out->d = lg_load16(p);
    out->m = lg_load16(p + 2);
    out->u = with_fifth_bits(vector_nibbles(p + 8), lg_load32(p + 4));
}

LG_INLINE void vector_iq4_nl(const uint8_t *p, lg_vector32 *out) {
    out->d = lg_load16(p);
    vector_iq4(vector_nibbles(p + 2), &out->u, &out->s);
}

#endif
