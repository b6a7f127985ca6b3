/* Products of decoded panels (dot_panel.h). Each token starts a group's sum at -centre * (sum of x), so that
 * the unsigned weights need no other correction. */
#include "dot_panel.h"

#if defined(__AVX512VNNI__)
#include <immintrin.h>

/* How the sums of groups meet their scales. */
enum { WIDE, NARROW, LIFTED };

/* What sets a kind of super-block apart, all known when compiled. */
typedef struct {
    int tokens, group, scaling, has_min;
} tile_form;

/* Sums of x of one token: by group as 32 bits times -centre, and as pairs of 16 bits. */
typedef struct {
    _Alignas(64) int32_t offset[16];
    _Alignas(32) int16_t sum[16];
} token_sums;

LG_INLINE __m512i four_of(const void *p) { return _mm512_set1_epi32((int)lg_load32(p)); }

/* Written out: the compiler would take it apart into a product and a sum. */
LG_INLINE __m512i add_pairs_of(__m512i s, __m512i pairs, const int16_t *two) {
    typedef struct {
        int16_t both[2];
    } two_halves;
    __asm__("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(s) : "v"(pairs), "m"(*(const two_halves *)(const void *)two));
    return s;
}

LG_INLINE __m512i add_narrow(__m512i s, __m512i sum, __m512i scale) {
    __asm__("vpdpwssd %2, %1, %0" : "+v"(s) : "v"(sum), "v"(scale));
    return s;
}

/* 16-bit numbers widened, times a 16-bit factor. */
LG_INLINE __m512i widened16(__m256i v, int factor) {
    return _mm512_madd_epi16(_mm512_cvtepi16_epi32(v), _mm512_set1_epi32(factor & 0xffff));
}

LG_INLINE __m256i widened8(__m128i v, int factor) {
    return _mm256_madd_epi16(_mm256_cvtepi16_epi32(v), _mm256_set1_epi32(factor & 0xffff));
}

LG_INLINE void super_sums(const int16_t *sum, int centre, int group, token_sums *out) {
    if (group == 16) {
        __m256i all = _mm256_loadu_si256((const __m256i *)(const void *)sum);
        _mm256_store_si256((__m256i *)(void *)out->sum, all);
        _mm512_store_si512(out->offset, widened16(all, -centre));
        return;
    }
    __m128i even = _mm_loadu_si128((const __m128i *)(const void *)sum);
    __m128i odd = _mm_loadu_si128((const __m128i *)(const void *)(sum + 8));
    __m128i both = _mm_add_epi16(even, odd); /* at most 32 * 127 */
    _mm_store_si128((__m128i *)(void *)out->sum, both);
    _mm256_store_si256((__m256i *)(void *)out->offset, widened8(both, -centre));
}

/* Groups g .. g + wide - 1 against each token: as many at a time as keep the multipliers busy. */
LG_INLINE void group_sums(const uint8_t (*u)[LG_PANEL_ROWS][4], const int8_t *const *q, int steps, int wide,
                          __m512i (*sum)[LG_PANEL_TOKENS], int tokens) {
#pragma clang loop unroll(full)
    for (int s = 0; s < steps; s++) {
#pragma clang loop unroll(full)
        for (int w = 0; w < wide; w++) {
            __m512i weights = _mm512_load_si512(u[w * steps + s]);
#pragma clang loop unroll(full)
            for (int t = 0; t < tokens; t++)
                sum[w][t] = _mm512_dpbusd_epi32(sum[w][t], weights, four_of(q[t] + 4 * (w * steps + s)));
        }
    }
}

/* Place of group g of a super-block in the order of lg_row.sum; groups of 32 are in their own. */
LG_INLINE int place_of(int g, int group) { return group == 16 ? (g & 1) * 8 + g / 2 : g; }

LG_INLINE void block_sums(const lg_panel_block *block, const int8_t *const *x, const token_sums *known, __m512i *s,
                          tile_form form) {
    const int groups = 256 / form.group, steps = form.group / 4;
    const int wide = form.tokens >= 3 ? 2 : 4;
    const int8_t *q[LG_PANEL_TOKENS];
#pragma clang loop unroll(full)
    for (int t = 0; t < form.tokens; t++) q[t] = x[t];
#pragma clang loop unroll(disable)
    for (int g = 0; g < groups; g += wide) {
        __m512i sum[4][LG_PANEL_TOKENS];
#pragma clang loop unroll(full)
        for (int w = 0; w < wide; w++)
#pragma clang loop unroll(full)
            for (int t = 0; t < form.tokens; t++)
                sum[w][t] = four_of(&known[t].offset[place_of(g + w, form.group)]);
        group_sums(block->u + g * steps, q, steps, wide, sum, form.tokens);
#pragma clang loop unroll(full)
        for (int w = 0; w < wide; w++) {
            __m512i scale = _mm512_load_si512(block->scale[g + w]);
            if (form.scaling == NARROW) scale = _mm512_and_si512(scale, _mm512_set1_epi32(0xffff));
#pragma clang loop unroll(full)
            for (int t = 0; t < form.tokens; t++)
                s[t] = form.scaling == WIDE ? _mm512_add_epi32(s[t], _mm512_mullo_epi32(sum[w][t], scale))
                                            : add_narrow(s[t], sum[w][t], scale);
        }
#pragma clang loop unroll(full)
        for (int t = 0; t < form.tokens; t++) q[t] += wide * form.group;
    }
}

/* pairs [count] against the sums of each token. */
LG_INLINE void add_sums(const int32_t (*pairs)[LG_PANEL_ROWS], int count, const token_sums *known, __m512i *s,
                        int tokens) {
#pragma clang loop unroll(full)
    for (int i = 0; i < count; i++) {
        __m512i pair = _mm512_load_si512(pairs[i]);
#pragma clang loop unroll(full)
        for (int t = 0; t < tokens; t++) s[t] = add_pairs_of(s[t], pair, known[t].sum + 2 * i);
    }
}

LG_INLINE void super_tile(const void *decoded, int centre, int64_t b, const lg_row *x,
                          float (*partials)[LG_PANEL_ROWS], tile_form form) {
    const lg_panel_block *block = decoded;
    token_sums known[LG_PANEL_TOKENS];
    const int8_t *q[LG_PANEL_TOKENS];
    __m512i s[LG_PANEL_TOKENS], m[LG_PANEL_TOKENS];
#pragma clang loop unroll(full)
    for (int t = 0; t < form.tokens; t++) {
        super_sums(x[t].sum + 16 * b, centre, form.group, &known[t]);
        q[t] = x[t].q + 256 * b;
        s[t] = m[t] = _mm512_setzero_si512();
    }
    if (form.scaling == LIFTED) add_sums(block->lift, 4, known, s, form.tokens);
    block_sums(block, q, known, s, form);
    if (form.has_min) add_sums(block->min, form.group == 16 ? 8 : 4, known, m, form.tokens);
#pragma clang loop unroll(full)
    for (int t = 0; t < form.tokens; t++) {
        __m512 dx = _mm512_set1_ps(x[t].d[b]), dd = _mm512_mul_ps(_mm512_load_ps(block->d), dx);
        __m512 p = _mm512_fmadd_ps(dd, _mm512_cvtepi32_ps(s[t]), _mm512_load_ps(partials[t]));
        if (form.has_min) {
            __m512 md = _mm512_mul_ps(_mm512_load_ps(block->m), dx);
            p = _mm512_fnmadd_ps(md, _mm512_cvtepi32_ps(m[t]), p);
        }
        _mm512_store_ps(partials[t], p);
    }
}

/* p of block k of a run, for each token. */
LG_INLINE void run_products(const lg_panel_run *run, int64_t r, int k, const lg_row *x, const token_sums *known,
                            __m512 *p, int tokens, int has_min) {
    __m512i sum[1][LG_PANEL_TOKENS];
    const int8_t *q[LG_PANEL_TOKENS];
#pragma clang loop unroll(full)
    for (int t = 0; t < tokens; t++) {
        sum[0][t] = four_of(&known[t].offset[k]);
        q[t] = x[t].q + 256 * r + 32 * k;
    }
    group_sums(run->u + 8 * k, q, 8, 1, sum, tokens);
#pragma clang loop unroll(full)
    for (int t = 0; t < tokens; t++) {
        __m512 dx = _mm512_set1_ps(x[t].d[8 * r + k]), dd = _mm512_mul_ps(_mm512_load_ps(run->d[k]), dx);
        p[t] = _mm512_mul_ps(dd, _mm512_cvtepi32_ps(sum[0][t]));
        if (!has_min) continue;
        __m512 md = _mm512_mul_ps(_mm512_load_ps(run->m[k]), dx);
        p[t] = _mm512_fmadd_ps(md, _mm512_set1_ps((float)x[t].sum[8 * r + k]), p[t]);
    }
}

/* The tree over a run's eight products: pairs, then pairs of pairs, then the two halves. */
LG_INLINE void run_tile(const void *decoded, int centre, int64_t r, const lg_row *x,
                        float (*partials)[LG_PANEL_ROWS], tile_form form) {
    const lg_panel_run *run = decoded;
    const int tokens = form.tokens;
    token_sums known[LG_PANEL_TOKENS];
    __m512 half[LG_PANEL_TOKENS], quarter[2][LG_PANEL_TOKENS], p[LG_PANEL_TOKENS];
    for (int t = 0; t < tokens; t++) {
        __m128i sum = _mm_loadu_si128((const __m128i *)(const void *)(x[t].sum + 8 * r));
        _mm256_store_si256((__m256i *)(void *)known[t].offset, widened8(sum, -centre));
    }
#pragma clang loop unroll(disable)
    for (int h = 0; h < 2; h++) {
#pragma clang loop unroll(full)
        for (int i = 0; i < 2; i++) {
            run_products(run, r, 4 * h + 2 * i, x, known, quarter[i], tokens, form.has_min);
            run_products(run, r, 4 * h + 2 * i + 1, x, known, p, tokens, form.has_min);
            for (int t = 0; t < tokens; t++) quarter[i][t] = _mm512_add_ps(quarter[i][t], p[t]);
        }
        for (int t = 0; t < tokens; t++) {
            __m512 sum = _mm512_add_ps(quarter[0][t], quarter[1][t]);
            if (h) {
                __m512 tree = _mm512_add_ps(half[t], sum);
                _mm512_store_ps(partials[t], _mm512_add_ps(_mm512_load_ps(partials[t]), tree));
            }
            half[t] = sum;
        }
    }
}

typedef void (*tile_fn)(const void *, int, int64_t, const lg_row *, float (*)[LG_PANEL_ROWS]);

LG_INLINE void all_tokens(const void *decoded, int centre, int64_t b, const lg_row *x, int64_t tokens,
                          float (*partials)[LG_PANEL_ROWS], const tile_fn *tiles) {
    for (int64_t t = 0; t < tokens;) {
        int power = 3;
        while (tokens - t < 1 << power) power--;
        tiles[power](decoded, centre, b, x + t, partials + t);
        t += 1 << power;
    }
}

/* Instances for 8, 4, 2 and 1 tokens. */
#define TILE(name, tile, tokens, ...)                                                                        \
    static void name##_tile_##tokens(const void *decoded, int centre, int64_t b, const lg_row *x,            \
                                     float (*partials)[LG_PANEL_ROWS]) {                                     \
        tile(decoded, centre, b, x, partials, (tile_form){tokens, __VA_ARGS__});                             \
    }
#define TIMES(name, tile, ...)                                                                               \
    TILE(name, tile, 8, __VA_ARGS__)                                                                         \
    TILE(name, tile, 4, __VA_ARGS__)                                                                         \
    TILE(name, tile, 2, __VA_ARGS__)                                                                         \
    TILE(name, tile, 1, __VA_ARGS__)                                                                         \
    void LG_NAME(name)(const void *decoded, int centre, int64_t b, const lg_row *x, int64_t tokens,          \
                       float (*partials)[LG_PANEL_ROWS]) {                                                   \
        static const tile_fn tiles[4] = {name##_tile_1, name##_tile_2, name##_tile_4, name##_tile_8};        \
        all_tokens(decoded, centre, b, x, tokens, partials, tiles);                                          \
    }

TIMES(times_16, super_tile, 16, WIDE, 0)
TIMES(times_16_narrow, super_tile, 16, NARROW, 0)
TIMES(times_16_narrow_min, super_tile, 16, NARROW, 1)
TIMES(times_32, super_tile, 32, WIDE, 0)
TIMES(times_32_min, super_tile, 32, WIDE, 1)
TIMES(times_32_lifted_min, super_tile, 32, LIFTED, 1)
TIMES(times_run, run_tile, 32, WIDE, 0)
TIMES(times_run_min, run_tile, 32, WIDE, 1)

void LG_NAME(panel_finish)(const lg_panel_room *room, int count, int64_t tokens, float *const *y, int64_t at,
                           int step) {
    const __mmask16 rows = (__mmask16)((1u << count) - 1);
    const __m512i place = _mm512_mullo_epi32(
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), _mm512_set1_epi32(step));
    for (int64_t t = 0; t < tokens; t++) {
        __m512 total = _mm512_load_ps(room->partials[0][t]);
        for (int j = 1; j < 8; j++) total = _mm512_add_ps(total, _mm512_load_ps(room->partials[j][t]));
        _mm512_mask_i32scatter_ps(y[t] + at, rows, place, total, 4);
    }
}
#endif
