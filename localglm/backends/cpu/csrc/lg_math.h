/* Scalar float32 arithmetic of docs/design/arithmetic.md: fma, exp, sigmoid, silu, half-precision
 * conversion, the 32-partial sum. Shared by every CPU kernel; GPU kernels state the same steps.
 * Compiled with contraction off: every fused step below is written as lg_fma. */
#ifndef LG_MATH_H
#define LG_MATH_H

#include <stdint.h>
#include <string.h>

static inline uint32_t lg_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

static inline float lg_from_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}

#if defined(__FMA__) || defined(__aarch64__)
static inline float lg_fma(float a, float b, float c) { return __builtin_elementwise_fma(a, b, c); }
#else
/* The product of two floats is exact in double. The sum is rounded to odd in double, so that the
 * second rounding to float cannot go wrong (double has more than two bits to spare). */
static inline float lg_fma(float a, float b, float c) {
    double p = (double)a * (double)b, s = p + (double)c;
    double t = s - p;
    double err = (p - (s - t)) + ((double)c - t);
    uint64_t u;
    memcpy(&u, &s, 8);
    if (err != 0.0 && (u & 1) == 0 && (u & 0x7ff0000000000000ull) != 0x7ff0000000000000ull) {
        u += ((err > 0.0) == (s > 0.0)) ? 1 : (uint64_t)-1;
        memcpy(&s, &u, 8);
    }
    return (float)s;
}
#endif

/* Half precision to float32; exact, subnormals, infinities and NaN included. */
static inline float lg_half(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = (h >> 10) & 31, m = h & 1023;
    if (e == 31) return lg_from_bits(sign | 0x7f800000u | (m << 13));
    if (e != 0) return lg_from_bits(sign | ((e + 112) << 23) | (m << 13));
    float x = (float)m * 5.9604644775390625e-8f; /* 2^-24 */
    return sign ? -x : x;
}

/* float32 to half precision, nearest even; overflow gives infinity, NaN stays NaN. */
static inline uint16_t lg_to_half(float x) {
    uint32_t u = lg_bits(x), sign = (u >> 16) & 0x8000, a = u & 0x7fffffff;
    if (a > 0x7f800000) return (uint16_t)(sign | 0x7e00);
    if (a >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
    if (a < 0x38800000) { /* subnormal result: let the adder round at bit 2^-24 */
        float r = lg_from_bits(a) + 0.5f;
        return (uint16_t)(sign | (lg_bits(r) - 0x3f000000u));
    }
    uint32_t r = a + 0xfff + ((a >> 13) & 1);
    return (uint16_t)(sign | ((r - 0x38000000u) >> 13));
}

/* The square root instruction; the library call would also report to errno. */
static inline float lg_sqrt(float x) { return __builtin_elementwise_sqrt(x); }

static inline float lg_bf16(uint16_t h) { return lg_from_bits((uint32_t)h << 16); }

/* Nearest integer, ties to even, for |x| < 2^22. */
static inline float lg_rint(float x) {
    const float magic = 12582912.0f; /* 1.5 * 2^23 */
    return (x + magic) - magic;
}

/* e^x, below 1.3 units in the last place where the result is normal. */
static inline float lg_exp(float x) {
    if (!(x <= 88.72284f)) return x > 88.72284f ? lg_from_bits(0x7f800000u) : x;
    if (x < -104.0f) return 0.0f;
    float n = lg_rint(x * 1.44269504f);
    float r = lg_fma(n, -0x1.62e4p-1f, x);
    r = lg_fma(n, -1.42860677e-6f, r);
    float p = 0x1.6a23d0p-10f;
    p = lg_fma(p, r, 0x1.123a20p-7f);
    p = lg_fma(p, r, 0x1.5558f2p-5f);
    p = lg_fma(p, r, 0x1.555492p-3f);
    p = lg_fma(p, r, 0x1.fffffcp-2f);
    p = lg_fma(p, r, 1.0f);
    p = lg_fma(p, r, 1.0f);
    int k = (int)n, half = k / 2;
    return (p * lg_from_bits((uint32_t)(half + 127) << 23)) *
           lg_from_bits((uint32_t)(k - half + 127) << 23);
}

static inline float lg_sigmoid(float x) { return 1.0f / (1.0f + lg_exp(-x)); }
static inline float lg_silu(float x) { return x / (1.0f + lg_exp(-x)); }

/* The fixed tree over 32 partial sums. */
static inline float lg_tree32(float *a) {
    for (int h = 16; h >= 1; h >>= 1)
        for (int j = 0; j < h; j++) a[j] = a[j] + a[j + h];
    return a[0];
}

#endif
