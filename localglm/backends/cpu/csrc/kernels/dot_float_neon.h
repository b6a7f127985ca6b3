/* Products of float rows with NEON. */
#ifndef LG_DOT_FLOAT_NEON_H
#define LG_DOT_FLOAT_NEON_H

#include <arm_neon.h>

#include "../lg_blocks.h"

typedef float32x4_t (*lg_widen4)(const uint8_t *p);
LG_INLINE float32x4_t widen4_f32(const uint8_t *p) { return vreinterpretq_f32_u8(vld1q_u8(p)); }
LG_INLINE float32x4_t widen4_f16(const uint8_t *p) { return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p))); }
LG_INLINE float32x4_t widen4_bf16(const uint8_t *p) {
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
}

enum { LG_FLOAT_TOKENS = 4 };

/* Partials first .. first + 4 * vectors of each token over whole tiles of 32 columns. */
LG_INLINE void neon_partials(const uint8_t *row, int64_t whole, const lg_row *x, float partials[][32], int tokens,
                             int first, int vectors, int bytes, lg_widen4 widen) {
    float32x4_t a[LG_FLOAT_TOKENS][8];
    for (int t = 0; t < tokens; t++)
        for (int k = 0; k < vectors; k++) a[t][k] = vdupq_n_f32(0.0f);
    for (int64_t i = first; i < whole; i += 32)
        for (int k = 0; k < vectors; k++) {
            float32x4_t w = widen(row + (i + 4 * k) * bytes);
            for (int t = 0; t < tokens; t++) a[t][k] = vfmaq_f32(a[t][k], w, vld1q_f32(x[t].x + i + 4 * k));
        }
    for (int t = 0; t < tokens; t++)
        for (int k = 0; k < vectors; k++) vst1q_f32(partials[t] + first + 4 * k, a[t][k]);
}

/* One token keeps all 32 partials in registers; four tokens do so for half of them at a time. */
LG_INLINE void neon_whole_tiles(const uint8_t *row, int64_t whole, const lg_row *x, float partials[][32], int tokens,
                                int bytes, lg_widen4 widen) {
    const int vectors = tokens == 1 ? 8 : 4;
    for (int first = 0; first < 32; first += 4 * vectors)
        neon_partials(row, whole, x, partials, tokens, first, vectors, bytes, widen);
}

#endif
