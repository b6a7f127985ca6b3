/* Products of decoded panels (dot_panel_neon.h). */
#include "dot_types.h"

#if defined(LG_HAS_NEON)
#include "dot_panel_neon.h"

/* Two vectors of four rows. */
typedef struct {
    int32x4_t v[2];
} rows_i;

typedef struct {
    float32x4_t v[2];
} rows_f;

LG_INLINE rows_f load_rows(const float *p) { return (rows_f){{vld1q_f32(p), vld1q_f32(p + 4)}}; }

/* Step `lane` of sixteen columns against each token. */
#define STEP(lane)                                                                             \
    for (int h = 0; h < 2; h++) {                                                              \
        int8x16_t four_rows = vld1q_s8(w[lane][4 * h]);                                        \
        for (int t = 0; t < tokens; t++) sum[t].v[h] = vdotq_laneq_s32(sum[t].v[h], four_rows, q[t], lane); \
    }

LG_INLINE void group_sums(const int8_t (*w)[LG_NEON_ROWS][4], const lg_row *x, int64_t column, int columns,
                          rows_i *sum, int tokens) {
    for (int t = 0; t < tokens; t++) sum[t].v[0] = sum[t].v[1] = vdupq_n_s32(0);
#pragma clang loop unroll(full)
    for (int c = 0; c < columns; c += 16, w += 4) {
        int8x16_t q[LG_NEON_TOKENS];
        for (int t = 0; t < tokens; t++) q[t] = vld1q_s8(x[t].q + column + c);
        STEP(0)
        STEP(1)
        STEP(2)
        STEP(3)
    }
}

LG_INLINE void block_sums(const lg_neon_block *block, int64_t b, const lg_row *x, rows_i *s, int tokens, int group) {
    for (int t = 0; t < tokens; t++) s[t].v[0] = s[t].v[1] = vdupq_n_s32(0);
#pragma clang loop unroll(disable)
    for (int g = 0; g < 256 / group; g++) {
        rows_i sum[LG_NEON_TOKENS];
        group_sums(block->w + g * group / 4, x, 256 * b + g * group, group, sum, tokens);
        for (int h = 0; h < 2; h++) {
            int32x4_t scale = vld1q_s32(block->scale[g] + 4 * h);
            for (int t = 0; t < tokens; t++) s[t].v[h] = vmlaq_s32(s[t].v[h], sum[t].v[h], scale);
        }
    }
}

/* Eight minima against the sums they belong to. */
LG_INLINE rows_i add_minima(rows_i m, const int16_t (*min)[LG_NEON_ROWS], int16x8_t sum) {
#pragma clang loop unroll(full)
    for (int g = 0; g < 8; g++) {
        int16x8_t rows = vld1q_s16(min[g]);
        m.v[0] = vmlal_n_s16(m.v[0], vget_low_s16(rows), sum[g]);
        m.v[1] = vmlal_n_s16(m.v[1], vget_high_s16(rows), sum[g]);
    }
    return m;
}

LG_INLINE rows_i minimum_sums(const lg_neon_block *block, const int16_t *sum, int group) {
    rows_i m = {{vdupq_n_s32(0), vdupq_n_s32(0)}};
    int16x8_t even = vld1q_s16(sum), odd = vld1q_s16(sum + 8);
    if (group == 32) return add_minima(m, block->min, vaddq_s16(even, odd)); /* at most 32 * 127 */
    return add_minima(add_minima(m, block->min, even), block->min + 8, odd);
}

LG_INLINE void store_rows(float *y, rows_f total, int count) {
    float all[LG_NEON_ROWS];
    for (int h = 0; h < 2; h++) vst1q_f32(all + 4 * h, total.v[h]);
    memcpy(y, all, (size_t)count * sizeof *y);
}

/* sum_finish of each row. */
LG_INLINE rows_f finish(const rows_f *partials) {
    rows_f y = partials[0];
    for (int j = 1; j < 8; j++)
        for (int h = 0; h < 2; h++) y.v[h] = vaddq_f32(y.v[h], partials[j].v[h]);
    return y;
}

LG_INLINE void super_tokens(const lg_neon_block *panel, int64_t blocks, int count, const lg_row *x, float *const *y,
                            int64_t at, int tokens, int group, int has_min) {
    rows_f partials[LG_NEON_TOKENS][8] = {0};
    for (int64_t b = 0; b < blocks; b++) {
        const lg_neon_block *block = &panel[b];
        rows_i s[LG_NEON_TOKENS];
        block_sums(block, b, x, s, tokens, group);
        rows_f d = load_rows(block->d), m = has_min ? load_rows(block->m) : d;
        for (int t = 0; t < tokens; t++) {
            rows_f *p = &partials[t][b & 7];
            rows_i minima = has_min ? minimum_sums(block, x[t].sum + 16 * b, group) : s[t];
            float dx = x[t].d[b];
            for (int h = 0; h < 2; h++) {
                p->v[h] = vfmaq_f32(p->v[h], vmulq_n_f32(d.v[h], dx), vcvtq_f32_s32(s[t].v[h]));
                if (!has_min) continue;
                p->v[h] = vfmsq_f32(p->v[h], vmulq_n_f32(m.v[h], dx), vcvtq_f32_s32(minima.v[h]));
            }
        }
    }
    for (int t = 0; t < tokens; t++) store_rows(y[t] + at, finish(partials[t]), count);
}

/* p of block k of a run, for each token. */
LG_INLINE void run_products(const lg_neon_run *run, int64_t r, int k, const lg_row *x, rows_f p[][8], int tokens,
                            int has_min) {
    rows_i s[LG_NEON_TOKENS];
    group_sums(run->w + 8 * k, x, 256 * r + 32 * k, 32, s, tokens);
    rows_f d = load_rows(run->d[k]), m = has_min ? load_rows(run->m[k]) : d;
    for (int t = 0; t < tokens; t++) {
        float dx = x[t].d[8 * r + k], sum = (float)x[t].sum[8 * r + k];
        for (int h = 0; h < 2; h++) {
            float32x4_t value = vmulq_f32(vmulq_n_f32(d.v[h], dx), vcvtq_f32_s32(s[t].v[h]));
            p[t][k].v[h] = has_min ? vfmaq_n_f32(value, vmulq_n_f32(m.v[h], dx), sum) : value;
        }
    }
}

/* The tree of sum_run for one vector of rows. */
LG_INLINE float32x4_t tree(const rows_f *p, int h) {
    float32x4_t low = vaddq_f32(vaddq_f32(p[0].v[h], p[1].v[h]), vaddq_f32(p[2].v[h], p[3].v[h]));
    float32x4_t high = vaddq_f32(vaddq_f32(p[4].v[h], p[5].v[h]), vaddq_f32(p[6].v[h], p[7].v[h]));
    return vaddq_f32(low, high);
}

LG_INLINE void run32_tokens(const lg_neon_run *panel, int64_t runs, int count, const lg_row *x, float *const *y,
                            int64_t at, int tokens, int group, int has_min) {
    rows_f partials[LG_NEON_TOKENS][8] = {0};
    (void)group;
    for (int64_t r = 0; r < runs; r++) {
        rows_f p[LG_NEON_TOKENS][8];
#pragma clang loop unroll(disable)
        for (int k = 0; k < 8; k++) run_products(&panel[r], r, k, x, p, tokens, has_min);
        for (int t = 0; t < tokens; t++)
            for (int h = 0; h < 2; h++)
                partials[t][r & 7].v[h] = vaddq_f32(partials[t][r & 7].v[h], tree(p[t], h));
    }
    for (int t = 0; t < tokens; t++) store_rows(y[t] + at, finish(partials[t]), count);
}

/* All tokens by fours, then two, then one. */
#define ALL_TOKENS(kernel, group, has_min)                                                     \
    for (int64_t t = 0; t < tokens;) {                                                         \
        int64_t left = tokens - t;                                                             \
        if (left >= 4) kernel(panel, blocks, count, x + t, y + t, at, 4, group, has_min);      \
        else if (left >= 2) kernel(panel, blocks, count, x + t, y + t, at, 2, group, has_min); \
        else kernel(panel, blocks, count, x + t, y + t, at, 1, group, has_min);                \
        t += left >= 4 ? 4 : left >= 2 ? 2 : 1;                                                \
    }

#define SUPER_PANEL(name, group, has_min)                                                            \
    static void name(const lg_neon_block *panel, int64_t blocks, int count, const lg_row *x, int64_t tokens, \
                     float *const *y, int64_t at) {                                                  \
        ALL_TOKENS(super_tokens, group, has_min)                                                     \
    }

#define RUN32_PANEL(name, has_min)                                                                   \
    static void name(const lg_neon_run *panel, int64_t blocks, int count, const lg_row *x, int64_t tokens, \
                     float *const *y, int64_t at) {                                                  \
        ALL_TOKENS(run32_tokens, 32, has_min)                                                        \
    }

SUPER_PANEL(super16, 16, 0)
SUPER_PANEL(super32, 32, 0)
SUPER_PANEL(super16_min, 16, 1)
SUPER_PANEL(super32_min, 32, 1)
RUN32_PANEL(run32, 0)
RUN32_PANEL(run32_min, 1)

void LG_NAME(neon_panel_super)(const lg_neon_block *panel, int64_t blocks, int group, int has_min, int count,
                               const lg_row *x, int64_t tokens, float *const *y, int64_t at) {
    if (group == 16)
        (has_min ? super16_min : super16)(panel, blocks, count, x, tokens, y, at);
    else
        (has_min ? super32_min : super32)(panel, blocks, count, x, tokens, y, at);
}

void LG_NAME(neon_panel_run32)(const lg_neon_run *panel, int64_t runs, int has_min, int count, const lg_row *x,
                               int64_t tokens, float *const *y, int64_t at) {
    (has_min ? run32_min : run32)(panel, runs, count, x, tokens, y, at);
}
#endif
