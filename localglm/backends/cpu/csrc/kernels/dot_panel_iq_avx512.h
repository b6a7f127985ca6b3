/* As dot_panel_k_avx512.h, for the grid types of dot_iq_unpack.h. */
#ifndef LG_DOT_PANEL_IQ_AVX512_H
#define LG_DOT_PANEL_IQ_AVX512_H

#include "dot_iq_avx512.h"
#include "dot_panel_k_avx512.h"

LG_INLINE void fill_iq4_xs(const uint8_t *rows, int64_t stride, lg_panel_block *out) {
    const __m512i values = _mm512_broadcast_i64x2(load128(lg_kvalues_iq4nl));
    const __m512i table = _mm512_xor_si512(values, _mm512_set1_epi8((char)0x80));
    __m512i word[4];
    words_of_rows(rows, stride, word);
    __m512i high = _mm512_srli_epi32(word[0], 16);
    _mm512_store_ps(out->d, low_halves(word[0]));
#pragma clang loop unroll(full)
    for (int g = 0; g < 8; g++) {
        __m512i four = _mm512_and_si512(_mm512_srli_epi32(word[1], 4 * g), _mm512_set1_epi32(15));
        __m512i two = g < 2 ? _mm512_slli_epi32(high, 4 - 2 * g) : _mm512_srli_epi32(high, 2 * g - 4);
        __m512i six = _mm512_or_si512(four, _mm512_and_si512(two, _mm512_set1_epi32(48)));
        _mm512_store_si512(out->scale[g], _mm512_sub_epi32(six, _mm512_set1_epi32(32)));
    }
#pragma clang loop unroll(disable)
    for (int g = 0; g < 8; g++) {
        words_of_rows(rows + 8 + 16 * g, stride, word);
#pragma clang loop unroll(full)
        for (int k = 0; k < 4; k++) {
            _mm512_store_si512(out->u[8 * g + k], _mm512_permutexvar_epi8(word[k], table));
            _mm512_store_si512(out->u[8 * g + 4 + k], _mm512_permutexvar_epi8(_mm512_srli_epi32(word[k], 4), table));
        }
    }
}

/* Bit places of the four bytes of each word, for a multishift: `first` for the first byte, `step` apart. */
LG_INLINE __m512i places_of(int first, int step) {
    uint64_t places = 0;
    for (int i = 0; i < 8; i++) places |= (uint64_t)((i / 4 * 32 + first + i % 4 * step) & 63) << (8 * i);
    return _mm512_set1_epi64((long long)places);
}

LG_INLINE __m512i bits_at(int first, int step, __m512i words) {
    return _mm512_multishift_epi64_epi8(places_of(first, step), words);
}

/* (a & mask) | (b & ~mask) */
LG_INLINE __m512i pick_bits(int mask, __m512i a, __m512i b) {
    return _mm512_ternarylogic_epi32(_mm512_set1_epi8((char)mask), a, b, 0xca);
}

/* Both bytes of the ranks of 64 indices. */
LG_INLINE void both_ranks(const uint8_t *ranks, __m512i index, __m512i *low, __m512i *high) {
    __mmask64 upper = _mm512_movepi8_mask(index);
    *low = look_up256(ranks, index, upper);
    *high = look_up256(ranks + 256, index, upper);
}

/* Sign bytes of the four codes of each word, and the scale above them. */
LG_INLINE __m512i signs_and_scale(__m512i words, int32_t *scale) {
    __m512i odd = _mm512_or_si512(_mm512_slli_epi32(_mm512_srli_epi32(words, 28), 1), _mm512_set1_epi32(1));
    _mm512_store_si512(scale, odd);
    return _mm512_permutex2var_epi8(load512(lg_ksigns_iq2xs), bits_at(0, 7, words), load512(lg_ksigns_iq2xs + 64));
}

/* Magnitudes by rank, plus 64 or taken from 64: bit `sign` of the index says which. */
LG_INLINE __m512i signed_table(uint64_t plus, int ranks) {
    uint8_t table[64];
    for (int i = 0; i < 64; i++) {
        int magnitude = (int)((plus >> (8 * (i % ranks))) & 255);
        table[i] = (uint8_t)(i & ranks ? 64 - magnitude : 64 + magnitude);
    }
    return load512(table);
}

/* Eight weights of index k: the low byte of ranks has four of them, the high byte the others. */
LG_INLINE void put_eight_iq2_xxs(int k, __m512i low, __m512i high, __m512i signs, __m512i table, void *out) {
    __m512i sign = bits_at(8 * k - 2, 1, signs); /* of the first four at bit 2, of the others at bit 6 */
    __m512i first = pick_bits(3, bits_at(8 * k, 2, low), sign);
    __m512i second = pick_bits(3, bits_at(8 * k, 2, high), _mm512_srli_epi32(sign, 4));
    _mm512_store_si512(out, _mm512_permutexvar_epi8(first, table));
    _mm512_store_si512((uint8_t *)out + 64, _mm512_permutexvar_epi8(second, table));
}

LG_INLINE void fill_iq2_xxs(const uint8_t *rows, int64_t stride, lg_panel_block *out) {
    const __m512i table = signed_table(0x002b1908, 4); /* 8, 25, 43 */
    __m512 d = low_halves(first_words(rows, stride));
    _mm512_store_ps(out->d, _mm512_mul_ps(d, _mm512_set1_ps(0.125f)));
#pragma clang loop unroll(disable)
    for (int i = 0; i < 4; i++) {
        __m512i word[4];
        words_of_rows(rows + 2 + 16 * i, stride, word);
#pragma clang loop unroll(full)
        for (int h = 0; h < 2; h++) {
            __m512i low, high, signs = signs_and_scale(word[2 * h + 1], out->scale[2 * i + h]);
            both_ranks(lg_iq2xxs_ranks, word[2 * h], &low, &high);
#pragma clang loop unroll(full)
            for (int k = 0; k < 4; k++)
                put_eight_iq2_xxs(k, low, high, signs, table, out->u[16 * i + 8 * h + 2 * k]);
        }
    }
}

/* The 16 weights of four indices. Their ranks' upper bits and their signs alternate in one byte an index. */
LG_INLINE void put_four_iq3_xxs(__m512i index, __m512i nibbles, __m512i table, uint8_t (*out)[LG_PANEL_ROWS][4]) {
    const __m512i spread = _mm512_broadcast_i64x2(_mm_setr_epi8(
        0x00, 0x02, 0x08, 0x0a, 0x20, 0x22, 0x28, 0x2a, (char)0x80, (char)0x82, (char)0x88, (char)0x8a, (char)0xa0,
        (char)0xa2, (char)0xa8, (char)0xaa));
    __m512i low, high;
    both_ranks(lg_iq3xxs_planes, index, &low, &high);
    __m512i above = _mm512_or_si512(high, _mm512_permutexvar_epi8(nibbles, spread));
#pragma clang loop unroll(full)
    for (int k = 0; k < 4; k++) {
        __m512i code = pick_bits(3, bits_at(8 * k, 2, low), bits_at(8 * k - 2, 2, above));
        _mm512_store_si512(out[k], _mm512_permutexvar_epi8(code, table));
    }
}

LG_INLINE void fill_iq3_xxs(const uint8_t *rows, int64_t stride, lg_panel_block *out) {
    const __m512i table = signed_table(0x3e342c241c140c04, 8); /* 4, 12, .. 52, 62 */
    __m512 d = low_halves(first_words(rows, stride));
    _mm512_store_ps(out->d, _mm512_mul_ps(d, _mm512_set1_ps(0.25f)));
#pragma clang loop unroll(disable)
    for (int i = 0; i < 2; i++) {
        __m512i words[4], index[8];
        words_of_rows(rows + 66 + 16 * i, stride, words);
        words_of_rows(rows + 2 + 32 * i, stride, index);
        words_of_rows(rows + 18 + 32 * i, stride, index + 4);
#pragma clang loop unroll(full)
        for (int g = 0; g < 4; g++) {
            __m512i signs = signs_and_scale(words[g], out->scale[4 * i + g]);
            uint8_t(*u)[LG_PANEL_ROWS][4] = out->u + 32 * i + 8 * g;
            put_four_iq3_xxs(index[2 * g], bits_at(0, 4, signs), table, u);
            put_four_iq3_xxs(index[2 * g + 1], bits_at(16, 4, signs), table, u + 4);
        }
    }
}

#endif
