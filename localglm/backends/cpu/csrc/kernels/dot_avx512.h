/* Row products with AVX-512 VNNI and VBMI, for one, two and four tokens. Eight block sums become one vector, as in
 * dot_avx2.h, whose block heads are used here too.
 *
 * Weights are held as unsigned bytes u = w + c with a constant c of the type: a weight is made once for all
 * tokens, and x keeps its sign. -c * scale * (sum of x) is added through the sums kept with x.
 *   narrow  u <= 128: pairs are added in 16 bits, then multiplied by 16-bit scales. A pair is at most
 *           2 * 128 * 127 = 32512 < 32767, so the first step never saturates (dot_avx2.h).
 *   wide    u <= 255 (c = 128): fours are added in 32 bits, then multiplied by 32-bit scales.
 * Types that look magnitudes up (LG_LOOKED_UP) leave sign bits in memory for the panels; their row products, and
 * those of other grid types, are in dot_woven_avx512.h. */
#ifndef LG_DOT_AVX512_H
#define LG_DOT_AVX512_H

#include "dot_avx2.h"

/* Two super-blocks of a row. Types that look their weights up keep here what both need. */
typedef struct {
    lg_head256 head[2];
    _Alignas(64) uint8_t codes[256];
    _Alignas(64) uint64_t signs[8]; /* of 64 weights */
} lg_pair512;

enum { MOST_TOKENS = 4 };

/* What sets a type apart here; with a centre of 128 its weights are wide. */
typedef struct {
    int centre;
    int group; /* weights per scale, 16 or 32 */
} lg_form512;

typedef void (*lg_pair_fn)(const uint8_t *first, const uint8_t *second, lg_pair512 *pair);
/* Weights 64 j .. 64 j + 63 of one of the two blocks. */
typedef __m512i (*lg_part_fn512)(const uint8_t *block, const lg_pair512 *pair, int which, int j);
/* 64 weights of two 32-value blocks. */
typedef __m512i (*lg_unpack512)(const uint8_t *first, const uint8_t *second);

LG_INLINE __m512i load512(const void *p) { return _mm512_loadu_si512(p); }
LG_INLINE __m512i twice256(const void *p) { return _mm512_broadcast_i64x4(load256(p)); }

LG_INLINE __m512i join256(__m256i low, __m256i high) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* Four neighbours of a 128-bit lane of each argument become one lane of the result. */
LG_INLINE __m512i add_fours(__m512i a, __m512i b, __m512i c, __m512i d) {
    __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    return _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}

/* Lanes 0 and 1, 2 and 3 of 128 bits added. */
LG_INLINE __m256i add_lane_pairs(__m512i v) {
    __m512i even_odd = _mm512_shuffle_i64x2(v, v, _MM_SHUFFLE(3, 1, 2, 0));
    return _mm256_add_epi32(_mm512_castsi512_si256(even_odd), _mm512_extracti64x4_epi64(even_odd, 1));
}

/* Lane k of the result is the sum of the lanes of v[k]. */
LG_INLINE __m256i add_lanes8_512(const __m512i *v) {
    __m512i a = add_fours(v[0], v[1], v[2], v[3]), b = add_fours(v[4], v[5], v[6], v[7]);
    return add_lane_pairs(_mm512_add_epi32(_mm512_shuffle_i64x2(a, b, 0x44), _mm512_shuffle_i64x2(a, b, 0xee)));
}

/* The same for eight vectors of 256 bits. */
LG_INLINE __m256i add_lanes8_joined(const __m256i *v) {
    return add_lane_pairs(
        add_fours(join256(v[0], v[4]), join256(v[1], v[5]), join256(v[2], v[6]), join256(v[3], v[7])));
}

/* The compiler would join how a value was made with how it is spread, into exchanges that take three times as long. */
LG_INLINE __m512i as_it_is(__m512i v) {
    __asm__("" : "+v"(v));
    return v;
}

/* The 16-bit scales of weights 64 j .. 64 j + 63, each as often as it has pairs. */
LG_INLINE __m512i scales_of_part(__m512i all, int j) {
    const __m512i first = _mm512_inserti64x2(
        _mm512_inserti64x2(_mm512_inserti64x2(_mm512_castsi128_si512(_mm_set1_epi16(0x0100)),
                                              _mm_set1_epi16(0x1110), 1),
                           _mm_set1_epi16(0x0302), 2),
        _mm_set1_epi16(0x1312), 3);
    __m512i pick = _mm512_add_epi8(first, _mm512_set1_epi8((char)(4 * j)));
    return _mm512_permutexvar_epi8(pick, all);
}

/* The 32-bit scales of groups 2 j and 2 j + 1, eight times each. */
LG_INLINE __m512i wide_scales_of_part(__m512i all, int j) {
    const __m512i first = join256(_mm256_setzero_si256(), _mm256_set1_epi32(1));
    __m512i pick = _mm512_add_epi32(first, _mm512_set1_epi32(2 * j));
    return _mm512_permutexvar_epi32(pick, all);
}

/* Written out: the compiler would take it apart into a product and a sum. */
LG_INLINE __m512i add_scaled_pairs(__m512i s, __m512i pairs, __m512i scale) {
    __asm__("vpdpwssd %2, %1, %0" : "+v"(s) : "v"(pairs), "v"(scale));
    return s;
}

/* The sign bits of 64 weights, spread over the top bits of a vector: a mask loaded straight from what a vector
 * store has just written waits for that store. */
LG_INLINE __mmask64 mask_of(const uint64_t *signs) {
    const __m512i bytes = _mm512_setr_epi64(0x00, 0x0808080808080808ll, 0x1010101010101010ll, 0x1818181818181818ll,
                                            0x2020202020202020ll, 0x2828282828282828ll, 0x3030303030303030ll,
                                            0x3838383838383838ll);
    const __m512i first = _mm512_set1_epi64(0x003f3e3d3c3b3a39ll); /* bits 0 .. 7 seven places up, modulo 64 */
    __m512i all = _mm512_set1_epi64((long long)*signs);
    return _mm512_movepi8_mask(_mm512_multishift_epi64_epi8(_mm512_add_epi8(bytes, first), all));
}

/* Block b against each token: vectors whose lanes add up to S, and to M for types with minima. */
LG_INLINE void multiply512(const uint8_t *block, const lg_pair512 *pair, int which, int64_t b, const lg_row *x,
                           __m512i *s, __m256i *m, int tokens, int flags, lg_form512 wide, lg_part_fn512 part) {
    const lg_head256 *head = &pair->head[which];
    for (int t = 0; t < tokens; t++) {
        s[t] = _mm512_setzero_si512();
        if (wide.centre) {
            __m256i bias = _mm256_mullo_epi16(head->scale, _mm256_set1_epi16((short)-wide.centre));
            s[t] = _mm512_zextsi256_si512(_mm256_madd_epi16(bias, load256(x[t].sum + 16 * b)));
        }
        if (flags & LG_HAS_MIN) m[t] = _mm256_madd_epi16(head->min, load256(x[t].sum + 16 * b));
    }
    __m512i all = wide.centre == 128 ? _mm512_cvtepi16_epi32(head->scale) : _mm512_castsi256_si512(head->scale);
    all = as_it_is(all);
#pragma clang loop unroll(full)
    for (int j = 0; j < 4; j++) {
        __m512i u = part(block, pair, which, j);
        __m512i scale = wide.centre == 128 ? wide_scales_of_part(all, j) : scales_of_part(all, j);
        for (int t = 0; t < tokens; t++) {
            __m512i q = load512(x[t].q + 256 * b + 64 * j);
            if (wide.centre == 128) {
                __m512i fours = _mm512_dpbusd_epi32(_mm512_setzero_si512(), u, q);
                s[t] = _mm512_add_epi32(s[t], _mm512_mullo_epi32(fours, scale));
            } else {
                s[t] = add_scaled_pairs(s[t], _mm512_maddubs_epi16(u, q), scale);
            }
        }
    }
}

/* Put together outside of the vector units, which are the ones waited for. */
LG_INLINE __m256 eight_halves(const uint16_t *h) {
    uint64_t four[2] = {0, 0};
#pragma clang loop unroll(full)
    for (int k = 0; k < 8; k++) four[k / 4] |= (uint64_t)h[k] << (k % 4 * 16);
    return _mm256_cvtph_ps(_mm_set_epi64x((long long)four[1], (long long)four[0]));
}

/* Blocks b .. b + 7 into the partials of each token. Everything is unrolled: the sums stay in registers. */
LG_INLINE void super8_512(const uint8_t *row, int64_t b, const lg_row *x, __m256 *partials, int tokens,
                          lg_form256 form, lg_form512 wide, lg_pair_fn read_pair, lg_part_fn512 part) {
    __m512i s[MOST_TOKENS][8];
    __m256i m[MOST_TOKENS][8];
    uint16_t halves[8], minima[8];
#pragma clang loop unroll(full)
    for (int k = 0; k < 8; k += 2) {
        const uint8_t *block = row + (b + k) * form.bytes;
        lg_pair512 pair;
        fetch_far_and_near(block, 2 * form.bytes);
        read_pair(block, block + form.bytes, &pair);
#pragma clang loop unroll(full)
        for (int i = 0; i < 2; i++) {
            __m512i block_s[MOST_TOKENS];
            __m256i block_m[MOST_TOKENS];
            halves[k + i] = pair.head[i].d;
            if (form.flags & LG_HAS_MIN) minima[k + i] = pair.head[i].m;
            multiply512(block + i * form.bytes, &pair, i, b + k + i, x, block_s, block_m, tokens, form.flags, wide,
                        part);
            for (int t = 0; t < tokens; t++) {
                s[t][k + i] = block_s[t];
                if (form.flags & LG_HAS_MIN) m[t][k + i] = block_m[t];
            }
        }
    }
    __m256 d = _mm256_mul_ps(eight_halves(halves), _mm256_set1_ps(form.factor));
    for (int t = 0; t < tokens; t++) {
        __m256 dx = _mm256_loadu_ps(x[t].d + b);
        partials[t] = sum_super8(partials[t], _mm256_mul_ps(d, dx), add_lanes8_512(s[t]));
        if (form.flags & LG_HAS_MIN)
            partials[t] = sum_minimum8(partials[t], _mm256_mul_ps(eight_halves(minima), dx), add_lanes8_joined(m[t]));
    }
}

/* A block behind the last whole group of eight. */
LG_INLINE void super_rest_512(const uint8_t *row, int64_t b, const lg_row *x, float partials[][8], int tokens,
                              lg_form256 form, lg_form512 wide, lg_pair_fn read_pair, lg_part_fn512 part) {
    const uint8_t *block = row + b * form.bytes;
    __m512i s[MOST_TOKENS];
    __m256i m[MOST_TOKENS];
    lg_pair512 pair;
    read_pair(block, block, &pair);
    multiply512(block, &pair, 0, b, x, s, m, tokens, form.flags, wide, part);
    float d = lg_half(pair.head[0].d) * form.factor;
    for (int t = 0; t < tokens; t++) {
        float dx = x[t].d[b];
        sum_super(partials[t], b, d * dx, _mm512_reduce_add_epi32(s[t]));
        if (form.flags & LG_HAS_MIN)
            sum_minimum(partials[t], b, lg_half(pair.head[0].m) * dx, add_lanes(m[t]));
    }
}

LG_INLINE void avx512_super(const uint8_t *row, int64_t n, const lg_row *x, float *y, int tokens, lg_form256 form,
                            lg_form512 wide, lg_pair_fn read_pair, lg_part_fn512 part) {
    __m256 partials[MOST_TOKENS];
    float stored[MOST_TOKENS][8];
    int64_t blocks = n / 256, whole = blocks / 8 * 8;
    for (int t = 0; t < tokens; t++) partials[t] = _mm256_setzero_ps();
#pragma clang loop unroll(disable)
    for (int64_t b = 0; b < whole; b += 8) super8_512(row, b, x, partials, tokens, form, wide, read_pair, part);
    for (int t = 0; t < tokens; t++) _mm256_storeu_ps(stored[t], partials[t]);
#pragma clang loop unroll(disable)
    for (int64_t b = whole; b < blocks; b++)
        super_rest_512(row, b, x, stored, tokens, form, wide, read_pair, part);
    for (int t = 0; t < tokens; t++) y[t] = sum_finish(stored[t]);
}

/* Scale fields of eight neighbouring 32-value blocks, from byte `at` of each. */
LG_INLINE __m256 halves_of_run(const uint8_t *block, int bytes, int at) {
    uint16_t halves[8];
#pragma clang loop unroll(full)
    for (int k = 0; k < 8; k++) halves[k] = lg_load16(block + k * bytes + at);
    return eight_halves(halves);
}

/* The products p of run r, which has eight blocks. */
LG_INLINE void run8_512(const uint8_t *row, int64_t r, const lg_row *x, __m256 *p, int tokens, lg_form32 form,
                        int centre, lg_unpack512 unpack) {
    const uint8_t *block = row + 8 * r * form.bytes;
    __m512i s[MOST_TOKENS][4];
    fetch_far_and_near(block, 8 * form.bytes);
#pragma clang loop unroll(full)
    for (int k = 0; k < 4; k++) {
        __m512i u = unpack(block + k * form.bytes, block + (k + 4) * form.bytes);
        for (int t = 0; t < tokens; t++) {
            const int8_t *q = x[t].q + 256 * r + 32 * k;
            s[t][k] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), u, join256(load256(q), load256(q + 128)));
        }
    }
    __m256 d = halves_of_run(block, form.bytes, 0);
    for (int t = 0; t < tokens; t++) {
        __m256 dx = _mm256_loadu_ps(x[t].d + 8 * r);
        __m256i sum = _mm256_cvtepi16_epi32(load128(x[t].sum + 8 * r));
        __m256i total = add_lane_pairs(add_fours(s[t][0], s[t][1], s[t][2], s[t][3]));
        if (centre) total = _mm256_sub_epi32(total, _mm256_mullo_epi32(sum, _mm256_set1_epi32(centre)));
        p[t] = _mm256_mul_ps(_mm256_mul_ps(d, dx), _mm256_cvtepi32_ps(total));
        if (form.flags & LG_HAS_MIN) {
            __m256 m = halves_of_run(block, form.bytes, 2);
            p[t] = _mm256_fmadd_ps(_mm256_mul_ps(m, dx), _mm256_cvtepi32_ps(sum), p[t]);
        }
    }
}

/* The last run of a row when it has fewer than eight blocks. */
LG_INLINE void run_rest_512(const uint8_t *row, int64_t r, int64_t blocks, const lg_row *x, float partials[][8],
                            int tokens, lg_form32 form, int centre, lg_unpack512 unpack) {
    float p[MOST_TOKENS][8] = {{0.0f}};
#pragma clang loop unroll(disable)
    for (int64_t b = 8 * r; b < blocks; b++) {
        const uint8_t *block = row + b * form.bytes;
        __m512i u = unpack(block, block);
        for (int t = 0; t < tokens; t++) {
            __m512i q = _mm512_zextsi256_si512(load256(x[t].q + 32 * b));
            int32_t s = _mm512_reduce_add_epi32(_mm512_dpbusd_epi32(_mm512_setzero_si512(), u, q));
            float dx = x[t].d[b], sum = (float)x[t].sum[b];
            float value = (lg_half(lg_load16(block)) * dx) * (float)(s - centre * x[t].sum[b]);
            if (form.flags & LG_HAS_MIN) value = lg_fma(lg_half(lg_load16(block + 2)) * dx, sum, value);
            p[t][b & 7] = value;
        }
    }
    for (int t = 0; t < tokens; t++) sum_run(partials[t], r, p[t]);
}

LG_INLINE void avx512_run32(const uint8_t *row, int64_t n, const lg_row *x, float *y, int tokens, lg_form32 form,
                            int centre, lg_unpack512 unpack) {
    __m256 vectors[MOST_TOKENS];
    float partials[MOST_TOKENS][8];
    int64_t blocks = n / 32, runs = blocks / 8, whole = runs / 8 * 8;
    for (int t = 0; t < tokens; t++) vectors[t] = _mm256_setzero_ps();
#pragma clang loop unroll(disable)
    for (int64_t r = 0; r < whole; r += 8) {
        __m256 p[MOST_TOKENS][8];
#pragma clang loop unroll(full)
        for (int k = 0; k < 8; k++) {
            __m256 one[MOST_TOKENS];
            run8_512(row, r + k, x, one, tokens, form, centre, unpack);
            for (int t = 0; t < tokens; t++) p[t][k] = one[t];
        }
        for (int t = 0; t < tokens; t++) vectors[t] = sum_runs8(vectors[t], p[t]);
    }
    for (int t = 0; t < tokens; t++) _mm256_storeu_ps(partials[t], vectors[t]);
#pragma clang loop unroll(disable)
    for (int64_t r = whole; r < runs; r++) {
        __m256 p[MOST_TOKENS];
        run8_512(row, r, x, p, tokens, form, centre, unpack);
        for (int t = 0; t < tokens; t++) sum_run8(partials[t], r, p[t]);
    }
    if (blocks % 8) run_rest_512(row, runs, blocks, x, partials, tokens, form, centre, unpack);
    for (int t = 0; t < tokens; t++) y[t] = sum_finish(partials[t]);
}

#endif
