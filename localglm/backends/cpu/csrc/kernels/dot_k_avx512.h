/* K-type and 32-value blocks to vectors of 64 weights; the layouts are those of dot_k_unpack.h and
 * dot_run32_unpack.h. Types without a form of their own here take two AVX2 parts. */
#ifndef LG_DOT_K_AVX512_H
#define LG_DOT_K_AVX512_H

#include "dot_avx512.h"
#include "dot_k_avx2.h"
#include "dot_run32_avx2.h"

#define LG_PAIR_OF_HEADS(type)                                                                       \
    LG_INLINE void pair_##type(const uint8_t *first, const uint8_t *second, lg_pair512 *pair) {      \
        head_##type(first, &pair->head[0]);                                                          \
        head_##type(second, &pair->head[1]);                                                         \
    }

/* Unsigned AVX2 parts as they are. */
#define LG_PART_OF_PLAIN(type)                                                                       \
    LG_INLINE __m512i part512_##type(const uint8_t *p, const lg_pair512 *pair, int which, int j) {   \
        const lg_head256 *head = &pair->head[which];                                                 \
        return join256(part_##type(p, head, 2 * j).u, part_##type(p, head, 2 * j + 1).u);            \
    }

/* Magnitudes and signs, centred at 64. */
#define LG_PART_OF_SIGNED(type)                                                                      \
    LG_INLINE __m512i part512_##type(const uint8_t *p, const lg_pair512 *pair, int which, int j) {   \
        lg_part a = part_##type(p, &pair->head[which], 2 * j);                                       \
        lg_part b = part_##type(p, &pair->head[which], 2 * j + 1);                                   \
        __m512i w = join256(_mm256_sign_epi8(a.u, a.s), _mm256_sign_epi8(b.u, b.s));                 \
        return _mm512_add_epi8(w, _mm512_set1_epi8(64));                                             \
    }

/* Bit fields that start at bit `low` (`high`) of every byte, moved to bit `to`; the rest is mixed up. */
LG_INLINE __m512i turn_halves(__m512i v, int low, int high, int to) {
    return _mm512_rolv_epi32(v, join256(_mm256_set1_epi32((to - low) & 31), _mm256_set1_epi32((to - high) & 31)));
}

/* a | (b & mask) */
LG_INLINE __m512i or_masked(__m512i a, __m512i b, int mask) {
    return _mm512_ternarylogic_epi32(a, b, _mm512_set1_epi8((char)mask), 0xf8);
}

LG_PAIR_OF_HEADS(q2_k)
LG_PART_OF_PLAIN(q2_k)
LG_PAIR_OF_HEADS(q3_k)
LG_PART_OF_PLAIN(q3_k)
LG_PAIR_OF_HEADS(q4_k)
LG_PAIR_OF_HEADS(q5_k)
LG_PAIR_OF_HEADS(q6_k)

/* Bits of every byte moved by an 8 x 8 matrix for each half; byte 7 - i of a matrix says which make bit i. */
LG_INLINE __m512i move_halves(__m512i v, long long low, long long high) {
    return _mm512_gf2p8affine_epi64_epi8(v, join256(_mm256_set1_epi64x(low), _mm256_set1_epi64x(high)), 0);
}

LG_INLINE __m512i nibbles_of_halves(const uint8_t *p) {
    return move_halves(twice256(p), 0x0102040800000000ll, 0x1020408000000000ll);
}

LG_INLINE __m512i part512_q4_k(const uint8_t *p, const lg_pair512 *pair, int which, int j) {
    (void)pair, (void)which;
    return nibbles_of_halves(p + 16 + 32 * j);
}

LG_INLINE __m512i part512_q5_k(const uint8_t *p, const lg_pair512 *pair, int which, int j) {
    (void)pair, (void)which;
    __m512i fifth = move_halves(twice256(p + 16), 1ll << (24 + 2 * j), 1ll << (25 + 2 * j)); /* to bit 4 */
    return _mm512_or_si512(nibbles_of_halves(p + 48 + 32 * j), fifth);
}

LG_INLINE __m512i part512_q6_k(const uint8_t *p, const lg_pair512 *pair, int which, int j) {
    __m512i low = load512(p + j / 2 * 64), high = twice256(p + 128 + j / 2 * 32);
    __m512i four = _mm512_and_si512(j % 2 ? _mm512_srli_epi16(low, 4) : low, _mm512_set1_epi8(15));
    (void)pair, (void)which;
    return or_masked(four, turn_halves(high, j % 2 * 4, j % 2 * 4 + 2, 4), 0x30);
}

/* Two 16-byte pieces as their low halves, their high halves (in bits 0 to 3; the rest is left over). */
LG_INLINE __m512i nibbles_of_pieces(const uint8_t *first, const uint8_t *second) {
    __m512i both = _mm512_mask_broadcast_i64x2(_mm512_broadcast_i64x2(load128(first)), 0xf0, load128(second));
    const __m256i shift = _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4);
    return _mm512_srlv_epi32(both, join256(shift, shift));
}

LG_INLINE __m512i clean_nibbles(const uint8_t *first, const uint8_t *second) {
    return _mm512_and_si512(nibbles_of_pieces(first, second), _mm512_set1_epi8(15));
}

/* Table values of 4-bit codes plus 128; what is above the codes does not matter. */
LG_INLINE __m512i iq4_values(__m512i codes) {
    __m512i table = _mm512_broadcast_i64x2(load128(lg_kvalues_iq4nl));
    return _mm512_permutexvar_epi8(codes, _mm512_xor_si512(table, _mm512_set1_epi8((char)0x80)));
}

LG_INLINE __m512i fifth_bits512(const uint8_t *first, const uint8_t *second) {
    __mmask64 bits = lg_load32(first) | (__mmask64)lg_load32(second) << 32;
    return _mm512_maskz_set1_epi8(bits, 16);
}

LG_INLINE __m512i unpack512_q8_0(const uint8_t *a, const uint8_t *b) {
    return _mm512_xor_si512(join256(load256(a + 2), load256(b + 2)), _mm512_set1_epi8((char)0x80));
}

LG_INLINE __m512i unpack512_q4_0(const uint8_t *a, const uint8_t *b) { return clean_nibbles(a + 2, b + 2); }
LG_INLINE __m512i unpack512_q4_1(const uint8_t *a, const uint8_t *b) { return clean_nibbles(a + 4, b + 4); }

LG_INLINE __m512i unpack512_q5_0(const uint8_t *a, const uint8_t *b) {
    return _mm512_or_si512(clean_nibbles(a + 6, b + 6), fifth_bits512(a + 2, b + 2));
}

LG_INLINE __m512i unpack512_q5_1(const uint8_t *a, const uint8_t *b) {
    return _mm512_or_si512(clean_nibbles(a + 8, b + 8), fifth_bits512(a + 4, b + 4));
}

LG_INLINE __m512i unpack512_iq4_nl(const uint8_t *a, const uint8_t *b) {
    return iq4_values(nibbles_of_pieces(a + 2, b + 2));
}

#endif
