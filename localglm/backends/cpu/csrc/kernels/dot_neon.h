/* Row products with the dot-product instructions of NEON, which multiply sixteen signed bytes by sixteen and add
 * them four to a 32-bit lane. Weights are held as signed bytes with everything but the scale in them (the centre,
 * the sign, the shift of IQ1 types), at most 128 in magnitude; |x| <= 127 by section 1. A lane takes at most eight
 * groups times 8 * 128 * 127 times a scale of magnitude <= 128: far below 2^31. */
#ifndef LG_DOT_NEON_H
#define LG_DOT_NEON_H

#include <arm_neon.h>

#include "dot_portable.h"

/* What a super-block says about all its weights: scales in the order of the groups, eight or sixteen; minima in the
 * order of lg_row.sum, types with groups of 32 fill the first eight. Types that compute their sign bits keep them here. */
typedef struct {
    int32x4_t scale[4];
    int16x8_t min[2];
    uint8x16_t signs[2];
    uint16_t d, m;
} lg_head256;

/* 32 weights in order. */
typedef struct {
    int8x16_t w[2];
} lg_part;

typedef struct {
    lg_part part;
    uint16_t d, m;
} lg_vector32;

/* Weights 32 j .. 32 j + 31 are made where they are used, so that they stay in registers. */
typedef void (*lg_head_fn)(const uint8_t *block, lg_head256 *head);
typedef lg_part (*lg_part_fn)(const uint8_t *block, const lg_head256 *head, int j);
typedef void (*lg_vector_unpack32)(const uint8_t *block, lg_vector32 *out);

LG_INLINE float float_of_half(uint16_t bits) {
    __fp16 half;
    memcpy(&half, &bits, 2);
    return (float)half;
}

LG_INLINE lg_part part_of(uint8x16_t first, uint8x16_t second) {
    return (lg_part){{vreinterpretq_s8_u8(first), vreinterpretq_s8_u8(second)}};
}

LG_INLINE int32x4_t times16(int32x4_t sum, int8x16_t w, const int8_t *q) { return vdotq_s32(sum, w, vld1q_s8(q)); }

LG_INLINE int32x4_t times32(lg_part p, const int8_t *q) {
    return times16(times16(vdupq_n_s32(0), p.w[0], q), p.w[1], q + 16);
}

/* Without this the compiler takes the lanes before it widens them: two instructions a group instead of none. */
LG_INLINE void keep_wide(int32x4_t *scale, int group) {
    for (int k = 0; k < 64 / group; k++) __asm__("" : "+w"(scale[k]));
}

/* Scale of group g; g is known when the loops are unrolled, so that this is a lane of a multiplication. */
LG_INLINE int32_t scale_of(const lg_head256 *head, int g) { return head->scale[g / 4][g % 4]; }

/* Block b against each token: vectors whose lanes add up to S. */
LG_INLINE void multiply256(const uint8_t *block, const lg_head256 *head, int64_t b, const lg_row *x, int32x4_t *s,
                           int tokens, int group, lg_part_fn part) {
    for (int t = 0; t < tokens; t++) s[t] = vdupq_n_s32(0);
#pragma clang loop unroll(full)
    for (int j = 0; j < 8; j++) {
        lg_part w = part(block, head, j);
#pragma clang loop unroll(full)
        for (int t = 0; t < tokens; t++) {
            const int8_t *q = x[t].q + 256 * b + 32 * j;
            if (group == 32) {
                s[t] = vmlaq_n_s32(s[t], times32(w, q), scale_of(head, j));
                continue;
            }
            s[t] = vmlaq_n_s32(s[t], times16(vdupq_n_s32(0), w.w[0], q), scale_of(head, 2 * j));
            s[t] = vmlaq_n_s32(s[t], times16(vdupq_n_s32(0), w.w[1], q + 16), scale_of(head, 2 * j + 1));
        }
    }
}

LG_INLINE int32_t minima_times(const lg_head256 *head, const int16_t *sum, int group) {
    int16x8_t even = vld1q_s16(sum), odd = vld1q_s16(sum + 8);
    if (group == 32) even = vaddq_s16(even, odd); /* at most 32 * 127 */
    int32x4_t m = vmull_s16(vget_low_s16(head->min[0]), vget_low_s16(even));
    m = vmlal_high_s16(m, head->min[0], even);
    if (group == 32) return vaddvq_s32(m);
    m = vmlal_s16(m, vget_low_s16(head->min[1]), vget_low_s16(odd));
    return vaddvq_s32(vmlal_high_s16(m, head->min[1], odd));
}

LG_INLINE void neon_super(const uint8_t *row, int64_t n, const lg_row *x, float *y, int tokens, lg_form256 form,
                          int group, lg_head_fn read_head, lg_part_fn part) {
    float partials[LG_TILE][8] = {{0.0f}};
#pragma clang loop unroll(disable)
    for (int64_t b = 0; b < n / 256; b++) {
        const uint8_t *block = row + b * form.bytes;
        int32x4_t s[LG_TILE];
        lg_head256 head;
        read_head(block, &head);
        keep_wide(head.scale, group);
        multiply256(block, &head, b, x, s, tokens, group, part);
        float d = float_of_half(head.d) * form.factor;
        float m = form.flags & LG_HAS_MIN ? float_of_half(head.m) : 0.0f;
#pragma clang loop unroll(full)
        for (int t = 0; t < tokens; t++) {
            float dx = x[t].d[b];
            sum_super(partials[t], b, d * dx, vaddvq_s32(s[t]));
            if (form.flags & LG_HAS_MIN)
                sum_minimum(partials[t], b, m * dx, minima_times(&head, x[t].sum + 16 * b, group));
        }
    }
    for (int t = 0; t < tokens; t++) y[t] = sum_finish(partials[t]);
}

/* Lane k of the result is the sum of the lanes of v[k]. */
LG_INLINE int32x4_t add_lanes4(const int32x4_t *v) {
    return vpaddq_s32(vpaddq_s32(v[0], v[1]), vpaddq_s32(v[2], v[3]));
}

/* p of four neighbouring blocks for one token. */
LG_INLINE float32x4_t products4(float32x4_t d, float32x4_t m, const int32x4_t *s, const float *dx,
                                const int16_t *sum, int flags) {
    float32x4_t scale = vld1q_f32(dx), p = vmulq_f32(vmulq_f32(d, scale), vcvtq_f32_s32(add_lanes4(s)));
    if (flags & LG_HAS_MIN)
        p = vfmaq_f32(p, vmulq_f32(m, scale), vcvtq_f32_s32(vmovl_s16(vld1_s16(sum))));
    return p;
}

/* The half-precision fields of four blocks. */
LG_INLINE float32x4_t halves4(const lg_vector32 *w, int second) {
    uint16x4_t bits = {second ? w[0].m : w[0].d, second ? w[1].m : w[1].d, second ? w[2].m : w[2].d,
                       second ? w[3].m : w[3].d};
    return vcvt_f32_f16(vreinterpret_f16_u16(bits));
}

/* Run r of eight whole 32-value blocks. */
LG_INLINE void run8(const uint8_t *row, int64_t r, const lg_row *x, float partials[][8], int tokens,
                    lg_form32 form, lg_vector_unpack32 unpack) {
    lg_vector32 w[8];
    float32x4_t d[2], m[2];
#pragma clang loop unroll(full)
    for (int k = 0; k < 8; k++) unpack(row + (8 * r + k) * form.bytes, &w[k]);
    for (int h = 0; h < 2; h++) {
        d[h] = halves4(w + 4 * h, 0);
        m[h] = form.flags & LG_HAS_MIN ? halves4(w + 4 * h, 1) : d[h];
    }
#pragma clang loop unroll(disable)
    for (int t = 0; t < tokens; t++) {
        int32x4_t s[8];
#pragma clang loop unroll(full)
        for (int k = 0; k < 8; k++) s[k] = times32(w[k].part, x[t].q + 256 * r + 32 * k);
        const float *dx = x[t].d + 8 * r;
        const int16_t *sum = x[t].sum + 8 * r;
        sum_run8(partials[t], r, products4(d[0], m[0], s, dx, sum, form.flags),
                 products4(d[1], m[1], s + 4, dx + 4, sum + 4, form.flags));
    }
}

/* The last run of a row when it has fewer than eight blocks. */
LG_INLINE void run_rest(const uint8_t *row, int64_t r, int64_t blocks, const lg_row *x, float partials[][8],
                        int tokens, lg_form32 form, lg_vector_unpack32 unpack) {
    float p[LG_TILE][8] = {{0.0f}};
    for (int64_t b = 8 * r; b < blocks; b++) {
        lg_vector32 w;
        unpack(row + b * form.bytes, &w);
        for (int t = 0; t < tokens; t++) {
            float dx = x[t].d[b], s = (float)vaddvq_s32(times32(w.part, x[t].q + 32 * b));
            float value = (float_of_half(w.d) * dx) * s;
            if (form.flags & LG_HAS_MIN) value = lg_fma(float_of_half(w.m) * dx, (float)x[t].sum[b], value);
            p[t][b & 7] = value;
        }
    }
    for (int t = 0; t < tokens; t++) sum_run(partials[t], r, p[t]);
}

LG_INLINE void neon_run32(const uint8_t *row, int64_t n, const lg_row *x, float *y, int tokens, lg_form32 form,
                          lg_vector_unpack32 unpack) {
    float partials[LG_TILE][8] = {{0.0f}};
    int64_t blocks = n / 32, whole = blocks / 8;
    for (int64_t r = 0; r < whole; r++) run8(row, r, x, partials, tokens, form, unpack);
    if (blocks % 8) run_rest(row, whole, blocks, x, partials, tokens, form, unpack);
    for (int t = 0; t < tokens; t++) y[t] = sum_finish(partials[t]);
}

#endif
