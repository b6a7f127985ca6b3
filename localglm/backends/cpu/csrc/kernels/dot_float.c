/* Float types, section 4: 32 partials by index mod 32, then the fixed tree. */
#include "../lg_math.h"
#include "dot_types.h"

#if defined(__AVX512F__)
#include <immintrin.h>

typedef __m512 (*lg_widen16)(const uint8_t *p);
LG_INLINE __m512 widen16_f32(const uint8_t *p) { return _mm512_loadu_ps(p); }
LG_INLINE __m512 widen16_f16(const uint8_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
LG_INLINE __m512 widen16_bf16(const uint8_t *p) {
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
#elif defined(__AVX2__)
#include <immintrin.h>

typedef __m256 (*lg_widen8)(const uint8_t *p);
LG_INLINE __m256 widen8_f32(const uint8_t *p) { return _mm256_loadu_ps((const float *)(const void *)p); }
LG_INLINE __m256 widen8_f16(const uint8_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
LG_INLINE __m256 widen8_bf16(const uint8_t *p) {
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
#elif defined(LG_HAS_NEON)
#include "dot_float_neon.h"
#endif

typedef float (*lg_widen)(const uint8_t *p);
LG_INLINE float widen_f32(const uint8_t *p) { return lg_from_bits(lg_load32(p)); }
LG_INLINE float widen_f16(const uint8_t *p) { return lg_half(lg_load16(p)); }
LG_INLINE float widen_bf16(const uint8_t *p) { return lg_bf16(lg_load16(p)); }

/* Elements begin..n into the partials, begin a multiple of 32. */
LG_INLINE void add_elements(const uint8_t *row, int64_t begin, int64_t n, const float *x, float *a, int bytes,
                            lg_widen widen) {
    for (int64_t i = begin; i < n; i++) a[i & 31] = lg_fma(widen(row + i * bytes), x[i], a[i & 31]);
}

#if defined(__AVX512F__)
/* Sixteen of the 32 partials a vector; eight tokens take half the registers. */
LG_INLINE void dot_float(const uint8_t *row, int64_t n, const lg_row *x, float *y, int tokens, int bytes,
                         lg_widen widen, lg_widen16 widen16) {
    __m512 a[LG_TILE][2];
    for (int t = 0; t < tokens; t++) a[t][0] = a[t][1] = _mm512_setzero_ps();
    int64_t whole = n / 32 * 32;
    for (int64_t i = 0; i < whole; i += 32)
        for (int k = 0; k < 2; k++) {
            __m512 w = widen16(row + (i + 16 * k) * bytes);
            for (int t = 0; t < tokens; t++)
                a[t][k] = _mm512_fmadd_ps(w, _mm512_loadu_ps(x[t].x + i + 16 * k), a[t][k]);
        }
    for (int t = 0; t < tokens; t++) {
        float partials[32];
        for (int k = 0; k < 2; k++) _mm512_storeu_ps(partials + 16 * k, a[t][k]);
        add_elements(row, whole, n, x[t].x, partials, bytes, widen);
        y[t] = lg_tree32(partials);
    }
}
#define DOT_FLOAT(type, tokens) dot_float(row, n, x, y, tokens, bytes_##type, widen_##type, widen16_##type)
#elif defined(__AVX2__)
LG_INLINE void dot_float(const uint8_t *row, int64_t n, const lg_row *x, float *y, int tokens, int bytes,
                         lg_widen widen, lg_widen8 widen8) {
    __m256 a[4][4];
    for (int t = 0; t < tokens; t++)
        for (int k = 0; k < 4; k++) a[t][k] = _mm256_setzero_ps();
    int64_t whole = n / 32 * 32;
    for (int64_t i = 0; i < whole; i += 32)
        for (int k = 0; k < 4; k++) {
            __m256 w = widen8(row + (i + 8 * k) * bytes);
            for (int t = 0; t < tokens; t++)
                a[t][k] = _mm256_fmadd_ps(w, _mm256_loadu_ps(x[t].x + i + 8 * k), a[t][k]);
        }
    for (int t = 0; t < tokens; t++) {
        float partials[32];
        for (int k = 0; k < 4; k++) _mm256_storeu_ps(partials + 8 * k, a[t][k]);
        add_elements(row, whole, n, x[t].x, partials, bytes, widen);
        y[t] = lg_tree32(partials);
    }
}
/* Four tokens at a time: their 16 vectors of partials are all the registers there are. */
#define DOT_FLOAT(type, tokens)                                                                \
    for (int t = 0; t < tokens; t += 4)                                                        \
    dot_float(row, n, x + t, y + t, tokens < 4 ? tokens : 4, bytes_##type, widen_##type, widen8_##type)
#elif defined(LG_HAS_NEON)
LG_INLINE void dot_float(const uint8_t *row, int64_t n, const lg_row *x, float *y, int tokens, int bytes,
                         lg_widen widen, lg_widen4 widen4) {
    float partials[LG_FLOAT_TOKENS][32];
    int64_t whole = n / 32 * 32;
    neon_whole_tiles(row, whole, x, partials, tokens, bytes, widen4);
    for (int t = 0; t < tokens; t++) {
        add_elements(row, whole, n, x[t].x, partials[t], bytes, widen);
        y[t] = lg_tree32(partials[t]);
    }
}
#define DOT_FLOAT(type, tokens)                                                                \
    for (int t = 0; t < tokens; t += LG_FLOAT_TOKENS)                                          \
    dot_float(row, n, x + t, y + t, tokens < LG_FLOAT_TOKENS ? tokens : LG_FLOAT_TOKENS, bytes_##type, \
              widen_##type, widen4_##type)
#else
LG_INLINE void dot_float(const uint8_t *row, int64_t n, const lg_row *x, float *y, int tokens, int bytes,
                         lg_widen widen) {
    for (int t = 0; t < tokens; t++) {
        float partials[32] = {0.0f};
        int64_t whole = n / 32 * 32;
        for (int64_t i = 0; i < whole; i += 32)
            for (int j = 0; j < 32; j++)
                partials[j] = lg_fma(widen(row + (i + j) * bytes), x[t].x[i + j], partials[j]);
        add_elements(row, whole, n, x[t].x, partials, bytes, widen);
        y[t] = lg_tree32(partials);
    }
}
#define DOT_FLOAT(type, tokens) dot_float(row, n, x, y, tokens, bytes_##type, widen_##type)
#endif

#define FLOAT_TYPE(type, bytes)                                                                \
    enum { bytes_##type = bytes };                                                             \
    LG_DEFINE_DOTS(type, DOT_FLOAT)                                                            \
    void LG_NAME(decode_##type)(const uint8_t *row, int64_t n, float *out) {                   \
        for (int64_t i = 0; i < n; i++) out[i] = widen_##type(row + i * bytes);                \
    }

FLOAT_TYPE(f32, 4)
FLOAT_TYPE(f16, 2)
FLOAT_TYPE(bf16, 2)
