/* Products of decoded panels on AVX2 (dot_panel_avx2.h). */
#include "dot_types.h"

#if defined(LG_HAS_OCTETS)
#include "dot_avx2.h"
#include "dot_panel_avx2.h"

LG_INLINE __m256i four_of(const void *q) { return _mm256_set1_epi32((int)lg_load32(q)); }

/* Pairs of one step; magnitudes of wide weights are made once for all tokens. */
LG_INLINE __m256i pairs_of(__m256i w, __m256i magnitude, __m256i x, int wide) {
    return _mm256_maddubs_epi16(magnitude, wide ? _mm256_sign_epi8(x, w) : x);
}

/* `adds` steps, multiplied by the scale, into the sums of each token. */
LG_INLINE void add_steps(const uint8_t (*u)[LG_OCTET][4], const int8_t *const *q, int64_t column, __m256i scale,
                         __m256i *s, int tokens, int adds, int wide) {
    __m256i w[4], magnitude[4];
    for (int k = 0; k < adds; k++) {
        w[k] = _mm256_load_si256((const __m256i *)(const void *)u[k]);
        magnitude[k] = wide ? _mm256_abs_epi8(w[k]) : w[k];
    }
#pragma clang loop unroll(full)
    for (int t = 0; t < tokens; t++) {
        __m256i pairs = pairs_of(w[0], magnitude[0], four_of(q[t] + column), wide);
        for (int k = 1; k < adds; k++)
            pairs = _mm256_add_epi16(pairs, pairs_of(w[k], magnitude[k], four_of(q[t] + column + 4 * k), wide));
        s[t] = _mm256_add_epi32(s[t], _mm256_madd_epi16(pairs, scale));
    }
}

/* Place of group g of a super-block in the order of lg_row.sum; groups of 32 are the even ones. */
LG_INLINE int place_of(int g, int group) { return group == 16 ? (g & 1) * 8 + g / 2 : g; }

LG_INLINE void block_sums(const lg_octet_block *block, int64_t b, const int8_t *const *q, __m256i *s, int tokens,
                          int group, int adds, int wide) {
#pragma clang loop unroll(disable)
    for (int g = 0; g < 256 / group; g++) {
        __m256i scale = _mm256_load_si256((const __m256i *)(const void *)block->scale[place_of(g, group)]);
#pragma clang loop unroll(full)
        for (int k = 0; k < group / 4; k += adds)
            add_steps(block->u + g * group / 4 + k, q, 256 * b + g * group + 4 * k, scale, s, tokens, adds, wide);
    }
}

/* What minima or centres add, from the sums of x. */
LG_INLINE void pair_sums(const lg_octet_block *block, const int16_t *const *sums, int64_t b, __m256i *s, int tokens,
                         int group) {
    const int count = 256 / group;
#pragma clang loop unroll(full)
    for (int i = 0; i < count / 2; i++) {
        __m256i pair = _mm256_load_si256((const __m256i *)(const void *)block->pair[i]);
        for (int t = 0; t < tokens; t++) {
            __m256i product = _mm256_madd_epi16(pair, four_of(sums[t] + count * b + 2 * i));
            s[t] = i ? _mm256_add_epi32(s[t], product) : product;
        }
    }
}

LG_INLINE void store_octet(float *y, __m256 v, int count) {
    float all[LG_OCTET];
    if (count == LG_OCTET) {
        _mm256_storeu_ps(y, v);
        return;
    }
    _mm256_storeu_ps(all, v);
    for (int r = 0; r < count; r++) y[r] = all[r];
}

/* One block into the partials of each token. */
LG_INLINE void add_block(const lg_octet_block *block, int64_t b, const lg_row *x, const int8_t *const *q,
                         const int16_t *const *sums, __m256 *partial, int tokens, int group, int adds, int wide,
                         int has_min) {
    __m256i s[LG_OCTET_TOKENS], m[LG_OCTET_TOKENS];
    if (has_min) pair_sums(block, sums, b, m, tokens, group);
    if (wide || has_min)
        for (int t = 0; t < tokens; t++) s[t] = _mm256_setzero_si256();
    else
        pair_sums(block, sums, b, s, tokens, group);
    block_sums(block, b, q, s, tokens, group, adds, wide);
    for (int t = 0; t < tokens; t++) {
        __m256 dx = _mm256_set1_ps(x[t].d[b]), dd = _mm256_mul_ps(_mm256_load_ps(block->d), dx);
        partial[t] = sum_super8(partial[t], dd, s[t]);
        if (has_min) partial[t] = sum_minimum8(partial[t], _mm256_mul_ps(_mm256_load_ps(block->m), dx), m[t]);
    }
}

LG_INLINE void super_tile(const lg_octet_form *form, int count, const lg_row *x, float *const *y, int64_t at,
                          int tokens, int group, int adds, int wide, int has_min) {
    const lg_octet_block *panel = form->panel;
    const int64_t blocks = form->blocks;
    const int8_t *q[LG_OCTET_TOKENS];
    const int16_t *sums[LG_OCTET_TOKENS];
    __m256 total[LG_OCTET_TOKENS], partial[LG_OCTET_TOKENS];
    for (int t = 0; t < tokens; t++) {
        q[t] = x[t].q;
        sums[t] = group == 16 ? x[t].sum : form->sums + 8 * blocks * t;
    }
#pragma clang loop unroll(disable)
    for (int j = 0; j < 8; j++) {
        for (int t = 0; t < tokens; t++) partial[t] = _mm256_setzero_ps();
#pragma clang loop unroll(disable)
        for (int64_t b = j; b < blocks; b += 8)
            add_block(&panel[b], b, x, q, sums, partial, tokens, group, adds, wide, has_min);
        for (int t = 0; t < tokens; t++) total[t] = j ? _mm256_add_ps(total[t], partial[t]) : partial[t];
    }
    for (int t = 0; t < tokens; t++) store_octet(y[t] + at, total[t], count);
}

/* p of block k of a run, for each token. */
LG_INLINE void run_products(const lg_octet_form *form, const lg_octet_run *run, int64_t r, int k, const lg_row *x,
                            const int8_t *const *q, __m256 *p, int tokens, int adds, int wide, int has_min) {
    const __m256i one = _mm256_set1_epi16(1);
    const int64_t b = 8 * r + k;
    __m256i s[LG_OCTET_TOKENS];
    for (int t = 0; t < tokens; t++) s[t] = _mm256_set1_epi32(-form->centre * x[t].sum[b]);
#pragma clang loop unroll(full)
    for (int i = 0; i < 8; i += adds) add_steps(run->u + 8 * k + i, q, 32 * b + 4 * i, one, s, tokens, adds, wide);
    for (int t = 0; t < tokens; t++) {
        __m256 dx = _mm256_set1_ps(x[t].d[b]), dd = _mm256_mul_ps(_mm256_load_ps(run->d[k]), dx);
        p[t] = _mm256_mul_ps(dd, _mm256_cvtepi32_ps(s[t]));
        if (!has_min) continue;
        __m256 md = _mm256_mul_ps(_mm256_load_ps(run->m[k]), dx);
        p[t] = _mm256_fmadd_ps(md, _mm256_set1_ps((float)x[t].sum[b]), p[t]);
    }
}

/* A run into the partials: pairs of products, pairs of pairs, then the two halves. */
LG_INLINE void add_run(const lg_octet_form *form, const lg_octet_run *run, int64_t r, const lg_row *x,
                       const int8_t *const *q, __m256 *partial, int tokens, int adds, int wide, int has_min) {
    __m256 level[3][LG_OCTET_TOKENS], p[LG_OCTET_TOKENS];
#pragma clang loop unroll(disable)
    for (int k = 0; k < 8; k++) {
        run_products(form, run, r, k, x, q, p, tokens, adds, wide, has_min);
        for (int t = 0; t < tokens; t++) {
            __m256 sum = p[t];
            if (k & 1) sum = _mm256_add_ps(level[0][t], sum);
            else level[0][t] = sum;
            if ((k & 3) == 3) sum = _mm256_add_ps(level[1][t], sum);
            else if (k & 1) level[1][t] = sum;
            if (k == 3) level[2][t] = sum;
            if (k == 7) partial[t] = _mm256_add_ps(partial[t], _mm256_add_ps(level[2][t], sum));
        }
    }
}

LG_INLINE void run32_tile(const lg_octet_form *form, int count, const lg_row *x, float *const *y, int64_t at,
                          int tokens, int group, int adds, int wide, int has_min) {
    const lg_octet_run *panel = form->panel;
    const int8_t *q[LG_OCTET_TOKENS];
    __m256 total[LG_OCTET_TOKENS], partial[LG_OCTET_TOKENS];
    (void)group;
    for (int t = 0; t < tokens; t++) q[t] = x[t].q;
#pragma clang loop unroll(disable)
    for (int j = 0; j < 8; j++) {
        for (int t = 0; t < tokens; t++) partial[t] = _mm256_setzero_ps();
#pragma clang loop unroll(disable)
        for (int64_t r = j; r < form->blocks; r += 8)
            add_run(form, &panel[r], r, x, q, partial, tokens, adds, wide, has_min);
        for (int t = 0; t < tokens; t++) total[t] = j ? _mm256_add_ps(total[t], partial[t]) : partial[t];
    }
    for (int t = 0; t < tokens; t++) store_octet(y[t] + at, total[t], count);
}

typedef void (*tile_fn)(const lg_octet_form *, int, const lg_row *, float *const *, int64_t);

/* Instances for 8, 4, 2 and 1 tokens. */
#define INSTANCE(name, kernel, tokens, group, adds, wide, has_min)                                       \
    static void name##_##tokens(const lg_octet_form *form, int count, const lg_row *x, float *const *y,  \
                                int64_t at) {                                                            \
        kernel(form, count, x, y, at, tokens, group, adds, wide, has_min);                               \
    }
#define INSTANCES(name, kernel, ...)                                                                     \
    INSTANCE(name, kernel, 8, __VA_ARGS__)                                                               \
    INSTANCE(name, kernel, 4, __VA_ARGS__)                                                               \
    INSTANCE(name, kernel, 2, __VA_ARGS__)                                                               \
    INSTANCE(name, kernel, 1, __VA_ARGS__)                                                               \
    static const tile_fn name[4] = {name##_1, name##_2, name##_4, name##_8};

/* group, adds, wide, has_min */
INSTANCES(minimum16, super_tile, 16, 4, 0, 1)
INSTANCES(minimum32, super_tile, 32, 4, 0, 1)
INSTANCES(fours16, super_tile, 16, 4, 0, 0)
INSTANCES(fours32, super_tile, 32, 4, 0, 0)
INSTANCES(twos16, super_tile, 16, 2, 0, 0)
INSTANCES(ones16, super_tile, 16, 1, 0, 0)
INSTANCES(ones32, super_tile, 32, 1, 0, 0)
INSTANCES(wide32, super_tile, 32, 1, 1, 0)
INSTANCES(run32, run32_tile, 32, 4, 0, 0)
INSTANCES(run32_minimum, run32_tile, 32, 4, 0, 1)
INSTANCES(run32_wide, run32_tile, 32, 1, 1, 0)

static const tile_fn *super_tiles(const lg_octet_form *form) {
    if (form->wide) return wide32;
    if (form->has_min) return form->group == 16 ? minimum16 : minimum32;
    if (form->adds == 4) return form->group == 16 ? fours16 : fours32;
    if (form->adds == 2) return twos16;
    return form->group == 16 ? ones16 : ones32;
}

/* Sums over 32 values from those over 16. */
static void join_sums(const int16_t *sum, int64_t blocks, int16_t *out) {
    for (int64_t b = 0; b < blocks; b++) {
        __m128i both = _mm_add_epi16(load128(sum + 16 * b), load128(sum + 16 * b + 8));
        _mm_storeu_si128((__m128i *)(void *)(out + 8 * b), both);
    }
}

static void all_tokens(const lg_octet_form *form, int count, const lg_row *x, int64_t tokens, float *const *y,
                       int64_t at, const tile_fn *tiles, int joins) {
    for (int64_t t = 0; t < tokens;) {
        int power = 3;
        while (tokens - t < 1 << power) power--;
        for (int k = 0; joins && k < 1 << power; k++)
            join_sums(x[t + k].sum, form->blocks, form->sums + 8 * form->blocks * k);
        tiles[power](form, count, x + t, y + t, at);
        t += 1 << power;
    }
}

void LG_NAME(octet_super)(const lg_octet_form *form, int count, const lg_row *x, int64_t tokens, float *const *y,
                          int64_t at) {
    all_tokens(form, count, x, tokens, y, at, super_tiles(form), form->group == 32 && !form->wide);
}

void LG_NAME(octet_run32)(const lg_octet_form *form, int count, const lg_row *x, int64_t tokens, float *const *y,
                          int64_t at) {
    all_tokens(form, count, x, tokens, y, at, form->wide ? run32_wide : form->has_min ? run32_minimum : run32, 0);
}
#endif
