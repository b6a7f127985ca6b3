/* Grid-type super-blocks to vectors; the layouts are those of dot_iq_unpack.h. */
#ifndef LG_DOT_IQ_AVX2_H
#define LG_DOT_IQ_AVX2_H

#include "dot_avx2.h"
#include "dot_iq_unpack.h"
#include "dot_k_avx2.h"
#include "dot_run32_avx2.h"

LG_INLINE __m128i entries2(const uint64_t *grid, uint32_t a, uint32_t b) {
    __m128 low = _mm_castsi128_ps(_mm_loadu_si64(grid + a));
    return _mm_castps_si128(_mm_loadh_pi(low, (const __m64 *)(const void *)(grid + b)));
}

/* An entry in every place; written out, as the compiler would make insertions of it, which all need the unit
 * that exchanges lanes. */
LG_INLINE __m128i everywhere(const uint32_t *entry) {
    __m128i v;
    __asm__("vpbroadcastd %1, %0" : "=x"(v) : "m"(*entry));
    return v;
}

LG_INLINE __m128i entries4_short(const uint32_t *grid, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    __m128i v = _mm_insert_epi32(_mm_loadu_si32(grid + a), (int)grid[b], 1);
    return _mm_blend_epi32(_mm_blend_epi32(v, everywhere(grid + c), 4), everywhere(grid + d), 8);
}

LG_INLINE __m256i join128(__m128i low, __m128i high) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

LG_INLINE __m256i entries4(const uint64_t *grid, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return join128(entries2(grid, a, b), entries2(grid, c, d));
}

/* Magnitudes with sign bits, -1 where set and +1 where not. */
LG_INLINE lg_part signed_part(__m256i u, const uint8_t *bits) {
    return (lg_part){u, _mm256_or_si256(vector_bits(lg_load32(bits)), _mm256_set1_epi8(1)), u};
}

/* For seven sign bits in every byte, a byte with the eighth, which makes their number even, and with `also`. */
LG_INLINE __m256i eighth_signs(__m256i seven, char also) {
    const __m256i odd = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0));
    __m256i four = _mm256_and_si256(_mm256_xor_si256(seven, _mm256_srli_epi16(seven, 4)), _mm256_set1_epi8(15));
    return _mm256_shuffle_epi8(_mm256_or_si256(odd, _mm256_set1_epi8(also)), four);
}

/* Eight words of four sign codes and a sub-scale (XXS types). A code c of eight signs is kept as the bytes
 * 2 c + 1 and c | 1 (with its eighth sign): shifted left by 6, 4, 2 and 0 as one number of 16 bits, they have
 * two of the signs each time on top, and a bit below that keeps the byte from being zero. The empty statements
 * make signs and scales go through memory, where spreading them costs nothing. */
LG_INLINE void signs_and_scales(__m256i words, lg_head256 *head) {
    const __m256i top_twice = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(3, -1, 3, -1, 7, -1, 7, -1, 11, -1, 11, -1, 15, -1, 15, -1));
    __m256i fourteen = _mm256_blend_epi16(words, _mm256_slli_epi32(words, 2), 0xaa);
    __m256i seven = _mm256_add_epi16(_mm256_and_si256(fourteen, _mm256_set1_epi16(0x3fff)),
                                     _mm256_and_si256(fourteen, _mm256_set1_epi16(0x3f80)));
    __m256i eight = _mm256_or_si256(seven, eighth_signs(seven, 1));
    __m256i twice = _mm256_or_si256(_mm256_add_epi8(seven, seven), _mm256_set1_epi8(1));
    _mm256_storeu_si256((__m256i *)(void *)head->codes[0], _mm256_unpacklo_epi8(twice, eight));
    _mm256_storeu_si256((__m256i *)(void *)head->codes[1], _mm256_unpackhi_epi8(twice, eight));
    __asm__("" : "+m"(head->codes));
    __m256i scales = _mm256_srli_epi16(_mm256_shuffle_epi8(words, top_twice), 3); /* 2 s and a bit of a code */
    _mm256_storeu_si256((__m256i *)(void *)head->pairs, _mm256_or_si256(scales, _mm256_set1_epi16(1)));
    __asm__("" : "+m"(head->pairs));
}

/* Magnitudes with the signs of a word, which is at place `at` of the vector that signs_and_scales took. */
LG_INLINE lg_part looked_up_part(__m256i u, const lg_head256 *head, int at) {
    const __m256i code_of = _mm256_setr_epi64x(0x0100010001000100ll, 0x0302030203020302ll, 0x0504050405040504ll,
                                               0x0706070607060706ll);
    const __m256i shift = _mm256_set1_epi64x(0x0001000400100040ll); /* 1 << 6, 4, 2, 0 */
    const uint8_t *codes = head->codes[at / 2 % 2] + 16 * (at / 4) + 8 * (at % 2);
    __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi64x((long long)lg_load64(codes)), code_of);
    return (lg_part){u, _mm256_mullo_epi16(spread, shift), _mm256_set1_epi32(head->pairs[at])};
}

/* 2 s + 1 for bytes s. */
LG_INLINE __m256i odd_of(__m256i s) {
    return _mm256_or_si256(_mm256_slli_epi16(s, 1), _mm256_set1_epi16(1));
}

/* Half-byte sub-scales for 16 weights each: the low half of a byte is the even group. */
LG_INLINE __m256i odd_scales_of(uint64_t packed) {
    const uint64_t mask = 0x0f0f0f0f0f0f0f0full;
    __m128i s = _mm_set_epi64x((long long)((packed >> 4) & mask), (long long)(packed & mask));
    return odd_of(_mm256_cvtepu8_epi16(s));
}

/* Half bytes for 32 weights each. */
LG_INLINE __m128i half_bytes8(uint32_t packed) {
    __m128i bytes = _mm_cvtepu8_epi16(_mm_cvtsi32_si128((int)packed));
    __m128i both = _mm_or_si128(bytes, _mm_slli_epi16(bytes, 4));
    return _mm_and_si128(both, _mm_set1_epi8(15));
}

/* Words 0, 1, 4, 5, 2, 3, 6, 7. */
LG_INLINE void head_iq2_xxs(const uint8_t *p, lg_head256 *head) {
    __m256 first = _mm256_castsi256_ps(load256(p + 2)), second = _mm256_castsi256_ps(load256(p + 34));
    head->d = lg_load16(p);
    signs_and_scales(_mm256_castps_si256(_mm256_shuffle_ps(first, second, 0xdd)), head);
}

LG_INLINE lg_part part_iq2_xxs(const uint8_t *p, const lg_head256 *head, int j) {
    const uint8_t *i = p + 2 + 8 * j;
    __asm__ volatile("" : "+r"(i)); /* loads of many parts at once would not fit the registers */
    __m256i u = entries4(lg_iq2xxs_grid, i[0], i[1], i[2], i[3]);
    return looked_up_part(u, head, j % 2 + j / 2 % 2 * 4 + j / 4 * 2);
}

LG_INLINE void head_iq2_xs(const uint8_t *p, lg_head256 *head) {
    __m256i low = _mm256_srli_epi16(load256(p + 2), 9), high = _mm256_srli_epi16(load256(p + 34), 9);
    __m256i seven = _mm256_permute4x64_epi64(_mm256_packus_epi16(low, high), 0xd8);
    _mm256_storeu_si256((__m256i *)(void *)head->signs, _mm256_or_si256(seven, eighth_signs(seven, 0)));
    head->d = lg_load16(p);
    head->scale = odd_scales_of(lg_load64(p + 66));
}

LG_INLINE lg_part part_iq2_xs(const uint8_t *p, const lg_head256 *head, int j) {
    uint64_t w = lg_load64(p + 2 + 8 * j);
    __m256i u = entries4(lg_iq2xs_grid, w & 511, (w >> 16) & 511, (w >> 32) & 511, (w >> 48) & 511);
    return signed_part(u, head->signs + 4 * j);
}

/* Bits 8 and up of 16 indices over their low bytes, into index[0..16). The empty statement makes them leave
 * the vector through memory: extracting them one by one would keep the shuffle unit busy. */
LG_INLINE void put_indices(const uint8_t *low, __m256i high, uint16_t *index) {
    __m256i whole = _mm256_or_si256(_mm256_cvtepu8_epi16(load128(low)), high);
    _mm256_storeu_si256((__m256i *)(void *)index, whole);
    __asm__("" : "+m"(*(uint16_t(*)[16])index));
}

LG_INLINE void head_iq2_s(const uint8_t *p, lg_head256 *head) {
    const __m256i to_lanes = _mm256_setr_epi8(0, -1, 0, -1, 0, -1, 0, -1, 1, -1, 1, -1, 1, -1, 1, -1, 2, -1, 2, -1,
                                              2, -1, 2, -1, 3, -1, 3, -1, 3, -1, 3, -1);
    const __m256i shift = _mm256_set1_epi64x(0x0004001000400100ll); /* 1 << 8, 6, 4, 2 */
    head->d = lg_load16(p);
    head->scale = odd_scales_of(lg_load64(p + 74));
    for (int k = 0; k < 2; k++) { /* a byte holds bits 8 and 9 of four indices */
        __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32((int)lg_load32(p + 66 + 4 * k)), to_lanes);
        __m256i high = _mm256_and_si256(_mm256_mullo_epi16(bytes, shift), _mm256_set1_epi16(0x300));
        put_indices(p + 2 + 16 * k, high, head->index + 16 * k);
    }
}

LG_INLINE lg_part part_iq2_s(const uint8_t *p, const lg_head256 *head, int j) {
    const uint16_t *i = head->index + 4 * j;
    return signed_part(entries4(lg_iq2s_grid, i[0], i[1], i[2], i[3]), p + 34 + 4 * j);
}

LG_INLINE void head_iq3_xxs(const uint8_t *p, lg_head256 *head) {
    head->d = lg_load16(p);
    signs_and_scales(load256(p + 66), head);
}

/* Indices are loaded for half of the words and shifted out of a register for the others: loads alone would be
 * the limit. */
LG_INLINE lg_part part_iq3_xxs(const uint8_t *p, const lg_head256 *head, int j) {
    const uint8_t *index = p + 2 + 8 * j;
    uint32_t i[8];
    __asm__ volatile("" : "+r"(index)); /* as above */
    if (j % 2) {
        for (int k = 0; k < 8; k++) i[k] = index[k];
    } else {
        uint64_t left = lg_load64(index);
        for (int k = 0; k < 8; k += 2, left >>= 16) {
            __asm__("" : "+r"(left));
            i[k] = left & 255;
            i[k + 1] = (left >> 8) & 255;
        }
    }
    __m128i low = entries4_short(lg_iq3xxs_grid, i[0], i[1], i[2], i[3]);
    __m128i high = entries4_short(lg_iq3xxs_grid, i[4], i[5], i[6], i[7]);
    return looked_up_part(join128(low, high), head, j);
}

LG_INLINE void head_iq3_s(const uint8_t *p, lg_head256 *head) {
    const __m256i bit_of = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384,
                                             -32768);
    __m128i s = half_bytes8(lg_load32(p + 106));
    head->d = lg_load16(p);
    head->scale = odd_of(_mm256_broadcastsi128_si256(_mm_cvtepu8_epi16(s)));
    for (int k = 0; k < 4; k++) { /* a bit is bit 8 of an index */
        __m256i bits = _mm256_and_si256(_mm256_set1_epi16((short)lg_load16(p + 66 + 2 * k)), bit_of);
        __m256i high = _mm256_and_si256(_mm256_cmpeq_epi16(bits, bit_of), _mm256_set1_epi16(256));
        put_indices(p + 2 + 16 * k, high, head->index + 16 * k);
    }
}

LG_INLINE lg_part part_iq3_s(const uint8_t *p, const lg_head256 *head, int j) {
    const uint16_t *i = head->index + 8 * j;
    __m128i low = entries4_short(lg_iq3s_grid, i[0], i[1], i[2], i[3]);
    __m128i high = entries4_short(lg_iq3s_grid, i[4], i[5], i[6], i[7]);
    return signed_part(join128(low, high), p + 74 + 4 * j);
}

/* With o = 2 s + 1 and u = grid + 1: o (8 grid + t) = 8 o u + o (t - 8), t the same for 32 weights. */
LG_INLINE void head_iq1_s(const uint8_t *p, lg_head256 *head) {
    __m128i words = load128(p + 34);
    __m128i three = _mm_and_si128(_mm_srli_epi16(words, 12), _mm_set1_epi16(7));
    __m128i odd = _mm_or_si128(_mm_slli_epi16(three, 1), _mm_set1_epi16(1));
    __m128i minus = _mm_srai_epi16(words, 15); /* -1 where t = -1 */
    __m128i less = _mm_add_epi16(_mm_slli_epi16(minus, 1), _mm_set1_epi16(-7));
    head->d = lg_load16(p);
    head->scale = _mm256_broadcastsi128_si256(_mm_slli_epi16(odd, 3));
    head->bias = _mm256_broadcastsi128_si256(_mm_mullo_epi16(odd, less));
}

LG_INLINE lg_part part_iq1_s(const uint8_t *p, const lg_head256 *head, int j) {
    const uint8_t *i = p + 2 + 4 * j;
    uint32_t h = lg_load16(p + 34 + 2 * j);
    __m256i grid = entries4(lg_iq1s_grid, i[0] | ((h << 8) & 0x700), i[1] | ((h << 5) & 0x700),
                            i[2] | ((h << 2) & 0x700), i[3] | ((h >> 1) & 0x700));
    (void)head;
    return plain_part(_mm256_add_epi8(grid, _mm256_set1_epi8(1)));
}

/* Three bits of each of sixteen sub-scales, even groups first, as 2 s + 1. */
LG_INLINE __m256i odd_scales_iq1_m(uint64_t words) {
    const __m256i shift = _mm256_setr_epi32(0, 6, 0, 6, 0, 6, 0, 6), three = _mm256_set1_epi32(7);
    __m256i wide = _mm256_cvtepu16_epi32(_mm_cvtsi64_si128((long long)words)); /* four words, low half */
    wide = _mm256_permutevar8x32_epi32(wide, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
    __m256i even = _mm256_and_si256(_mm256_srlv_epi32(wide, shift), three);
    __m256i odd = _mm256_and_si256(_mm256_srlv_epi32(_mm256_srli_epi32(wide, 3), shift), three);
    return odd_of(_mm256_permute4x64_epi64(_mm256_packus_epi32(even, odd), 0xd8));
}

LG_INLINE void head_iq1_m(const uint8_t *p, lg_head256 *head) {
    uint64_t words = lg_load64(p + 48);
    head->d = scale_iq1_m(words);
    head->scale = odd_scales_iq1_m(words);
    head->bias = _mm256_mullo_epi16(head->scale, _mm256_set1_epi16(-9));
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

LG_INLINE lg_part part_iq1_m(const uint8_t *p, const lg_head256 *head, int j) {
    const uint8_t *i = p + 4 * j;
    uint32_t h = lg_load16(p + 32 + 2 * j);
    __m256i grid = entries4(lg_iq1s_grid, i[0] | ((h << 8) & 0x700), i[1] | ((h << 4) & 0x700),
                            i[2] | (h & 0x700), i[3] | ((h >> 4) & 0x700));
    (void)head;
    return plain_part(shifted_iq1_m(grid, h));
}

LG_INLINE void head_iq4_xs(const uint8_t *p, lg_head256 *head) {
    const __m128i shift = _mm_setr_epi16(1 << 14, 1 << 12, 1 << 10, 1 << 8, 1 << 6, 1 << 4, 1 << 2, 1);
    __m128i low = _mm_cvtepu8_epi16(half_bytes8(lg_load32(p + 4)));
    /* Two bits of each group: moved to the top of their word, then down to bits 4 and 5. */
    __m128i top = _mm_mullo_epi16(_mm_set1_epi16((short)lg_load16(p + 2)), shift);
    __m128i high = _mm_and_si128(_mm_srli_epi16(top, 10), _mm_set1_epi16(0x30));
    __m128i s = _mm_sub_epi16(_mm_or_si128(low, high), _mm_set1_epi16(32));
    head->d = lg_load16(p);
    head->scale = _mm256_broadcastsi128_si256(s);
}

LG_INLINE lg_part part_iq4_xs(const uint8_t *p, const lg_head256 *head, int j) {
    lg_part w;
    (void)head;
    vector_iq4(vector_nibbles(p + 8 + 16 * j), &w.u, &w.s);
    return w;
}

#endif
