/* Products of decoded panels (dot_panel.h). Each token starts a group's sum at -centre * (sum of x), so that
 * the unsigned weights need no other correction. */
#include "dot_panel.h"

#if defined(__AVX512VNNI__)
#include <immintrin.h>

LG_INLINE __m512i four_of(const int8_t *q) { return _mm512_set1_epi32((int)lg_load32((const uint8_t *)q)); }

/* The steps of one group against each token. */
LG_INLINE void group_sums(const uint8_t (*u)[LG_PANEL_ROWS][4], const lg_row *x, int64_t column, int steps,
                          __m512i *sum, int tokens) {
#pragma clang loop unroll(full)
    for (int s = 0; s < steps; s++) {
        __m512i w = _mm512_load_si512(u[s]);
        for (int t = 0; t < tokens; t++)
            sum[t] = _mm512_dpbusd_epi32(sum[t], w, four_of(x[t].q + column + 4 * s));
    }
}

/* Place of group g of a super-block in the order of lg_row.sum; groups of 32 are the even ones. */
LG_INLINE int place_of(int g, int group) { return group == 16 ? (g & 1) * 8 + g / 2 : g; }

LG_INLINE void block_sums(const lg_panel_block *block, int64_t b, const lg_row *x, const int32_t *offsets,
                          int64_t stride, __m512i *s, int tokens, int group) {
    const int groups = 256 / group;
    for (int t = 0; t < tokens; t++) s[t] = _mm512_setzero_si512();
#pragma clang loop unroll(disable)
    for (int g = 0; g < groups; g++) {
        const int place = place_of(g, group);
        __m512i sum[LG_PANEL_TOKENS], scale = _mm512_load_si512(block->scale[place]);
        for (int t = 0; t < tokens; t++) sum[t] = _mm512_set1_epi32(offsets[t * stride + 16 * b + place]);
        group_sums(block->u + g * group / 4, x, 256 * b + g * group, group / 4, sum, tokens);
        for (int t = 0; t < tokens; t++) s[t] = _mm512_add_epi32(s[t], _mm512_mullo_epi32(sum[t], scale));
    }
}

LG_INLINE void minimum_sums(const lg_panel_block *block, int64_t b, const lg_row *x, __m512i *m, int tokens) {
    for (int t = 0; t < tokens; t++) m[t] = _mm512_setzero_si512();
#pragma clang loop unroll(full)
    for (int i = 0; i < 8; i++) {
        __m512i pair = _mm512_load_si512(block->min[i]);
        for (int t = 0; t < tokens; t++)
            m[t] = _mm512_dpwssd_epi32(m[t], pair, four_of((const int8_t *)(x[t].sum + 16 * b + 2 * i)));
    }
}

LG_INLINE void store_rows(float *y, __m512 v, int count) {
    _mm512_mask_storeu_ps(y, (__mmask16)((1u << count) - 1), v);
}

LG_INLINE void super_tokens(const lg_panel_form *form, int count, const lg_row *x, float *const *y, int64_t at,
                            int tokens, int group, int has_min) {
    const lg_panel_block *panel = form->panel;
    const int64_t blocks = form->blocks, stride = 16 * blocks;
    __m512 total[LG_PANEL_TOKENS], partial[LG_PANEL_TOKENS];
    for (int j = 0; j < 8; j++) {
        for (int t = 0; t < tokens; t++) partial[t] = _mm512_setzero_ps();
        for (int64_t b = j; b < blocks; b += 8) {
            __m512i s[LG_PANEL_TOKENS], m[LG_PANEL_TOKENS];
            block_sums(&panel[b], b, x, form->offsets, stride, s, tokens, group);
            if (has_min) minimum_sums(&panel[b], b, x, m, tokens);
            for (int t = 0; t < tokens; t++) {
                __m512 dx = _mm512_set1_ps(x[t].d[b]), dd = _mm512_mul_ps(_mm512_load_ps(panel[b].d), dx);
                partial[t] = _mm512_fmadd_ps(dd, _mm512_cvtepi32_ps(s[t]), partial[t]);
                if (!has_min) continue;
                __m512 md = _mm512_mul_ps(_mm512_load_ps(panel[b].m), dx);
                partial[t] = _mm512_fnmadd_ps(md, _mm512_cvtepi32_ps(m[t]), partial[t]);
            }
        }
        for (int t = 0; t < tokens; t++) total[t] = j ? _mm512_add_ps(total[t], partial[t]) : partial[t];
    }
    for (int t = 0; t < tokens; t++) store_rows(y[t] + at, total[t], count);
}

/* p of block k of a run, for each token. */
LG_INLINE void run_products(const lg_panel_run *run, int64_t r, int k, const lg_row *x, const int32_t *offsets,
                            int64_t stride, __m512 *p, int tokens, int has_min) {
    __m512i sum[LG_PANEL_TOKENS];
    for (int t = 0; t < tokens; t++) sum[t] = _mm512_set1_epi32(offsets[t * stride + 8 * r + k]);
    group_sums(run->u + 8 * k, x, 256 * r + 32 * k, 8, sum, tokens);
    for (int t = 0; t < tokens; t++) {
        __m512 dx = _mm512_set1_ps(x[t].d[8 * r + k]), dd = _mm512_mul_ps(_mm512_load_ps(run->d[k]), dx);
        p[t] = _mm512_mul_ps(dd, _mm512_cvtepi32_ps(sum[t]));
        if (!has_min) continue;
        __m512 md = _mm512_mul_ps(_mm512_load_ps(run->m[k]), dx);
        p[t] = _mm512_fmadd_ps(md, _mm512_set1_ps((float)x[t].sum[8 * r + k]), p[t]);
    }
}

/* The tree over a run's eight products: pairs, then pairs of pairs, then the two halves. */
LG_INLINE void run_tree(const lg_panel_run *run, int64_t r, const lg_row *x, const int32_t *offsets, int64_t stride,
                        __m512 *tree, int tokens, int has_min) {
    __m512 half[LG_PANEL_TOKENS];
#pragma clang loop unroll(disable)
    for (int h = 0; h < 2; h++) {
        __m512 quarter[2][LG_PANEL_TOKENS];
#pragma clang loop unroll(full)
        for (int i = 0; i < 2; i++) {
            __m512 p[LG_PANEL_TOKENS];
            run_products(run, r, 4 * h + 2 * i, x, offsets, stride, quarter[i], tokens, has_min);
            run_products(run, r, 4 * h + 2 * i + 1, x, offsets, stride, p, tokens, has_min);
            for (int t = 0; t < tokens; t++) quarter[i][t] = _mm512_add_ps(quarter[i][t], p[t]);
        }
        for (int t = 0; t < tokens; t++) {
            __m512 sum = _mm512_add_ps(quarter[0][t], quarter[1][t]);
            tree[t] = h ? _mm512_add_ps(half[t], sum) : sum;
            half[t] = sum;
        }
    }
}

LG_INLINE void run32_tokens(const lg_panel_form *form, int count, const lg_row *x, float *const *y, int64_t at,
                            int tokens, int group, int has_min) {
    const lg_panel_run *panel = form->panel;
    const int64_t runs = form->blocks;
    __m512 total[LG_PANEL_TOKENS], partial[LG_PANEL_TOKENS], tree[LG_PANEL_TOKENS];
    (void)group;
    for (int j = 0; j < 8; j++) {
        for (int t = 0; t < tokens; t++) partial[t] = _mm512_setzero_ps();
        for (int64_t r = j; r < runs; r += 8) {
            run_tree(&panel[r], r, x, form->offsets, 16 * runs, tree, tokens, has_min);
            for (int t = 0; t < tokens; t++) partial[t] = _mm512_add_ps(partial[t], tree[t]);
        }
        for (int t = 0; t < tokens; t++) total[t] = j ? _mm512_add_ps(total[t], partial[t]) : partial[t];
    }
    for (int t = 0; t < tokens; t++) store_rows(y[t] + at, total[t], count);
}

typedef void (*tokens_fn)(const lg_panel_form *, int, const lg_row *, float *const *, int64_t);

/* Instances for 8, 4, 2 and 1 tokens. */
#define INSTANCE(name, kernel, tokens, group, has_min)                                                   \
    static void name##_##tokens(const lg_panel_form *form, int count, const lg_row *x, float *const *y,  \
                                int64_t at) {                                                            \
        kernel(form, count, x, y, at, tokens, group, has_min);                                           \
    }
#define INSTANCES(name, kernel, group, has_min)                                                          \
    INSTANCE(name, kernel, 8, group, has_min)                                                            \
    INSTANCE(name, kernel, 4, group, has_min)                                                            \
    INSTANCE(name, kernel, 2, group, has_min)                                                            \
    INSTANCE(name, kernel, 1, group, has_min)                                                            \
    static const tokens_fn name[4] = {name##_1, name##_2, name##_4, name##_8};

INSTANCES(super16, super_tokens, 16, 0)
INSTANCES(super32, super_tokens, 32, 0)
INSTANCES(super16_min, super_tokens, 16, 1)
INSTANCES(super32_min, super_tokens, 32, 1)
INSTANCES(run32, run32_tokens, 32, 0)
INSTANCES(run32_min, run32_tokens, 32, 1)

static void super_offsets(const lg_panel_form *form, const int16_t *sum, int32_t *out) {
    const __m512i factor = _mm512_set1_epi32(-form->centre);
    for (int64_t b = 0; b < form->blocks; b++) {
        __m512i wide = _mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(sum + 16 * b)));
        if (form->group == 32) wide = _mm512_add_epi32(wide, _mm512_shuffle_i64x2(wide, wide, 0x4e));
        _mm512_storeu_si512(out + 16 * b, _mm512_mullo_epi32(wide, factor));
    }
}

static void run32_offsets(const lg_panel_form *form, const int16_t *sum, int32_t *out) {
    for (int64_t b = 0; b < 8 * form->blocks; b++) out[b] = -form->centre * sum[b];
}

typedef void (*offsets_fn)(const lg_panel_form *, const int16_t *, int32_t *);

static void all_tokens(const lg_panel_form *form, int count, const lg_row *x, int64_t tokens, float *const *y,
                       int64_t at, const tokens_fn *kernels, offsets_fn offsets) {
    for (int64_t t = 0; t < tokens;) {
        int power = 3;
        while (tokens - t < 1 << power) power--;
        for (int k = 0; k < 1 << power; k++) offsets(form, x[t + k].sum, form->offsets + 16 * form->blocks * k);
        kernels[power](form, count, x + t, y + t, at);
        t += 1 << power;
    }
}

void LG_NAME(panel_super)(const lg_panel_form *form, int count, const lg_row *x, int64_t tokens, float *const *y,
                          int64_t at) {
    const tokens_fn *kernels = form->group == 16 ? (form->has_min ? super16_min : super16)
                                                 : (form->has_min ? super32_min : super32);
    all_tokens(form, count, x, tokens, y, at, kernels, super_offsets);
}

void LG_NAME(panel_run32)(const lg_panel_form *form, int count, const lg_row *x, int64_t tokens, float *const *y,
                          int64_t at) {
    all_tokens(form, count, x, tokens, y, at, form->has_min ? run32_min : run32, run32_offsets);
}
#endif
