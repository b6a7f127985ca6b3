/* Grid-type super-blocks to vectors; the layouts are those of dot_iq_unpack.h. */
#ifndef LG_DOT_IQ_AVX2_H
#define LG_DOT_IQ_AVX2_H

#include "dot_avx2.h"
#include "dot_iq_unpack.h"
#include "dot_k_avx2.h"
#include "dot_run32_avx2.h"

LG_INLINE __m256i entries4(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    return _mm256_setr_epi64x((long long)a, (long long)b, (long long)c, (long long)d);
}

/* Bits to -1 where set and +1 where not. */
LG_INLINE __m256i signs32(uint32_t bits) { return _mm256_or_si256(vector_bits(bits), _mm256_set1_epi8(1)); }

LG_INLINE void signs256(const uint8_t *bits, __m256i *s) {
    for (int j = 0; j < 8; j++) s[j] = signs32(lg_load32(bits + 4 * j));
}

/* Seven sign bits in every byte to eight: the eighth makes the number of signs even. */
LG_INLINE __m256i even_signs(__m256i seven) {
    __m256i parity = _mm256_xor_si256(seven, _mm256_srli_epi16(seven, 4));
    parity = _mm256_xor_si256(parity, _mm256_srli_epi16(parity, 2));
    parity = _mm256_xor_si256(parity, _mm256_srli_epi16(parity, 1));
    return _mm256_or_si256(seven, move_bits(parity, 1, 0, 7));
}

/* Eight words of four sign codes and a sub-scale (XXS types). */
LG_INLINE void signs_and_scales(__m256i words, lg_vector256 *out) {
    uint8_t bits[32];
    __m256i seven = _mm256_and_si256(words, _mm256_set1_epi32(0x7f));
    for (int k = 1; k < 4; k++) {
        __m256i moved = _mm256_slli_epi32(words, k);
        seven = _mm256_or_si256(seven, _mm256_and_si256(moved, _mm256_set1_epi32(0x7f << (8 * k))));
    }
    _mm256_storeu_si256((__m256i *)(void *)bits, even_signs(seven));
    signs256(bits, out->s);
    __m256i odd = _mm256_or_si256(_mm256_slli_epi32(_mm256_srli_epi32(words, 28), 1), _mm256_set1_epi32(1));
    out->scale = _mm256_permute4x64_epi64(_mm256_packs_epi32(odd, odd), 0x88);
}

/* Half-byte sub-scales s as 2 s + 1: one for 16 weights (eight bytes), or for 32 (four bytes). */
LG_INLINE __m256i odd_scales_of(uint64_t packed) {
    const uint64_t mask = 0x0f0f0f0f0f0f0f0full; /* the low half of a byte is the even group */
    __m128i s = _mm_set_epi64x((long long)((packed >> 4) & mask), (long long)(packed & mask));
    __m256i wide = _mm256_cvtepu8_epi16(s);
    return _mm256_or_si256(_mm256_slli_epi16(wide, 1), _mm256_set1_epi16(1));
}

LG_INLINE __m256i odd_scales_of_pairs(uint32_t packed) {
    uint64_t s = 0;
    for (int g = 0; g < 8; g++) s |= (uint64_t)(2 * ((packed >> (4 * g)) & 15) + 1) << (8 * g);
    return scales_of_pairs(s);
}

LG_INLINE void vector_iq2_xxs(const uint8_t *p, lg_vector256 *out) {
    const __m256i odd_words = _mm256_setr_epi32(1, 3, 5, 7, 1, 3, 5, 7);
    __m256i first = _mm256_permutevar8x32_epi32(load256(p + 2), odd_words);
    __m256i second = _mm256_permutevar8x32_epi32(load256(p + 34), odd_words);
    out->d = lg_load16(p);
    signs_and_scales(_mm256_blend_epi32(first, second, 0xf0), out);
    for (int j = 0; j < 8; j++) {
        uint32_t index = lg_load32(p + 2 + 8 * j);
        out->u[j] = entries4(lg_iq2xxs_grid[index & 255], lg_iq2xxs_grid[(index >> 8) & 255],
                             lg_iq2xxs_grid[(index >> 16) & 255], lg_iq2xxs_grid[index >> 24]);
    }
}

LG_INLINE void vector_iq2_xs(const uint8_t *p, lg_vector256 *out) {
    uint8_t bits[32];
    __m256i low = _mm256_srli_epi16(load256(p + 2), 9), high = _mm256_srli_epi16(load256(p + 34), 9);
    __m256i seven = _mm256_permute4x64_epi64(_mm256_packus_epi16(low, high), 0xd8);
    _mm256_storeu_si256((__m256i *)(void *)bits, even_signs(seven));
    out->d = lg_load16(p);
    signs256(bits, out->s);
    out->scale = odd_scales_of(lg_load64(p + 66));
    for (int j = 0; j < 8; j++) {
        uint64_t w = lg_load64(p + 2 + 8 * j);
        out->u[j] = entries4(lg_iq2xs_grid[w & 511], lg_iq2xs_grid[(w >> 16) & 511],
                             lg_iq2xs_grid[(w >> 32) & 511], lg_iq2xs_grid[(w >> 48) & 511]);
    }
}

LG_INLINE void vector_iq2_s(const uint8_t *p, lg_vector256 *out) {
    out->d = lg_load16(p);
    signs256(p + 34, out->s);
    out->scale = odd_scales_of(lg_load64(p + 74));
    for (int j = 0; j < 8; j++)
        out->u[j] = entries4(lg_iq2s_grid[index_iq2_s(p, 4 * j)], lg_iq2s_grid[index_iq2_s(p, 4 * j + 1)],
                             lg_iq2s_grid[index_iq2_s(p, 4 * j + 2)], lg_iq2s_grid[index_iq2_s(p, 4 * j + 3)]);
}

LG_INLINE uint64_t two_entries(uint32_t first, uint32_t second) { return first | (uint64_t)second << 32; }

LG_INLINE void vector_iq3_xxs(const uint8_t *p, lg_vector256 *out) {
    out->d = lg_load16(p);
    signs_and_scales(load256(p + 66), out);
    for (int j = 0; j < 8; j++) {
        uint64_t e[4];
        for (int k = 0; k < 4; k++) {
            uint32_t index = lg_load16(p + 2 + 8 * j + 2 * k);
            e[k] = two_entries(lg_iq3xxs_grid[index & 255], lg_iq3xxs_grid[index >> 8]);
        }
        out->u[j] = entries4(e[0], e[1], e[2], e[3]);
    }
}

LG_INLINE void vector_iq3_s(const uint8_t *p, lg_vector256 *out) {
    out->d = lg_load16(p);
    signs256(p + 74, out->s);
    out->scale = odd_scales_of_pairs(lg_load32(p + 106));
    for (int j = 0; j < 8; j++) {
        uint64_t e[4];
        for (int k = 0; k < 4; k++)
            e[k] = two_entries(lg_iq3s_grid[index_iq3_s(p, 8 * j + 2 * k)],
                               lg_iq3s_grid[index_iq3_s(p, 8 * j + 2 * k + 1)]);
        out->u[j] = entries4(e[0], e[1], e[2], e[3]);
    }
}

/* With o = 2 s + 1 and u = grid + 1: o (8 grid + t) = 8 o u + o (t - 8), t the same for 32 weights. */
LG_INLINE void vector_iq1_s(const uint8_t *p, lg_vector256 *out) {
    __m128i words = load128(p + 34);
    __m128i three = _mm_and_si128(_mm_srli_epi16(words, 12), _mm_set1_epi16(7));
    __m128i odd = _mm_or_si128(_mm_slli_epi16(three, 1), _mm_set1_epi16(1));
    __m128i minus = _mm_srai_epi16(words, 15); /* -1 where t = -1 */
    __m128i less = _mm_add_epi16(_mm_slli_epi16(minus, 1), _mm_set1_epi16(-7));
    out->d = lg_load16(p);
    out->scale = _mm256_broadcastsi128_si256(_mm_slli_epi16(odd, 3));
    out->bias = _mm256_broadcastsi128_si256(_mm_mullo_epi16(odd, less));
    for (int j = 0; j < 8; j++) {
        uint32_t low = lg_load32(p + 2 + 4 * j), high = lg_load16(p + 34 + 2 * j);
        __m256i grid = entries4(lg_iq1s_grid[(low & 255) | (high & 7) << 8],
                                lg_iq1s_grid[((low >> 8) & 255) | ((high >> 3) & 7) << 8],
                                lg_iq1s_grid[((low >> 16) & 255) | ((high >> 6) & 7) << 8],
                                lg_iq1s_grid[low >> 24 | ((high >> 9) & 7) << 8]);
        out->u[j] = _mm256_add_epi8(grid, _mm256_set1_epi8(1));
    }
}

/* 8 grid + t + 9, 0 to 18, for 32 weights; codes are four half bytes whose top bit means t = -1. */
LG_INLINE __m256i shifted_iq1_m(__m256i grid, uint32_t codes) {
    const __m256i byte_of = _mm256_setr_epi64x(0, 0, 0x0101010101010101ll, 0x0101010101010101ll);
    const __m256i bit_of = _mm256_setr_epi64x(0x0808080808080808ll, (long long)0x8080808080808080ull,
                                              0x0808080808080808ll, (long long)0x8080808080808080ull);
    __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi16((short)codes), byte_of);
    __m256i minus = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit_of), bit_of);
    __m256i eight = _mm256_and_si256(_mm256_slli_epi16(grid, 3), _mm256_set1_epi8((char)0xf8));
    __m256i t = _mm256_add_epi8(_mm256_add_epi8(minus, minus), _mm256_set1_epi8(10));
    return _mm256_add_epi8(eight, t);
}

/* Three bits of each of sixteen sub-scales, even groups first, as 2 s + 1. */
LG_INLINE __m256i odd_scales_iq1_m(uint64_t words) {
    uint64_t even = 0, odd = 0;
    for (int g = 0; g < 8; g++) {
        int at = g / 2 * 16 + g % 2 * 6;
        even |= ((words >> at) & 7) << (8 * g);
        odd |= ((words >> (at + 3)) & 7) << (8 * g);
    }
    __m256i wide = _mm256_cvtepu8_epi16(_mm_set_epi64x((long long)odd, (long long)even));
    return _mm256_or_si256(_mm256_slli_epi16(wide, 1), _mm256_set1_epi16(1));
}

LG_INLINE void vector_iq1_m(const uint8_t *p, lg_vector256 *out) {
    uint64_t words = lg_load64(p + 48);
    out->d = scale_iq1_m(words);
    out->scale = odd_scales_iq1_m(words);
    out->bias = _mm256_mullo_epi16(out->scale, _mm256_set1_epi16(-9));
    for (int j = 0; j < 8; j++) {
        uint32_t low = lg_load32(p + 4 * j), high = lg_load16(p + 32 + 2 * j);
        __m256i grid = entries4(lg_iq1s_grid[(low & 255) | (high & 7) << 8],
                                lg_iq1s_grid[((low >> 8) & 255) | ((high >> 4) & 7) << 8],
                                lg_iq1s_grid[((low >> 16) & 255) | ((high >> 8) & 7) << 8],
                                lg_iq1s_grid[low >> 24 | ((high >> 12) & 7) << 8]);
        out->u[j] = shifted_iq1_m(grid, high);
    }
}

LG_INLINE void vector_iq4_xs(const uint8_t *p, lg_vector256 *out) {
    uint32_t low = lg_load32(p + 4), high = lg_load16(p + 2);
    uint64_t s = 0;
    for (int g = 0; g < 8; g++)
        s |= (uint64_t)(((low >> (4 * g)) & 15) | ((high >> (2 * g)) & 3) << 4) << (8 * g);
    out->d = lg_load16(p);
    out->scale = _mm256_sub_epi16(scales_of_pairs(s), _mm256_set1_epi16(32));
    for (int j = 0; j < 8; j++) vector_iq4(vector_nibbles(p + 8 + 16 * j), &out->u[j], &out->s[j]);
}

#endif
