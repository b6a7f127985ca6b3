/* Grid-type super-blocks to vectors of 64 weights, for panels; the layouts are those of dot_iq_unpack.h.
 *
 * The grids of the two XXS types fit into registers once a value is written as its rank: 2 bits in IQ2_XXS,
 * 3 bits in IQ3_XXS, 16 bits an entry at most. A look-up gives the low and the high byte of 64 entries; they
 * are stored, and each vector of weights spreads its fields from there and looks the values up. */
#ifndef LG_DOT_IQ_AVX512_H
#define LG_DOT_IQ_AVX512_H

#include "dot_iq_avx2.h"
#include "dot_k_avx512.h"

LG_PAIR_OF_HEADS(iq2_xs)
LG_PART_OF_SIGNED(iq2_xs)
LG_PAIR_OF_HEADS(iq2_s)
LG_PART_OF_SIGNED(iq2_s)
LG_PAIR_OF_HEADS(iq3_s)
LG_PART_OF_SIGNED(iq3_s)
LG_PAIR_OF_HEADS(iq1_m)
LG_PART_OF_PLAIN(iq1_m)
LG_PAIR_OF_HEADS(iq4_xs)

/* o (8 grid + t) = o (u - 9) with o = 2 s + 1 and u = 8 grid + t + 9. */
LG_INLINE void pair_iq1_s(const uint8_t *first, const uint8_t *second, lg_pair512 *pair) {
    const uint8_t *blocks[2] = {first, second};
    for (int i = 0; i < 2; i++) {
        __m128i three = _mm_and_si128(_mm_srli_epi16(load128(blocks[i] + 34), 12), _mm_set1_epi16(7));
        __m128i odd = _mm_or_si128(_mm_slli_epi16(three, 1), _mm_set1_epi16(1));
        pair->head[i].d = lg_load16(blocks[i]);
        pair->head[i].scale = _mm256_broadcastsi128_si256(odd);
    }
}

LG_INLINE __m512i part512_iq1_s(const uint8_t *p, const lg_pair512 *pair, int which, int j) {
    const lg_head256 *head = &pair->head[which];
    __m512i u = join256(part_iq1_s(p, head, 2 * j).u, part_iq1_s(p, head, 2 * j + 1).u); /* grid + 1 */
    int low = p[35 + 4 * j] & 0x80 ? 0 : 2, high = p[37 + 4 * j] & 0x80 ? 0 : 2;
    __m512i t = join256(_mm256_set1_epi8((char)low), _mm256_set1_epi8((char)high));
    return _mm512_add_epi8(_mm512_slli_epi16(u, 3), t); /* u <= 2: no bit leaves its byte */
}

LG_INLINE __m512i part512_iq4_xs(const uint8_t *p, const lg_pair512 *pair, int which, int j) {
    (void)pair, (void)which;
    return iq4_values(nibbles_of_pieces(p + 8 + 32 * j, p + 24 + 32 * j));
}

/* Bytes of a table of 256, for 64 indices. */
LG_INLINE __m512i look_up256(const uint8_t *table, __m512i index, __mmask64 upper) {
    __m512i low = _mm512_permutex2var_epi8(load512(table), index, load512(table + 64));
    __m512i high = _mm512_permutex2var_epi8(load512(table + 128), index, load512(table + 192));
    return _mm512_mask_blend_epi8(upper, low, high);
}

/* Sixteen words of four sign codes and a sub-scale, eight a block. The empty statements here and below make
 * values go through memory, where they are spread for nothing: the unit that exchanges lanes is the one these
 * kernels wait for. */
LG_INLINE void put_signs_and_scales(__m512i words, lg_pair512 *pair) {
    const __m512i sevens = _mm512_set1_epi64(0x352e2720150e0700ll);
    __m512i codes = _mm512_multishift_epi64_epi8(sevens, words);
    __m512i signs = _mm512_permutex2var_epi8(load512(lg_ksigns_iq2xs), codes, load512(lg_ksigns_iq2xs + 64));
    _mm512_store_si512(pair->signs, signs);
    __asm__("" : "+m"(pair->signs));
    __m512i odd = _mm512_or_si512(_mm512_slli_epi32(_mm512_srli_epi32(words, 28), 1), _mm512_set1_epi32(1));
    __m256i narrow = _mm512_cvtepi32_epi16(odd);
    pair->head[0].scale = _mm256_permute4x64_epi64(narrow, 0x44);
    pair->head[1].scale = _mm256_permute4x64_epi64(narrow, 0xee);
}

/* Entries are looked up in the order 0, 2, 4, 6, 1, 3, 5, 7 of each eight: a vector of weights repeats
 * its 16 bytes of ranks, so that qword q sees entries 0, 2, 4, 6 (q even) or the others. */
LG_INLINE void pair_iq2_xxs(const uint8_t *first, const uint8_t *second, lg_pair512 *pair) {
    const __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i split = _mm512_broadcast_i64x2(_mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
    __m512i a = load512(first + 2), b = load512(second + 2);
    pair->head[0].d = lg_load16(first);
    pair->head[1].d = lg_load16(second);
    __m512i index = _mm512_shuffle_epi8(_mm512_permutex2var_epi32(a, evens, b), split);
    __mmask64 upper = _mm512_movepi8_mask(index);
    __m512i low = look_up256(lg_iq2xxs_ranks, index, upper), high = look_up256(lg_iq2xxs_ranks + 256, index, upper);
    _mm512_store_si512(pair->codes, _mm512_unpacklo_epi8(low, high));
    _mm512_store_si512(pair->codes + 64, _mm512_unpackhi_epi8(low, high));
    __asm__("" : "+m"(pair->codes));
    put_signs_and_scales(_mm512_permutex2var_epi32(a, _mm512_add_epi32(evens, _mm512_set1_epi32(1)), b), pair);
}

LG_INLINE __m512i part512_iq2_xxs(const uint8_t *p, const lg_pair512 *pair, int which, int j) {
    const __m512i twos = _mm512_set1_epi64(0x0e0c0a0806040200ll);
    const __m512i entry = _mm512_setr_epi64(0, 0, 0x1010101010101010ll, 0x1010101010101010ll, 0x2020202020202020ll,
                                            0x2020202020202020ll, 0x3030303030303030ll, 0x3030303030303030ll);
    const int unit = 4 * which + j;
    const uint8_t *codes = pair->codes + 64 * (unit & 1) + 16 * (unit >> 1);
    __m512i ranks = _mm512_multishift_epi64_epi8(_mm512_add_epi8(twos, entry), _mm512_broadcast_i64x2(load128(codes)));
    (void)p;
    return _mm512_permutexvar_epi8(ranks, _mm512_set1_epi32(0x002b1908)); /* 8, 25, 43 */
}

LG_INLINE void ranks_iq3_xxs(const uint8_t *p, uint8_t *codes) {
    const __m512i split = _mm512_broadcast_i64x2(_mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
    __m512i index = _mm512_shuffle_epi8(load512(p + 2), split);
    __mmask64 upper = _mm512_movepi8_mask(index);
    __m512i low = look_up256(lg_iq3xxs_ranks, index, upper), high = look_up256(lg_iq3xxs_ranks + 256, index, upper);
    _mm512_store_si512(codes, _mm512_unpacklo_epi8(low, high));
    _mm512_store_si512(codes + 64, _mm512_unpackhi_epi8(low, high));
}

/* As IQ2_XXS with entries of four values: a half of a vector repeats 16 bytes of the first or second store. */
LG_INLINE void pair_iq3_xxs(const uint8_t *first, const uint8_t *second, lg_pair512 *pair) {
    pair->head[0].d = lg_load16(first);
    pair->head[1].d = lg_load16(second);
    ranks_iq3_xxs(first, pair->codes);
    ranks_iq3_xxs(second, pair->codes + 128);
    __asm__("" : "+m"(pair->codes));
    put_signs_and_scales(join256(load256(first + 66), load256(second + 66)), pair);
}

LG_INLINE __m512i part512_iq3_xxs(const uint8_t *p, const lg_pair512 *pair, int which, int j) {
    const __m512i threes = _mm512_set1_epi64(0x1916131009060300ll);
    const __m512i entry = _mm512_setr_epi64(0, 0, 0x2020202020202020ll, 0x2020202020202020ll, 0, 0,
                                            0x2020202020202020ll, 0x2020202020202020ll);
    const uint8_t *codes = pair->codes + 128 * which + 16 * j;
    __m512i both = _mm512_broadcast_i64x2(load128(codes));
    both = _mm512_mask_broadcast_i64x2(both, 0xf0, load128(codes + 64));
    __m512i ranks = _mm512_multishift_epi64_epi8(_mm512_add_epi8(threes, entry), both);
    (void)p;
    return _mm512_permutexvar_epi8(ranks, _mm512_set1_epi64(0x3e342c241c140c04ll)); /* 4, 12, .. 52, 62 */
}

#endif
