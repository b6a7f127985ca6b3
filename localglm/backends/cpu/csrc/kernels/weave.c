/* Quantised activations in the order of dot_woven_avx512.h. */
#include "quantise.h"

#include "dot_types.h"

#if defined(LG_HAS_PANELS)
#include "dot_woven_avx512.h"

/* Eight clusters at a time, each vector the clusters of one 128-bit lane: bytes 8 v .. 8 v + 7 are weight v. */
LG_INLINE void clusters_of(const int8_t *q, __m512i *lanes) {
    const __m512i eighths = _mm512_setr_epi64(0x3830282018100800ll, 0x3931292119110901ll, 0x3a322a221a120a02ll,
                                              0x3b332b231b130b03ll, 0x3c342c241c140c04ll, 0x3d352d251d150d05ll,
                                              0x3e362e261e160e06ll, 0x3f372f271f170f07ll);
    for (int c = 0; c < 4; c++) lanes[c] = _mm512_permutexvar_epi8(eighths, load512(q + 64 * c));
}

/* Four vectors of 128-bit lanes to lane l of each in vector l; stored two vectors apart. */
LG_INLINE void store_lanes(const __m512i *v, int8_t *out) {
    __m512i low01 = _mm512_shuffle_i64x2(v[0], v[1], 0x44), high01 = _mm512_shuffle_i64x2(v[0], v[1], 0xee);
    __m512i low23 = _mm512_shuffle_i64x2(v[2], v[3], 0x44), high23 = _mm512_shuffle_i64x2(v[2], v[3], 0xee);
    _mm512_store_si512(out, _mm512_shuffle_i64x2(low01, low23, 0x88));
    _mm512_store_si512(out + 128, _mm512_shuffle_i64x2(low01, low23, 0xdd));
    _mm512_store_si512(out + 256, _mm512_shuffle_i64x2(high01, high23, 0x88));
    _mm512_store_si512(out + 384, _mm512_shuffle_i64x2(high01, high23, 0xdd));
}

/* Sums of a block in order of their groups. */
LG_INLINE __m512i sums_of(const int16_t *sum) {
    __m128i even = load128(sum), odd = load128(sum + 8);
    __m256i all = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_unpacklo_epi16(even, odd)),
                                          _mm_unpackhi_epi16(even, odd), 1);
    return _mm512_zextsi256_si512(all);
}

void LG_NAME(weave)(const int8_t *q, const int16_t *sum, int64_t blocks, int8_t *woven, int16_t *woven_sum) {
    const __m512i order = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    for (int64_t b = 0; b < blocks; b += 2) {
        __m512i first[4], second[4] = {{0}}, even[4], odd[4], first_sum = sums_of(sum + 16 * b), second_sum = {0};
        clusters_of(q + 256 * b, first);
        if (b + 1 < blocks) {
            clusters_of(q + 256 * (b + 1), second);
            second_sum = sums_of(sum + 16 * (b + 1));
        }
        for (int c = 0; c < 4; c++) {
            even[c] = _mm512_unpacklo_epi64(first[c], second[c]);
            odd[c] = _mm512_unpackhi_epi64(first[c], second[c]);
        }
        store_lanes(even, woven + 256 * b);
        store_lanes(odd, woven + 256 * b + 64);
        _mm512_store_si512(woven_sum + 16 * b, _mm512_permutex2var_epi64(first_sum, order, second_sum));
    }
}
#endif
