/* Row products over unpacked blocks in plain C. Each type gives a function that unpacks one block;
 * the drivers are inlined into every instance, so that the form is a constant there. */
#ifndef LG_DOT_PORTABLE_H
#define LG_DOT_PORTABLE_H

#include "dot_sum.h"

/* A super-block as integers: value i is scale[i / 16] * w[i], times the factor of the form and d, less
 * min[i / 16] * m for types with minima. */
typedef struct {
    int8_t w[256];
    int16_t scale[16], min[16];
    uint16_t d, m;
} lg_block256;

/* A 32-value block: value i is w[i] * d + m. */
typedef struct {
    int8_t w[32];
    uint16_t d, m;
} lg_block32;

typedef void (*lg_unpack256)(const uint8_t *block, lg_block256 *out);
typedef void (*lg_unpack32)(const uint8_t *block, lg_block32 *out);

/* What sets a type apart. The others than the first say how the vector kernels hold it (dot_avx2.h,
 * dot_avx512.h). */
enum { LG_HAS_MIN = 1, LG_SIGNED = 2, LG_BIASED = 4, LG_LOOKED_UP = 8 };

typedef struct {
    int bytes;
    float factor; /* d_w = d * factor */
    int flags;
} lg_form256;

typedef struct {
    int bytes, flags;
    int centre; /* LG_BIASED: what the vector kernels leave added to each weight */
} lg_form32;

LG_INLINE int32_t dot_bytes(const int8_t *a, const int8_t *b, int count) {
    int32_t s = 0;
    for (int i = 0; i < count; i++) s += (int16_t)a[i] * (int16_t)b[i];
    return s;
}

LG_INLINE int32_t dot_block256(const lg_block256 *block, const int8_t *q) {
    int32_t s = 0;
    for (int g = 0; g < 16; g++) s += block->scale[g] * dot_bytes(block->w + 16 * g, q + 16 * g, 16);
    return s;
}

LG_INLINE int32_t dot_minima(const lg_block256 *block, const int16_t *sum) {
    int32_t m = 0;
    for (int g = 0; g < 16; g++) m += block->min[g] * sum[(g & 1) * 8 + g / 2];
    return m;
}

LG_INLINE void portable_super(const uint8_t *row, int64_t n, const lg_row *x, float *y, int tokens,
                              lg_form256 form, lg_unpack256 unpack) {
    float partials[LG_TILE][8] = {{0.0f}};
    lg_block256 block;
    for (int64_t b = 0; b < n / 256; b++) {
        unpack(row + b * form.bytes, &block);
        float d = lg_half(block.d) * form.factor;
        float m = form.flags & LG_HAS_MIN ? lg_half(block.m) : 0.0f;
        for (int t = 0; t < tokens; t++) {
            float dx = x[t].d[b];
            sum_super(partials[t], b, d * dx, dot_block256(&block, x[t].q + 256 * b));
            if (form.flags & LG_HAS_MIN)
                sum_minimum(partials[t], b, m * dx, dot_minima(&block, x[t].sum + 16 * b));
        }
    }
    for (int t = 0; t < tokens; t++) y[t] = sum_finish(partials[t]);
}

LG_INLINE void portable_run32(const uint8_t *row, int64_t n, const lg_row *x, float *y, int tokens,
                              lg_form32 form, lg_unpack32 unpack) {
    float partials[LG_TILE][8] = {{0.0f}};
    lg_block32 block;
    int64_t blocks = n / 32;
    for (int64_t r = 0; r < (blocks + 7) / 8; r++) {
        float p[LG_TILE][8] = {{0.0f}};
        for (int k = 0; k < 8 && 8 * r + k < blocks; k++) {
            int64_t b = 8 * r + k;
            unpack(row + b * form.bytes, &block);
            float d = lg_half(block.d), m = form.flags & LG_HAS_MIN ? lg_half(block.m) : 0.0f;
            for (int t = 0; t < tokens; t++) {
                float dx = x[t].d[b];
                p[t][k] = (d * dx) * (float)dot_bytes(block.w, x[t].q + 32 * b, 32);
                if (form.flags & LG_HAS_MIN) p[t][k] = lg_fma(m * dx, (float)x[t].sum[b], p[t][k]);
            }
        }
        for (int t = 0; t < tokens; t++) sum_run(partials[t], r, p[t]);
    }
    for (int t = 0; t < tokens; t++) y[t] = sum_finish(partials[t]);
}

#endif
