/* Blocks of sixteen rows turned round before they are decoded: the words of a block hold the same fields of all
 * rows, and few of them are to be exchanged. The layouts are those of dot_k_unpack.h and dot_run32_unpack.h. */
#ifndef LG_DOT_PANEL_K_AVX512_H
#define LG_DOT_PANEL_K_AVX512_H

#include "dot_k_avx512.h"
#include "dot_panel_avx512.h"

/* fill_TYPE from the functions of single rows. */
#define LG_FILL_FROM_ROWS(type)                                                                              \
    LG_INLINE void fill_##type(const uint8_t *rows, int64_t stride, lg_panel_block *out) {                   \
        fill_from_rows(rows, stride, out, form_##type, wide_##type, pair_##type, part512_##type);            \
    }
#define LG_FILL_FROM_RUNS(type)                                                                              \
    LG_INLINE void fill_##type(const uint8_t *rows, int64_t stride, int blocks, lg_panel_run *out) {         \
        fill_from_runs(rows, stride, blocks, out, form_##type, unpack512_##type);                            \
    }

LG_INLINE __m512i byte_of(__m512i words, int k) {
    return _mm512_and_si512(_mm512_srli_epi32(words, 8 * k), _mm512_set1_epi32(255));
}

LG_INLINE __m512i nibbles_low(__m512i v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
LG_INLINE __m512i nibbles_high(__m512i v) { return nibbles_low(_mm512_srli_epi32(v, 4)); }

/* Bytes 2 i and 2 i + 1 of two words as a pair of 16 bits. */
LG_INLINE __m512i pair_of(__m512i low, __m512i high, int i) {
    __m512i four = i < 2 ? low : high;
    if (i % 2) four = _mm512_srli_epi32(four, 16);
    __m512i second = _mm512_and_si512(_mm512_slli_epi32(four, 8), _mm512_set1_epi32(0xff0000));
    return _mm512_or_si512(_mm512_and_si512(four, _mm512_set1_epi32(255)), second);
}

/* The first 16 bytes of Q4_K and Q5_K. */
LG_INLINE void fill_head_k(const uint8_t *rows, int64_t stride, lg_panel_block *out, int lift) {
    const __m512i fours = _mm512_set1_epi8(15), sixes = _mm512_set1_epi8(63), top = _mm512_set1_epi8(48);
    __m512i word[4];
    words_of_rows(rows, stride, word);
    _mm512_store_ps(out->d, low_halves(word[0]));
    _mm512_store_ps(out->m, high_halves(word[0]));
    __m512i a = word[1], b = word[2], c = word[3];
    __m512i scales = _mm512_and_si512(a, sixes), minima = _mm512_and_si512(b, sixes);
    __m512i high_scales = _mm512_or_si512(_mm512_and_si512(c, fours), _mm512_and_si512(_mm512_srli_epi32(a, 2), top));
    __m512i high_minima = _mm512_or_si512(nibbles_high(c), _mm512_and_si512(_mm512_srli_epi32(b, 2), top));
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; i++) {
        _mm512_store_si512(out->scale[i], byte_of(scales, i));
        _mm512_store_si512(out->scale[4 + i], byte_of(high_scales, i));
        _mm512_store_si512(out->min[i], pair_of(minima, high_minima, i));
        if (lift) _mm512_store_si512(out->lift[i], _mm512_slli_epi32(pair_of(scales, high_scales, i), lift));
    }
}

LG_INLINE void fill_q4_k(const uint8_t *rows, int64_t stride, lg_panel_block *out) {
    fill_head_k(rows, stride, out, 3);
#pragma clang loop unroll(disable)
    for (int i = 0; i < 8; i++) {
        __m512i word[4];
        words_of_rows(rows + 16 + 16 * i, stride, word);
        uint8_t(*u)[LG_PANEL_ROWS][4] = out->u + 16 * (i / 2) + 4 * (i % 2);
#pragma clang loop unroll(full)
        for (int k = 0; k < 4; k++) {
            _mm512_store_si512(u[k], nibbles_low(word[k]));
            _mm512_store_si512(u[8 + k], nibbles_high(word[k]));
        }
    }
}

/* Fifth bits of word k of every group of 32 are word k of the 32 bytes at 16, a bit a group. */
LG_INLINE void fill_q5_k(const uint8_t *rows, int64_t stride, lg_panel_block *out) {
    fill_head_k(rows, stride, out, 0);
#pragma clang loop unroll(disable)
    for (int half = 0; half < 2; half++) {
        __m512i fifth[4];
        words_of_rows(rows + 16 + 16 * half, stride, fifth);
#pragma clang loop unroll(full)
        for (int j = 0; j < 4; j++) {
            __m512i word[4];
            words_of_rows(rows + 48 + 32 * j + 16 * half, stride, word);
            uint8_t(*u)[LG_PANEL_ROWS][4] = out->u + 16 * j + 4 * half;
#pragma clang loop unroll(full)
            for (int k = 0; k < 4; k++) {
                __m512i low = _mm512_rolv_epi32(fifth[k], _mm512_set1_epi32((4 - 2 * j) & 31));
                __m512i high = _mm512_rolv_epi32(fifth[k], _mm512_set1_epi32((3 - 2 * j) & 31));
                _mm512_store_si512(u[k], or_masked(nibbles_low(word[k]), low, 16));
                _mm512_store_si512(u[8 + k], or_masked(nibbles_high(word[k]), high, 16));
            }
        }
    }
}

LG_INLINE void fill_q6_k(const uint8_t *rows, int64_t stride, lg_panel_block *out) {
    __m512i word[4], top[4], high[4];
    words_of_rows(rows + 192, stride, word);
#pragma clang loop unroll(full)
    for (int g = 0; g < 16; g++)
        _mm512_store_si512(out->scale[g], _mm512_srai_epi32(_mm512_slli_epi32(word[g / 4], 24 - g % 4 * 8), 24));
    words_of_rows(rows + 194, stride, word); /* d is the last two bytes */
    _mm512_store_ps(out->d, high_halves(word[3]));
#pragma clang loop unroll(disable)
    for (int i = 0; i < 4; i++) {
        const int half = i / 2, part = i % 2;
        words_of_rows(rows + 64 * half + 16 * part, stride, word);
        words_of_rows(rows + 64 * half + 32 + 16 * part, stride, high);
        words_of_rows(rows + 128 + 32 * half + 16 * part, stride, top);
        uint8_t(*u)[LG_PANEL_ROWS][4] = out->u + 32 * half + 4 * part;
#pragma clang loop unroll(full)
        for (int k = 0; k < 4; k++) {
            _mm512_store_si512(u[k], or_masked(nibbles_low(word[k]), _mm512_slli_epi32(top[k], 4), 48));
            _mm512_store_si512(u[8 + k], or_masked(nibbles_low(high[k]), _mm512_slli_epi32(top[k], 2), 48));
            _mm512_store_si512(u[16 + k], or_masked(nibbles_high(word[k]), top[k], 48));
            _mm512_store_si512(u[24 + k], or_masked(nibbles_high(high[k]), _mm512_srli_epi32(top[k], 2), 48));
        }
    }
}

/* The first word of each row, at places that are multiples of 4 apart. */
LG_INLINE __m512i first_words(const uint8_t *rows, int64_t stride) {
    __m512i a = every_fourth(rows, stride), b = every_fourth(rows + stride, stride);
    __m512i c = every_fourth(rows + 2 * stride, stride), d = every_fourth(rows + 3 * stride, stride);
    return _mm512_unpacklo_epi64(_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
}

LG_INLINE void fill_q8_0(const uint8_t *rows, int64_t stride, int blocks, lg_panel_run *out) {
    const __m512i centre = _mm512_set1_epi8((char)0x80);
    if (blocks < 8) memset(out, 0, sizeof *out);
#pragma clang loop unroll(disable)
    for (int k = 0; k < blocks; k++, rows += 34) {
        __m512i word[8];
        _mm512_store_ps(out->d[k], low_halves(first_words(rows, stride)));
        words_of_rows(rows + 2, stride, word);
        words_of_rows(rows + 18, stride, word + 4);
#pragma clang loop unroll(full)
        for (int i = 0; i < 8; i++) _mm512_store_si512(out->u[8 * k + i], _mm512_xor_si512(word[i], centre));
    }
}

#endif
