/* Integer block sums of Q8_0, Q6_K and IQ2_XXS against int8 activations, AVX2 and portable.
 * The AVX2 forms leave eight int32 lanes whose sum is S; the portable forms return S. */
#ifndef SPIKE_SUMS_H
#define SPIKE_SUMS_H

#include "../../../localglm/backends/cpu/csrc/lg_math.h"

enum { Q8_0, Q6_K, IQ2_XXS };
enum { ORDER_A, ORDER_B, ORDER_C, ORDER_D, FREE };

static const int VALUES[3] = {32, 256, 256};
static const int BYTES[3] = {34, 210, 66};

/* tables: 256 grid entries, then 128 entries of eight bytes +1 or -1 */
typedef struct {
    const int8_t *q;
    const int16_t *sums; /* over 16 values */
    const uint64_t *tables;
} operand;

static inline uint32_t load32(const uint8_t *p) {
    uint32_t u;
    memcpy(&u, p, 4);
    return u;
}

static inline float weight_scale(int format, const uint8_t *block) {
    uint16_t h;
    memcpy(&h, block + (format == Q6_K ? 208 : 0), 2);
    return format == IQ2_XXS ? lg_half(h) * 0.125f : lg_half(h);
}

#ifdef __AVX2__
#include <immintrin.h>

static inline __m256i load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }

static inline __m256i dot_signed(__m256i w, __m256i x, __m256i factor) {
    __m256i pairs = _mm256_maddubs_epi16(_mm256_sign_epi8(w, w), _mm256_sign_epi8(x, w));
    return _mm256_madd_epi16(pairs, factor);
}

static inline __m256i lanes_q8(const uint8_t *w, const int8_t *x) {
    return dot_signed(load(w + 2), load(x), _mm256_set1_epi16(1));
}

static inline __m256i lanes_q6(const uint8_t *w, const int8_t *x, const int16_t *sums) {
    const __m256i nibble = _mm256_set1_epi8(15), pair = _mm256_set1_epi8(48);
    const __m128i two = _mm_set1_epi8(2);
    __m128i scales = _mm_loadu_si128((const __m128i *)(w + 192));
    __m128i pick = _mm_set_epi64x(0x0101010101010101ll, 0);
    __m256i minus = _mm256_madd_epi16(_mm256_cvtepi8_epi16(scales), load(sums));
    __m256i acc = _mm256_setzero_si256();
    for (int n = 0; n < 2; n++) {
        __m256i l0 = load(w + 64 * n), l1 = load(w + 64 * n + 32), h = load(w + 128 + 32 * n);
        __m256i q[4] = {
            _mm256_or_si256(l0 & nibble, _mm256_slli_epi16(h, 4) & pair),
            _mm256_or_si256(l1 & nibble, _mm256_slli_epi16(h, 2) & pair),
            _mm256_or_si256(_mm256_srli_epi16(l0, 4) & nibble, h & pair),
            _mm256_or_si256(_mm256_srli_epi16(l1, 4) & nibble, _mm256_srli_epi16(h, 2) & pair),
        };
        for (int k = 0; k < 4; k++) {
            __m256i factor = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(scales, pick));
            __m256i pairs = _mm256_maddubs_epi16(q[k], load(x + 128 * n + 32 * k));
            acc = _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, factor));
            pick = _mm_add_epi8(pick, two);
        }
    }
    return _mm256_sub_epi32(acc, _mm256_slli_epi32(minus, 5));
}

static inline __m256i grid_group(const uint8_t *p, const uint64_t *tables, __m256i *signs) {
    uint32_t i = load32(p), s = load32(p + 4);
    const uint64_t *plus = tables + 256;
    *signs = _mm256_set_epi64x((int64_t)plus[s >> 21 & 127], (int64_t)plus[s >> 14 & 127],
                               (int64_t)plus[s >> 7 & 127], (int64_t)plus[s & 127]);
    return _mm256_set_epi64x((int64_t)tables[i >> 24], (int64_t)tables[i >> 16 & 255],
                             (int64_t)tables[i >> 8 & 255], (int64_t)tables[i & 255]);
}

static inline __m256i lanes_iq2(const uint8_t *w, const int8_t *x, const uint64_t *tables) {
    __m256i acc = _mm256_setzero_si256();
    for (int g = 0; g < 8; g++) {
        __m256i signs, grid = grid_group(w + 2 + 8 * g, tables, &signs);
        __m256i pairs = _mm256_maddubs_epi16(grid, _mm256_sign_epi8(load(x + 32 * g), signs));
        __m256i factor = _mm256_set1_epi16((int16_t)(2 * (load32(w + 6 + 8 * g) >> 28) + 1));
        acc = _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, factor));
    }
    return acc;
}

static inline __m256i lanes(int format, const uint8_t *w, operand x, int block) {
    const int8_t *q = x.q + block * VALUES[format];
    if (format == Q8_0) return lanes_q8(w, q);
    if (format == Q6_K) return lanes_q6(w, q, x.sums + block * 16);
    return lanes_iq2(w, q, x.tables);
}

/* Lane i of the result is the sum of the lanes of v[i]. */
static inline __m256i across(const __m256i *v) {
    __m256i a = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    __m256i b = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20),
                            _mm256_permute2x128_si256(a, b, 0x31));
}

/* The same for float32; lane i is ((0+1)+(2+3))+((4+5)+(6+7)) of v[i]. */
static inline __m256 across_ps(const __m256 *v) {
    __m256 a = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
    __m256 b = _mm256_hadd_ps(_mm256_hadd_ps(v[4], v[5]), _mm256_hadd_ps(v[6], v[7]));
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}
#endif

static inline int32_t group_q6(const uint8_t *w, const int8_t *x, int n, int k) {
    const uint8_t *l = w + 64 * n + 32 * (k & 1), *h = w + 128 + 32 * n;
    int32_t total = 0;
    for (int half = 0; half < 2; half++) {
        int32_t dot = 0;
        for (int i = 16 * half; i < 16 * half + 16; i++) {
            int q = (l[i] >> (4 * (k >> 1)) & 15) | (h[i] >> (2 * k) & 3) << 4;
            dot += (q - 32) * x[i];
        }
        total += (int8_t)w[192 + 8 * n + 2 * k + half] * dot;
    }
    return total;
}

static inline int32_t sum_iq2(const uint8_t *w, const int8_t *x, const uint64_t *tables) {
    int32_t total = 0;
    for (int g = 0; g < 8; g++, x += 32) {
        uint32_t index = load32(w + 2 + 8 * g), s = load32(w + 6 + 8 * g);
        int32_t dot = 0;
        for (int k = 0; k < 4; k++) {
            int8_t grid[8], plus[8];
            memcpy(grid, tables + (index >> (8 * k) & 255), 8);
            memcpy(plus, tables + 256 + (s >> (7 * k) & 127), 8);
            for (int i = 0; i < 8; i++) dot += grid[i] * plus[i] * x[8 * k + i];
        }
        total += (int32_t)(2 * (s >> 28) + 1) * dot;
    }
    return total;
}

static inline int32_t block_sum(int format, const uint8_t *w, operand x, int block) {
    const int8_t *q = x.q + block * VALUES[format];
    int32_t total = 0;
    if (format == Q8_0)
        for (int i = 0; i < 32; i++) total += (int8_t)w[2 + i] * q[i];
    else if (format == Q6_K)
        for (int k = 0; k < 8; k++) total += group_q6(w, q + 32 * k, k >> 2, k & 3);
    else
        total = sum_iq2(w, q, x.tables);
    return total;
}

#endif
