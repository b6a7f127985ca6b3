/* Grid-type super-blocks to vectors; the layouts are those of dot_iq_unpack.h. */
#ifndef LG_DOT_IQ_NEON_H
#define LG_DOT_IQ_NEON_H

#include "dot_iq_unpack.h"
#include "dot_k_neon.h"
#include "dot_run32_neon.h"

LG_INLINE uint8x16_t entries2(const uint64_t *grid, uint64_t a, uint64_t b) {
    return vreinterpretq_u8_u64(vcombine_u64(vld1_u64(grid + a), vld1_u64(grid + b)));
}

LG_INLINE uint8x16_t entries4(const uint32_t *grid, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return vreinterpretq_u8_u32((uint32x4_t){grid[a], grid[b], grid[c], grid[d]});
}

/* Magnitudes negated where the 32 bits that all lanes of words hold are set. */
LG_INLINE lg_part signed_part(uint8x16_t first, uint8x16_t second, uint8x16_t words) {
    uint8x16_t minus = vector_bits(words, 0), minus2 = vector_bits(words, 1);
    return part_of(vsubq_u8(veorq_u8(first, minus), minus), vsubq_u8(veorq_u8(second, minus2), minus2));
}

/* Sign bytes 4 j .. of a head in every lane. */
LG_INLINE uint8x16_t signs_of(const lg_head256 *head, int j) {
    return vreinterpretq_u8_u32(vdupq_n_u32(vreinterpretq_u32_u8(head->signs[j / 4])[j % 4]));
}

/* Seven sign bits in every byte to eight: the eighth makes the number of signs even. */
LG_INLINE uint8x16_t even_signs(uint8x16_t seven) { return vsliq_n_u8(seven, vcntq_u8(seven), 7); }

/* 2 s + 1 */
LG_INLINE int32x4_t odd_of(uint32x4_t s) { return vreinterpretq_s32_u32(vorrq_u32(s << 1, vdupq_n_u32(1))); }

/* Four words of four sign codes and a sub-scale (XXS types). */
LG_INLINE void signs_and_scales(uint32x4_t words, uint8x16_t *signs, int32x4_t *scale) {
    uint32x4_t seven = words & 0x7fu;
    for (uint32_t k = 1; k < 4; k++) seven = vorrq_u32(seven, (words << k) & (0x7fu << (8 * k)));
    *signs = even_signs(vreinterpretq_u8_u32(seven));
    *scale = odd_of(words >> 28);
}

/* Sixteen half-byte sub-scales; the low half of a byte is the even group. */
LG_INLINE void odd_scales_of(const uint8_t *p, int32x4_t *scale) {
    uint8x8_t bytes = vld1_u8(p), even = vand_u8(bytes, vdup_n_u8(15)), odd = vshr_n_u8(bytes, 4);
    uint8x16_t s = vcombine_u8(vzip1_u8(even, odd), vzip2_u8(even, odd));
    widen16(vreinterpretq_s8_u8(vorrq_u8(s << 1, vdupq_n_u8(1))), scale);
}

/* Eight half bytes of four bytes, low halves first. */
LG_INLINE uint8x8_t half_bytes8(const uint8_t *p) {
    uint8x8_t bytes = vcreate_u8(lg_load32(p));
    return vzip1_u8(vand_u8(bytes, vdup_n_u8(15)), vshr_n_u8(bytes, 4));
}

LG_INLINE void head_iq2_xxs(const uint8_t *p, lg_head256 *head) {
    head->d = lg_load16(p);
    for (int h = 0; h < 2; h++) {
        uint32x4_t first = vreinterpretq_u32_u8(vld1q_u8(p + 2 + 32 * h));
        uint32x4_t second = vreinterpretq_u32_u8(vld1q_u8(p + 18 + 32 * h));
        signs_and_scales(vuzp2q_u32(first, second), &head->signs[h], &head->scale[h]);
    }
}

LG_INLINE lg_part part_iq2_xxs(const uint8_t *p, const lg_head256 *head, int j) {
    const uint8_t *i = p + 2 + 8 * j;
    return signed_part(entries2(lg_iq2xxs_grid, i[0], i[1]), entries2(lg_iq2xxs_grid, i[2], i[3]),
                       signs_of(head, j));
}

LG_INLINE void head_iq2_xs(const uint8_t *p, lg_head256 *head) {
    head->d = lg_load16(p);
    odd_scales_of(p + 66, head->scale);
    for (int h = 0; h < 2; h++) {
        uint8x16_t first = vld1q_u8(p + 2 + 32 * h), second = vld1q_u8(p + 18 + 32 * h);
        head->signs[h] = even_signs(vshrq_n_u8(vuzp2q_u8(first, second), 1)); /* the upper byte of each word */
    }
}

LG_INLINE lg_part part_iq2_xs(const uint8_t *p, const lg_head256 *head, int j) {
    uint64_t w = lg_load64(p + 2 + 8 * j);
    return signed_part(entries2(lg_iq2xs_grid, w & 511, (w >> 16) & 511),
                       entries2(lg_iq2xs_grid, (w >> 32) & 511, (w >> 48) & 511), signs_of(head, j));
}

LG_INLINE void head_iq2_s(const uint8_t *p, lg_head256 *head) {
    head->d = lg_load16(p);
    odd_scales_of(p + 74, head->scale);
}

LG_INLINE lg_part part_iq2_s(const uint8_t *p, const lg_head256 *head, int j) {
    const uint8_t *i = p + 2 + 4 * j;
    uint32_t h = p[66 + j];
    uint8x16_t first = entries2(lg_iq2s_grid, i[0] | ((h << 8) & 0x300), i[1] | ((h << 6) & 0x300));
    uint8x16_t second = entries2(lg_iq2s_grid, i[2] | ((h << 4) & 0x300), i[3] | ((h << 2) & 0x300));
    (void)head;
    return signed_part(first, second, word_everywhere(p + 34 + 4 * j));
}

LG_INLINE void head_iq3_xxs(const uint8_t *p, lg_head256 *head) {
    head->d = lg_load16(p);
    for (int h = 0; h < 2; h++)
        signs_and_scales(vreinterpretq_u32_u8(vld1q_u8(p + 66 + 16 * h)), &head->signs[h], &head->scale[h]);
}

LG_INLINE lg_part part_iq3_xxs(const uint8_t *p, const lg_head256 *head, int j) {
    const uint8_t *i = p + 2 + 8 * j;
    return signed_part(entries4(lg_iq3xxs_grid, i[0], i[1], i[2], i[3]),
                       entries4(lg_iq3xxs_grid, i[4], i[5], i[6], i[7]), signs_of(head, j));
}

LG_INLINE void head_iq3_s(const uint8_t *p, lg_head256 *head) {
    uint8x8_t s = half_bytes8(p + 106);
    head->d = lg_load16(p);
    widen8(vreinterpret_s8_u8(vorr_u8(s << 1, vdup_n_u8(1))), head->scale);
}

LG_INLINE lg_part part_iq3_s(const uint8_t *p, const lg_head256 *head, int j) {
    const uint8_t *i = p + 2 + 8 * j;
    uint32_t h = p[66 + j]; /* a bit is bit 8 of an index */
    uint8x16_t first = entries4(lg_iq3s_grid, i[0] | ((h << 8) & 256), i[1] | ((h << 7) & 256),
                                i[2] | ((h << 6) & 256), i[3] | ((h << 5) & 256));
    uint8x16_t second = entries4(lg_iq3s_grid, i[4] | ((h << 4) & 256), i[5] | ((h << 3) & 256),
                                 i[6] | ((h << 2) & 256), i[7] | ((h << 1) & 256));
    (void)head;
    return signed_part(first, second, word_everywhere(p + 74 + 4 * j));
}

/* 8 grid + t, t given as its sign: all bits set where it is -1. */
LG_INLINE uint8x16_t shifted(uint8x16_t grid, uint8x16_t minus) { return (grid << 3) + (minus | 1); }

LG_INLINE void head_iq1_s(const uint8_t *p, lg_head256 *head) {
    uint16x8_t words = vreinterpretq_u16_u8(vld1q_u8(p + 34)), three = (words >> 12) & 7;
    head->d = lg_load16(p);
    head->scale[0] = odd_of(vmovl_u16(vget_low_u16(three)));
    head->scale[1] = odd_of(vmovl_high_u16(three));
}

LG_INLINE lg_part part_iq1_s(const uint8_t *p, const lg_head256 *head, int j) {
    const uint8_t *i = p + 2 + 4 * j;
    uint32_t h = lg_load16(p + 34 + 2 * j);
    uint8x16_t minus = vdupq_n_u8((uint8_t)((int16_t)h >> 15));
    uint8x16_t first = entries2(lg_iq1s_grid, i[0] | ((h << 8) & 0x700), i[1] | ((h << 5) & 0x700));
    uint8x16_t second = entries2(lg_iq1s_grid, i[2] | ((h << 2) & 0x700), i[3] | ((h >> 1) & 0x700));
    (void)head;
    return part_of(shifted(first, minus), shifted(second, minus));
}

LG_INLINE void head_iq1_m(const uint8_t *p, lg_head256 *head) {
    const int32x4_t down = {0, -3, -6, -9};
    uint64_t words = lg_load64(p + 48);
    head->d = scale_iq1_m(words);
    for (int k = 0; k < 4; k++) {
        uint32x4_t word = vdupq_n_u32((uint32_t)(words >> (16 * k)) & 0xffffu);
        head->scale[k] = odd_of(vshlq_u32(word, down) & 7);
    }
}

LG_INLINE lg_part part_iq1_m(const uint8_t *p, const lg_head256 *head, int j) {
    const uint8x16_t bit_of = {8,   8,   8,   8,   8,   8,   8,   8,
                               128, 128, 128, 128, 128, 128, 128, 128}; /* the top bit of each half byte: t = -1 */
    const uint8_t *i = p + 4 * j;
    uint32_t h = p[32 + 2 * j], h2 = p[33 + 2 * j];
    uint8x16_t first = entries2(lg_iq1s_grid, i[0] | ((h << 8) & 0x700), i[1] | ((h << 4) & 0x700));
    uint8x16_t second = entries2(lg_iq1s_grid, i[2] | ((h2 << 8) & 0x700), i[3] | ((h2 << 4) & 0x700));
    (void)head;
    return part_of(shifted(first, vtstq_u8(vdupq_n_u8((uint8_t)h), bit_of)),
                   shifted(second, vtstq_u8(vdupq_n_u8((uint8_t)h2), bit_of)));
}

LG_INLINE void head_iq4_xs(const uint8_t *p, lg_head256 *head) {
    const int16x8_t down = {0, -2, -4, -6, -8, -10, -12, -14};
    uint16x8_t high = (vshlq_u16(vdupq_n_u16(lg_load16(p + 2)), down) & 3) << 4;
    int16x8_t s = vreinterpretq_s16_u16(vaddw_u8(high, half_bytes8(p + 4))) - 32;
    head->d = lg_load16(p);
    head->scale[0] = vmovl_s16(vget_low_s16(s));
    head->scale[1] = vmovl_high_s16(s);
}

LG_INLINE lg_part part_iq4_xs(const uint8_t *p, const lg_head256 *head, int j) {
    (void)head;
    return vector_iq4(vector_nibbles(p + 8 + 16 * j));
}

#endif
