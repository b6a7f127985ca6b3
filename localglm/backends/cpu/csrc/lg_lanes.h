/* The arithmetic of lg_math.h on eight values at once. Every function here gives, lane by lane, the bits of
 * its scalar namesake; the compiler maps a lane group to one AVX2 register or to two of 128 bits. */
#ifndef LG_LANES_H
#define LG_LANES_H

#include "lg_math.h"

#pragma clang diagnostic ignored "-Wpsabi" /* lane groups never cross a call: all is inlined */
#define LG_INLINE static inline __attribute__((always_inline))

typedef float lg_f8 __attribute__((vector_size(32)));
typedef int32_t lg_i8 __attribute__((vector_size(32)));
typedef uint32_t lg_u8 __attribute__((vector_size(32)));
typedef double lg_d8 __attribute__((vector_size(64)));
typedef int64_t lg_l8 __attribute__((vector_size(64)));

LG_INLINE lg_f8 lg_all8(float x) { return (lg_f8){x, x, x, x, x, x, x, x}; }

/* Load the first min(n, 8) values of p; the other lanes are zero. */
LG_INLINE lg_f8 lg_load8(const float *p, int64_t n) {
    lg_f8 v = {0};
    if (n >= 8)
        memcpy(&v, p, 32);
    else
        for (int64_t j = 0; j < n; j++) v[j] = p[j];
    return v;
}

LG_INLINE void lg_store8(float *p, lg_f8 v, int64_t n) {
    if (n >= 8)
        memcpy(p, &v, 32);
    else
        for (int64_t j = 0; j < n; j++) p[j] = v[j];
}

/* Take a where the mask is set (all ones), else b. */
LG_INLINE lg_f8 lg_pick8(lg_i8 mask, lg_f8 a, lg_f8 b) {
    return (lg_f8)((mask & (lg_i8)a) | (~mask & (lg_i8)b));
}

#if defined(__FMA__) || defined(__aarch64__)
LG_INLINE lg_f8 lg_fma8(lg_f8 a, lg_f8 b, lg_f8 c) { return __builtin_elementwise_fma(a, b, c); }
#else
/* Rounded to odd in double as in lg_fma, without branches. */
LG_INLINE lg_f8 lg_fma8(lg_f8 a, lg_f8 b, lg_f8 c) {
    lg_d8 p = __builtin_convertvector(a, lg_d8) * __builtin_convertvector(b, lg_d8);
    lg_d8 w = __builtin_convertvector(c, lg_d8), s = p + w;
    lg_d8 t = s - p, err = (p - (s - t)) + (w - t), zero = {0};
    lg_l8 u = (lg_l8)s;
    lg_l8 even = (u & 1) - 1, finite = ((s - s) == zero), inexact = (err != zero);
    lg_l8 same = ~((lg_l8)(err > zero) ^ (lg_l8)(s > zero));
    u += -(2 * same + 1) & even & finite & inexact;
    return __builtin_convertvector((lg_d8)u, lg_f8);
}
#endif

LG_INLINE lg_f8 lg_exp8(lg_f8 x) {
    const lg_f8 high = lg_all8(88.72284f), low = lg_all8(-104.0f), magic = lg_all8(12582912.0f);
    lg_i8 fits = (lg_i8)(x <= high) & (lg_i8)(x >= low);
    lg_f8 v = lg_pick8(fits, x, lg_all8(0.0f));
    lg_f8 n = (v * lg_all8(1.44269504f) + magic) - magic;
    lg_f8 r = lg_fma8(n, lg_all8(-0x1.62e4p-1f), v);
    r = lg_fma8(n, lg_all8(-1.42860677e-6f), r);
    lg_f8 p = lg_all8(0x1.6a23d0p-10f);
    p = lg_fma8(p, r, lg_all8(0x1.123a20p-7f));
    p = lg_fma8(p, r, lg_all8(0x1.5558f2p-5f));
    p = lg_fma8(p, r, lg_all8(0x1.555492p-3f));
    p = lg_fma8(p, r, lg_all8(0x1.fffffcp-2f));
    p = lg_fma8(p, r, lg_all8(1.0f));
    p = lg_fma8(p, r, lg_all8(1.0f));
    lg_i8 k = __builtin_convertvector(n, lg_i8);
    lg_i8 half = (k + (lg_i8)((lg_u8)k >> 31)) >> 1; /* towards zero */
    lg_f8 y = (p * (lg_f8)((half + 127) << 23)) * (lg_f8)((k - half + 127) << 23);
    lg_f8 rest = lg_pick8((lg_i8)(x > high), lg_all8(lg_from_bits(0x7f800000u)), x);
    rest = lg_pick8((lg_i8)(x < low), lg_all8(0.0f), rest);
    return lg_pick8(fits, y, rest);
}

LG_INLINE lg_f8 lg_sigmoid8(lg_f8 x) { return lg_all8(1.0f) / (lg_all8(1.0f) + lg_exp8(-x)); }
LG_INLINE lg_f8 lg_silu8(lg_f8 x) { return x / (lg_all8(1.0f) + lg_exp8(-x)); }

/* 32 partial sums; lane j of group g is partial 8 g + j. */
typedef struct {
    lg_f8 a[4];
} lg_sum32;

LG_INLINE lg_i8 lg_first8(int64_t n) { /* mask of the first n lanes */
    lg_i8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    return lane < (int32_t)(n < 8 ? n : 8);
}

/* Add the products of x and y, elements 0, 1, ... n - 1, to partials 0, 1, ... */
LG_INLINE lg_sum32 lg_dot_partials(const float *x, const float *y, int64_t n) {
    lg_sum32 s = {{{0}, {0}, {0}, {0}}};
    int64_t i = 0;
    for (; i + 32 <= n; i += 32)
        for (int g = 0; g < 4; g++)
            s.a[g] = lg_fma8(lg_load8(x + i + 8 * g, 8), lg_load8(y + i + 8 * g, 8), s.a[g]);
    for (int g = 0; i < n; g++, i += 8) {
        lg_f8 next = lg_fma8(lg_load8(x + i, n - i), lg_load8(y + i, n - i), s.a[g]);
        s.a[g] = lg_pick8(lg_first8(n - i), next, s.a[g]);
    }
    return s;
}

LG_INLINE lg_sum32 lg_plain_partials(const float *x, int64_t n) {
    lg_sum32 s = {{{0}, {0}, {0}, {0}}};
    int64_t i = 0;
    for (; i + 32 <= n; i += 32)
        for (int g = 0; g < 4; g++) s.a[g] = s.a[g] + lg_load8(x + i + 8 * g, 8);
    for (int g = 0; i < n; g++, i += 8)
        s.a[g] = lg_pick8(lg_first8(n - i), s.a[g] + lg_load8(x + i, n - i), s.a[g]);
    return s;
}

/* Tree levels 16 and 8: what is left are eight partials. */
LG_INLINE lg_f8 lg_fold8(lg_sum32 s) { return (s.a[0] + s.a[2]) + (s.a[1] + s.a[3]); }

/* Tree levels 4, 2 and 1. */
LG_INLINE float lg_last8(lg_f8 v) {
    float b0 = v[0] + v[4], b1 = v[1] + v[5], b2 = v[2] + v[6], b3 = v[3] + v[7];
    return (b0 + b2) + (b1 + b3);
}

LG_INLINE float lg_dot32(const float *x, const float *y, int64_t n) {
    return lg_last8(lg_fold8(lg_dot_partials(x, y, n)));
}

LG_INLINE float lg_total32(const float *x, int64_t n) {
    return lg_last8(lg_fold8(lg_plain_partials(x, n)));
}

LG_INLINE lg_f8 lg_level4(lg_f8 a, lg_f8 b) { /* lanes: a in 0..3, b in 4..7 */
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
           __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
}

/* Tree levels 4, 2 and 1 of eight sums together: lane r of the result is lg_last8(v[r]). */
LG_INLINE lg_f8 lg_last8x8(const lg_f8 *v) {
    lg_f8 p = lg_level4(v[0], v[4]), q = lg_level4(v[1], v[5]);
    lg_f8 r = lg_level4(v[2], v[6]), s = lg_level4(v[3], v[7]);
    lg_f8 pq = __builtin_shufflevector(p, q, 0, 1, 8, 9, 4, 5, 12, 13) +
               __builtin_shufflevector(p, q, 2, 3, 10, 11, 6, 7, 14, 15);
    lg_f8 rs = __builtin_shufflevector(r, s, 0, 1, 8, 9, 4, 5, 12, 13) +
               __builtin_shufflevector(r, s, 2, 3, 10, 11, 6, 7, 14, 15);
    return __builtin_shufflevector(pq, rs, 0, 2, 8, 10, 4, 6, 12, 14) +
           __builtin_shufflevector(pq, rs, 1, 3, 9, 11, 5, 7, 13, 15);
}

/* The first min(n, 8) half-precision values of p as float32, exact. */
#if defined(__F16C__) || defined(__aarch64__)
LG_INLINE lg_f8 lg_half8(const uint16_t *p, int64_t n) {
    typedef _Float16 halves __attribute__((vector_size(16)));
    halves h = {0};
    memcpy(&h, p, n >= 8 ? 16 : (size_t)n * 2);
    return __builtin_convertvector(h, lg_f8);
}
#else
/* The exponent moves by a multiplication, which also makes subnormals normal; infinities and NaN get the
 * largest exponent by hand. */
LG_INLINE lg_f8 lg_half8(const uint16_t *p, int64_t n) {
    typedef uint16_t halves __attribute__((vector_size(16)));
    halves h = {0};
    memcpy(&h, p, n >= 8 ? 16 : (size_t)n * 2);
    const lg_u8 u = __builtin_convertvector(h, lg_u8);
    const lg_u8 sign = (u & 0x8000u) << 16, size = (u & 0x7fffu) << 13;
    const lg_u8 scaled = (lg_u8)((lg_f8)size * lg_all8(0x1p112f));
    const lg_u8 special = (lg_u8)(size >= 0x0f800000u) & 0x7f800000u;
    return (lg_f8)(sign | scaled | special);
}
#endif

/* Row at of a cache of width n, as float32: where it lies, or widened into room. */
LG_INLINE const float *lg_cache_row(const void *cache, int half, int64_t at, int64_t n, float *room) {
    const uint16_t *from = (const uint16_t *)cache + at * n;
    if (!half) return (const float *)cache + at * n;
    int64_t c = 0;
    for (; c + 8 <= n; c += 8) lg_store8(room + c, lg_half8(from + c, 8), 8);
    if (c < n) lg_store8(room + c, lg_half8(from + c, n - c), n - c);
    return room;
}

/* Partials of one lane group of x and y with four rows, from column at: partial 32 i + at + lane.
 * Two vectors and four rows share their loads. */
LG_INLINE void lg_group_dots(const float *x, const float *y, const float *const *rows, int64_t at,
                             int64_t n, lg_f8 sum[2][4]) {
    for (int r = 0; r < 4; r++) sum[0][r] = sum[1][r] = lg_all8(0.0f);
    for (; at + 8 <= n; at += 32) {
        const lg_f8 p = lg_load8(x + at, 8), q = lg_load8(y + at, 8);
        for (int r = 0; r < 4; r++) {
            const lg_f8 row = lg_load8(rows[r] + at, 8);
            sum[0][r] = lg_fma8(p, row, sum[0][r]);
            sum[1][r] = lg_fma8(q, row, sum[1][r]);
        }
    }
    if (at >= n) return;
    const lg_f8 p = lg_load8(x + at, n - at), q = lg_load8(y + at, n - at);
    const lg_i8 held = lg_first8(n - at);
    for (int r = 0; r < 4; r++) {
        const lg_f8 row = lg_load8(rows[r] + at, n - at);
        sum[0][r] = lg_pick8(held, lg_fma8(p, row, sum[0][r]), sum[0][r]);
        sum[1][r] = lg_pick8(held, lg_fma8(q, row, sum[1][r]), sum[1][r]);
    }
}

/* Products of x and of y with eight rows: out[0] and out[1]. Each has the bits of lg_dot32. */
LG_INLINE void lg_dots8(const float *x, const float *y, const float *const *rows, int64_t n, lg_f8 out[2]) {
    lg_f8 folded[2][8];
    for (int r = 0; r < 8; r += 4) {
        lg_f8 sum[4][2][4];
        for (int g = 0; g < 4; g++) lg_group_dots(x, y, rows + r, 8 * g, n, sum[g]);
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < 4; i++)
                folded[k][r + i] = (sum[0][k][i] + sum[2][k][i]) + (sum[1][k][i] + sum[3][k][i]);
    }
    out[0] = lg_last8x8(folded[0]);
    out[1] = lg_last8x8(folded[1]);
}

#endif
