/* K-type super-blocks to vectors; the layouts are those of dot_k_unpack.h. */
#ifndef LG_DOT_K_NEON_H
#define LG_DOT_K_NEON_H

#include "dot_k_unpack.h"
#include "dot_neon.h"

/* Eight or sixteen signed bytes as the scales of their groups. */
LG_INLINE void widen8(int8x8_t bytes, int32x4_t *scale) {
    int16x8_t wide = vmovl_s8(bytes);
    scale[0] = vmovl_s16(vget_low_s16(wide));
    scale[1] = vmovl_high_s16(wide);
}

LG_INLINE void widen16(int8x16_t bytes, int32x4_t *scale) {
    widen8(vget_low_s8(bytes), scale);
    widen8(vget_high_s8(bytes), scale + 2);
}

/* Bits `from` .. of every byte moved to `to`; mask keeps them in place first. */
LG_INLINE uint8x16_t move_bits(uint8x16_t v, int mask, int from, int to) {
    v = vandq_u8(v, vdupq_n_u8((uint8_t)mask));
    return from > to ? v >> (uint8_t)(from - to) : v << (uint8_t)(to - from);
}

/* Bytes 16 h .. of 32: bit fields of weights 32 j + 16 h .. */
LG_INLINE uint8x16_t nibbles_of_pair(const uint8_t *p, int j, int h) {
    return move_bits(vld1q_u8(p + j / 2 * 32 + 16 * h), 15 << (j % 2 * 4), j % 2 * 4, 0);
}

LG_INLINE uint8x16_t crumbs_of_four(const uint8_t *p, int j, int h) {
    return move_bits(vld1q_u8(p + j / 4 * 32 + 16 * h), 3 << (j % 4 * 2), j % 4 * 2, 0);
}

LG_INLINE void head_q2_k(const uint8_t *p, lg_head256 *head) {
    uint8x16_t bytes = vld1q_u8(p), minima = vshrq_n_u8(bytes, 4);
    head->d = lg_load16(p + 80);
    head->m = lg_load16(p + 82);
    widen16(vreinterpretq_s8_u8(vandq_u8(bytes, vdupq_n_u8(15))), head->scale);
    head->min[0] = vreinterpretq_s16_u16(vandq_u16(vreinterpretq_u16_u8(minima), vdupq_n_u16(255)));
    head->min[1] = vreinterpretq_s16_u16(vshrq_n_u16(vreinterpretq_u16_u8(minima), 8));
}

LG_INLINE lg_part part_q2_k(const uint8_t *p, const lg_head256 *head, int j) {
    (void)head;
    return part_of(crumbs_of_four(p + 16, j, 0), crumbs_of_four(p + 16, j, 1));
}

LG_INLINE void head_q3_k(const uint8_t *p, lg_head256 *head) {
    uint64_t low, high;
    scales_q3_k(p + 96, &low, &high);
    int8x16_t bytes = vcombine_s8(vcreate_s8(low), vcreate_s8(high));
    head->d = lg_load16(p + 108);
    widen16(vsubq_s8(bytes, vdupq_n_s8(32)), head->scale);
}

/* The third bit is set where 4 is not to be taken away. */
LG_INLINE uint8x16_t centred_q3_k(const uint8_t *p, int j, int h) {
    uint8x16_t less = move_bits(vmvnq_u8(vld1q_u8(p + 16 * h)), 1 << j, j, 2);
    return vsubq_u8(crumbs_of_four(p + 32, j, h), less);
}

LG_INLINE lg_part part_q3_k(const uint8_t *p, const lg_head256 *head, int j) {
    (void)head;
    return part_of(centred_q3_k(p, j, 0), centred_q3_k(p, j, 1));
}

LG_INLINE void head_q4_k(const uint8_t *p, lg_head256 *head) {
    uint64_t scales, minima;
    head->d = lg_load16(p);
    head->m = lg_load16(p + 2);
    scales_and_minima(p + 4, &scales, &minima);
    widen8(vcreate_s8(scales), head->scale);
    head->min[0] = vmovl_s8(vcreate_s8(minima));
}

LG_INLINE lg_part part_q4_k(const uint8_t *p, const lg_head256 *head, int j) {
    (void)head;
    return part_of(nibbles_of_pair(p + 16, j, 0), nibbles_of_pair(p + 16, j, 1));
}

LG_INLINE void head_q5_k(const uint8_t *p, lg_head256 *head) { head_q4_k(p, head); }

LG_INLINE uint8x16_t five_bits(const uint8_t *p, int j, int h) {
    return vorrq_u8(nibbles_of_pair(p + 48, j, h), move_bits(vld1q_u8(p + 16 + 16 * h), 1 << j, j, 4));
}

LG_INLINE lg_part part_q5_k(const uint8_t *p, const lg_head256 *head, int j) {
    (void)head;
    return part_of(five_bits(p, j, 0), five_bits(p, j, 1));
}

LG_INLINE void head_q6_k(const uint8_t *p, lg_head256 *head) {
    head->d = lg_load16(p + 208);
    widen16(vreinterpretq_s8_u8(vld1q_u8(p + 192)), head->scale);
}

LG_INLINE uint8x16_t centred_q6_k(const uint8_t *p, int j, int h) {
    int low = j % 4 / 2 * 4, high = j % 4 * 2;
    uint8x16_t four = move_bits(vld1q_u8(p + j / 4 * 64 + j % 2 * 32 + 16 * h), 15 << low, low, 0);
    uint8x16_t two = move_bits(vld1q_u8(p + 128 + j / 4 * 32 + 16 * h), 3 << high, high, 4);
    return vsubq_u8(vorrq_u8(four, two), vdupq_n_u8(32));
}

LG_INLINE lg_part part_q6_k(const uint8_t *p, const lg_head256 *head, int j) {
    (void)head;
    return part_of(centred_q6_k(p, j, 0), centred_q6_k(p, j, 1));
}

#endif
