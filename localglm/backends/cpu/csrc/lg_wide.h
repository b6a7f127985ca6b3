/* Lane groups as wide as a register: 16 values with AVX-512, else 8; and products of two vectors with eight rows.
 * Lane by lane the bits are those of lg_lanes.h. */
#ifndef LG_WIDE_H
#define LG_WIDE_H

#include "lg_lanes.h"

#if defined(__AVX512F__)
#include <immintrin.h>
enum { WIDE = 16 };
typedef __m512 lg_wide;
LG_INLINE __mmask16 first_lanes(int64_t n) { return n >= 16 ? 0xffff : (__mmask16)((1u << n) - 1u); }
LG_INLINE lg_wide wide_all(float x) { return _mm512_set1_ps(x); }
LG_INLINE lg_wide wide_fma(lg_wide a, lg_wide b, lg_wide c) { return _mm512_fmadd_ps(a, b, c); }
LG_INLINE lg_wide wide_times(lg_wide a, lg_wide b) { return _mm512_mul_ps(a, b); }
LG_INLINE lg_wide wide_minus(lg_wide a, lg_wide b) { return _mm512_sub_ps(a, b); }
LG_INLINE lg_wide wide_load(const float *p, int64_t n) {
    return n >= 16 ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps(first_lanes(n), p);
}
LG_INLINE void wide_store(float *p, lg_wide v, int64_t n) {
    if (n >= 16)
        _mm512_storeu_ps(p, v);
    else
        _mm512_mask_storeu_ps(p, first_lanes(n), v);
}
#else
enum { WIDE = 8 };
typedef lg_f8 lg_wide;
LG_INLINE lg_wide wide_all(float x) { return lg_all8(x); }
LG_INLINE lg_wide wide_fma(lg_wide a, lg_wide b, lg_wide c) { return lg_fma8(a, b, c); }
LG_INLINE lg_wide wide_times(lg_wide a, lg_wide b) { return a * b; }
LG_INLINE lg_wide wide_minus(lg_wide a, lg_wide b) { return a - b; }
LG_INLINE lg_wide wide_load(const float *p, int64_t n) { return lg_load8(p, n); }
LG_INLINE void wide_store(float *p, lg_wide v, int64_t n) { lg_store8(p, v, n); }
#endif

#if defined(__AVX512F__)
/* All 32 partials of two vectors with four rows. */
LG_INLINE void lg_pair_dots(const float *x, const float *y, const float *const *rows, int64_t n, lg_f8 out[2][4]) {
    __m512 sum[2][2][4];
    for (int g = 0; g < 2; g++)
        for (int r = 0; r < 4; r++) sum[g][0][r] = sum[g][1][r] = _mm512_setzero_ps();
    int64_t at = 0;
    for (; at + 32 <= n; at += 32)
        for (int g = 0; g < 2; g++) {
            const __m512 p = _mm512_loadu_ps(x + at + 16 * g), q = _mm512_loadu_ps(y + at + 16 * g);
            for (int r = 0; r < 4; r++) {
                const __m512 row = _mm512_loadu_ps(rows[r] + at + 16 * g);
                sum[g][0][r] = _mm512_fmadd_ps(p, row, sum[g][0][r]);
                sum[g][1][r] = _mm512_fmadd_ps(q, row, sum[g][1][r]);
            }
        }
    for (int g = 0; g < 2 && at + 16 * g < n; g++) {
        const __mmask16 held = first_lanes(n - at - 16 * g);
        const __m512 p = _mm512_maskz_loadu_ps(held, x + at + 16 * g);
        const __m512 q = _mm512_maskz_loadu_ps(held, y + at + 16 * g);
        for (int r = 0; r < 4; r++) {
            const __m512 row = _mm512_maskz_loadu_ps(held, rows[r] + at + 16 * g);
            sum[g][0][r] = _mm512_mask3_fmadd_ps(p, row, sum[g][0][r], held);
            sum[g][1][r] = _mm512_mask3_fmadd_ps(q, row, sum[g][1][r], held);
        }
    }
    for (int k = 0; k < 2; k++)
        for (int r = 0; r < 4; r++) {
            const __m512 s = _mm512_add_ps(sum[0][k][r], sum[1][k][r]); /* tree level 16 */
            out[k][r] = (lg_f8)_mm512_castps512_ps256(s) + (lg_f8)_mm512_extractf32x8_ps(s, 1);
        }
}

/* lg_dots8 with registers of 16. */
LG_INLINE void lg_wide_dots8(const float *x, const float *y, const float *const *rows, int64_t n, lg_f8 out[2]) {
    lg_f8 low[2][4], high[2][4];
    lg_pair_dots(x, y, rows, n, low);
    lg_pair_dots(x, y, rows + 4, n, high);
    for (int k = 0; k < 2; k++) {
        const lg_f8 all[8] = {low[k][0],  low[k][1],  low[k][2],  low[k][3],
                              high[k][0], high[k][1], high[k][2], high[k][3]};
        out[k] = lg_last8x8(all);
    }
}
#else
LG_INLINE void lg_wide_dots8(const float *x, const float *y, const float *const *rows, int64_t n, lg_f8 out[2]) {
    lg_dots8(x, y, rows, n, out);
}
#endif

#endif
