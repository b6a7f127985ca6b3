/* Grid types in the order of dot_woven_avx512.h; the layouts are those of dot_iq_unpack.h.
 *
 * A grid fits into registers once a value is written as its rank: 2 bits where there are three, 3 bits where there
 * are eight, 16 bits an entry at most. A look-up gives the low and the high byte of 64 entries. Together with
 * sign bits each byte is then two indices of six bits, or of four: a second look-up gives weights, sign included. */
#ifndef LG_DOT_IQ_WOVEN_AVX512_H
#define LG_DOT_IQ_WOVEN_AVX512_H

#include "../generated/lg_tables.h"
#include "dot_woven_avx512.h"

/* Where a bit of the mask is set the bit of a, elsewhere that of b. */
LG_INLINE __m512i choose_bits(__m512i mask, __m512i a, __m512i b) {
    return _mm512_ternarylogic_epi32(mask, a, b, 0xca);
}

/* The low and high bytes of 64 entries: 64 << count of them, told apart by bits[0 .. count) above the six lowest
 * of an index. A part of the table overwrites what the parts of fewer bits gave. */
LG_INLINE void look_up_ranks(const uint8_t *table, __m512i index, const __mmask64 *bits, int count, __m512i *low,
                             __m512i *high) {
    __m512i a = _mm512_permutexvar_epi8(index, load512(table));
    __m512i b = _mm512_permutexvar_epi8(index, load512(table + (64 << count)));
#pragma clang loop unroll(full)
    for (int part = 1; part < 1 << count; part++) {
        __mmask64 chosen = ~(__mmask64)0;
        for (int k = 0; k < count; k++)
            if (part >> k & 1) chosen = _kand_mask64(chosen, bits[k]);
        a = _mm512_mask_permutexvar_epi8(a, chosen, index, load512(table + 64 * part));
        b = _mm512_mask_permutexvar_epi8(b, chosen, index, load512(table + (64 << count) + 64 * part));
    }
    *low = a;
    *high = b;
}

/* The top bit of every byte. Written out: the compiler prefers comparisons, which only one unit does. */
LG_INLINE __mmask64 top_bit(__m512i v) {
    __mmask64 mask;
    __asm__("vpmovb2m %1, %0" : "=k"(mask) : "v"(v));
    return mask;
}

/* Bits 6 and 7 of every byte. */
LG_INLINE void top_bits(__m512i index, __mmask64 *bits) {
    bits[0] = top_bit(_mm512_add_epi8(index, index));
    bits[1] = top_bit(index);
}

/* Eight weights of 2-bit ranks: signs[v] has the sign bits of weights 2 v, 2 v + 1 at bits 4 and 5. An
 * index is a rank, the next rank, a sign, the next sign. */
LG_INLINE void weights_of_two_bits(__m512i low, __m512i high, const __m512i *signs, __m512i *u) {
    const __m512i ranks = _mm512_set1_epi8(0x0f);
    const __m512i four[4] = {low, _mm512_srli_epi16(low, 4), high, _mm512_srli_epi16(high, 4)};
#pragma clang loop unroll(full)
    for (int v = 0; v < 4; v++) {
        __m512i index = choose_bits(ranks, four[v], signs[v]);
        u[2 * v] = _mm512_permutexvar_epi8(index, load512(lg_two_bit_weights));
        u[2 * v + 1] = _mm512_permutexvar_epi8(index, load512(lg_two_bit_weights + 64));
    }
}

/* Blocks are eight times a word of indices and one of four sign codes and a sub-scale. */
LG_INLINE void weave_iq2_xxs(const uint8_t *first, const uint8_t *second, lg_woven *w) {
    const __m512i sevens = _mm512_set1_epi64(0x352e2720150e0700ll);
    const __m512i last_two = _mm512_set1_epi64(0x407f0000ll); /* bit 4: code bit 6; bit 5: the parity of the code */
    __m512i a = load512(first + 2), b = load512(second + 2), low, high;
    __m512i index = even_words(a, b), words = odd_words(a, b);
    __mmask64 bits[2];
    top_bits(index, bits);
    look_up_ranks(lg_iq2xxs_ranks, index, bits, 2, &low, &high);
    __m512i codes = _mm512_multishift_epi64_epi8(sevens, words);
    const __m512i signs[4] = {_mm512_slli_epi16(codes, 4), _mm512_slli_epi16(codes, 2), codes,
                              _mm512_gf2p8affine_epi64_epi8(codes, last_two, 0)};
    weights_of_two_bits(low, high, signs, w->u);
    w->scale = _mm512_or_si512(_mm512_srli_epi32(words, 27), _mm512_set1_epi32(1)); /* 2 s + 1 */
}

/* Four weights of 3-bit ranks of which each byte has two. The sign bits of weights 0 to 3 are 3, 0, 4 and 1: an index
 * is a rank and three bits of signs. */
LG_INLINE void weights_of_three_bits(const uint8_t *weights, __m512i low, __m512i high, __m512i signs, __m512i *u) {
    const __m512i lower = _mm512_set1_epi8(7);
    u[0] = _mm512_permutexvar_epi8(choose_bits(lower, low, signs), load512(weights));
    u[1] = _mm512_permutexvar_epi8(choose_bits(lower, signs, low), load512(weights + 64));
    u[2] = _mm512_permutexvar_epi8(choose_bits(lower, high, signs), load512(weights + 128));
    u[3] = _mm512_permutexvar_epi8(choose_bits(lower, signs, high), load512(weights + 192));
}

/* Bytes 0, 2, .. of 128-bit lanes and bytes 1, 3, ..: eight of the first block, then eight of the second. */
LG_INLINE void split_bytes(const uint8_t *first, const uint8_t *second, __m512i *even, __m512i *odd) {
    const __m512i split = _mm512_broadcast_i64x2(_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
    __m512i a = _mm512_shuffle_epi8(load512(first), split), b = _mm512_shuffle_epi8(load512(second), split);
    *even = _mm512_unpacklo_epi64(a, b);
    *odd = _mm512_unpackhi_epi64(a, b);
}

/* 32 bytes of each block, eight of the first, then eight of the second. */
LG_INLINE __m512i weave_bytes(const uint8_t *first, const uint8_t *second) {
    const __m512i order = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    return _mm512_permutex2var_epi64(_mm512_castsi256_si512(load256(first)), order,
                                     _mm512_castsi256_si512(load256(second)));
}

/* The same for 32 bits of each, eight by eight. */
LG_INLINE uint64_t weave_bits(uint64_t first, uint64_t second) {
    return _pdep_u64(first, 0x00ff00ff00ff00ffull) | _pdep_u64(second, 0xff00ff00ff00ff00ull);
}

/* Every second bit of both from bit `at` on. */
LG_INLINE __mmask64 weave_every_second(uint64_t first, uint64_t second, int at) {
    const uint64_t every = 0x5555555555555555ull << at;
    return weave_bits(_pext_u64(first, every), _pext_u64(second, every));
}

/* 16 half-byte sub-scales s a block as 2 s + 1, in 16 bits. */
LG_INLINE __m512i odd_scales_of_16(const uint8_t *first, const uint8_t *second) {
    const __m512i places = _mm512_set1_epi64(0x000b00070003003fll); /* a bit below each half byte */
    __m128i both = _mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i *)(const void *)first),
                                      _mm_loadl_epi64((const __m128i *)(const void *)second));
    __m512i s = _mm512_multishift_epi64_epi8(places, _mm512_cvtepu16_epi64(both));
    return _mm512_or_si512(_mm512_and_si512(s, _mm512_set1_epi16(0x1e)), _mm512_set1_epi16(1));
}

/* Eight half-byte sub-scales of a block as 2 s + 1, in 32 bits. */
LG_INLINE __m512i odd_scales_of_32(const uint8_t *first, const uint8_t *second) {
    const __m512i places = _mm512_setr_epi32(0x3f, 3, 7, 11, 15, 19, 23, 27, 31, 35, 39, 43, 47, 51, 55, 59);
    uint64_t both = weave_bits(lg_load32(first), lg_load32(second));
    __m512i s = _mm512_multishift_epi64_epi8(places, _mm512_set1_epi64((long long)both));
    return _mm512_or_si512(_mm512_and_si512(s, _mm512_set1_epi32(0x1e)), _mm512_set1_epi32(1));
}

/* 9 bits of grid index and 7 of sign code for each cluster. */
LG_INLINE void weave_iq2_xs(const uint8_t *first, const uint8_t *second, lg_woven *w) {
    const __m512i last_two = _mm512_set1_epi64(0x80fe0000ll); /* bit 4: bit 7; bit 5: the parity of bits 1 to 7 */
    __m512i index, rest, low, high;
    __mmask64 bits[3];
    split_bytes(first + 2, second + 2, &index, &rest);
    top_bits(index, bits);
    bits[2] = top_bit(_mm512_slli_epi16(rest, 7));
    look_up_ranks(lg_iq2xs_ranks, index, bits, 3, &low, &high);
    const __m512i signs[4] = {_mm512_slli_epi16(rest, 3), _mm512_slli_epi16(rest, 1), _mm512_srli_epi16(rest, 1),
                              _mm512_gf2p8affine_epi64_epi8(rest, last_two, 0)};
    weights_of_two_bits(low, high, signs, w->u);
    w->scale = odd_scales_of_16(first + 66, second + 66);
}

LG_INLINE void weave_iq2_s(const uint8_t *first, const uint8_t *second, lg_woven *w) {
    __m512i index = weave_bytes(first + 2, second + 2), all = weave_bytes(first + 34, second + 34), low, high;
    uint64_t a = lg_load64(first + 66), b = lg_load64(second + 66); /* bits 8 and 9 of the indices */
    __mmask64 bits[4];
    top_bits(index, bits);
    bits[2] = weave_every_second(a, b, 0);
    bits[3] = weave_every_second(a, b, 1);
    look_up_ranks(lg_iq2s_ranks, index, bits, 4, &low, &high);
    const __m512i signs[4] = {_mm512_slli_epi16(all, 4), _mm512_slli_epi16(all, 2), all, _mm512_srli_epi16(all, 2)};
    weights_of_two_bits(low, high, signs, w->u);
    w->scale = odd_scales_of_16(first + 74, second + 74);
}

/* The sign bits of weights 0 to 3 of each byte, where weights_of_three_bits wants them; then those of 4 to 7. */
enum { FIRST_FOUR_SIGNS, LAST_FOUR_SIGNS, LAST_FOUR_OF_SEVEN };
LG_INLINE __m512i place_signs(__m512i signs, int which) {
    const long long matrix[3] = {0x0208000104000000ll, 0x2080001040000000ll, 0x207f001040000000ll};
    return _mm512_gf2p8affine_epi64_epi8(signs, _mm512_set1_epi64(matrix[which]), 0);
}

LG_INLINE void weave_iq3_xxs(const uint8_t *first, const uint8_t *second, lg_woven *w) {
    const __m512i sevens = _mm512_set1_epi64(0x352e2720150e0700ll);
    __m512i words = weave_bytes(first + 66, second + 66), index[2], low, high;
    __m512i codes = _mm512_multishift_epi64_epi8(sevens, words);
    split_bytes(first + 2, second + 2, &index[0], &index[1]);
#pragma clang loop unroll(full)
    for (int i = 0; i < 2; i++) {
        __mmask64 bits[2];
        top_bits(index[i], bits);
        look_up_ranks(lg_iq3xxs_pairs, index[i], bits, 2, &low, &high);
        __m512i signs = place_signs(codes, i ? LAST_FOUR_OF_SEVEN : FIRST_FOUR_SIGNS);
        weights_of_three_bits(lg_iq3xxs_weights, low, high, signs, w->u + 4 * i);
    }
    w->scale = _mm512_or_si512(_mm512_srli_epi32(words, 27), _mm512_set1_epi32(1)); /* 2 s + 1 */
}

LG_INLINE void weave_iq3_s(const uint8_t *first, const uint8_t *second, lg_woven *w) {
    __m512i all = weave_bytes(first + 74, second + 74), index[2], low, high;
    uint64_t a = lg_load64(first + 66), b = lg_load64(second + 66); /* bit 8 of the indices */
    split_bytes(first + 2, second + 2, &index[0], &index[1]);
#pragma clang loop unroll(full)
    for (int i = 0; i < 2; i++) {
        __mmask64 bits[3];
        top_bits(index[i], bits);
        bits[2] = weave_every_second(a, b, i);
        look_up_ranks(lg_iq3s_pairs, index[i], bits, 3, &low, &high);
        __m512i signs = place_signs(all, i ? LAST_FOUR_SIGNS : FIRST_FOUR_SIGNS);
        weights_of_three_bits(lg_iq3s_weights, low, high, signs, w->u + 4 * i);
    }
    w->scale = odd_scales_of_32(first + 106, second + 106);
}

#endif
