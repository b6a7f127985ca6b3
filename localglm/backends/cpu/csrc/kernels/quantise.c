/* Written so that every loop over a run vectorises; the same source serves all instruction sets. */
#include "../lg_math.h"
#include "../lg_isa.h"
#include "quantise.h"

/* One run of at most R values; q gets all R, zeros behind the end. Returns the scale. */
LG_INLINE float quantise_run(const float *restrict x, int count, int run, int8_t *restrict q) {
    uint32_t bits[256];
    int32_t top = 0; /* magnitudes fit 31 bits, so signed comparison is the unsigned one */
    memset(q, 0, (size_t)run);
    memcpy(bits, x, (size_t)count * 4);
    for (int i = 0; i < count; i++) {
        int32_t magnitude = (int32_t)(bits[i] & 0x7fffffffu);
        top = magnitude > top ? magnitude : top;
    }
    if (top >= 0x7f800000) return lg_from_bits(0x7fc00000u);
    float a = lg_from_bits((uint32_t)top);
    if (a < 0x1p-100f) return 0.0f;
    float s = 127.0f / a;
    for (int i = 0; i < count; i++) q[i] = (int8_t)(int32_t)lg_rint(x[i] * s);
    return a / 127.0f;
}

LG_INLINE int16_t sum_of(const int8_t *q, int count) {
    int32_t total = 0;
    for (int i = 0; i < count; i++) total += q[i];
    return (int16_t)total; /* at most 32 * 127 */
}

void LG_NAME(quantise_run32)(const float *x, int64_t n, int8_t *q, float *d, int16_t *sum) {
    int64_t runs = (n + 31) / 32, padded = (n + 255) / 256 * 8;
    for (int64_t r = 0; r < padded; r++) {
        int64_t left = n - 32 * r;
        int8_t *out = q + 32 * r;
        if (r < runs) {
            d[r] = left >= 32 ? quantise_run(x + 32 * r, 32, 32, out)
                              : quantise_run(x + 32 * r, (int)left, 32, out);
        } else {
            memset(out, 0, 32);
            d[r] = 0.0f;
        }
        sum[r] = sum_of(out, 32);
    }
}

void LG_NAME(quantise_super)(const float *x, int64_t n, int8_t *q, float *d, int16_t *sum) {
    for (int64_t r = 0; r < (n + 255) / 256; r++) {
        int64_t left = n - 256 * r;
        int8_t *out = q + 256 * r;
        d[r] = left >= 256 ? quantise_run(x + 256 * r, 256, 256, out)
                           : quantise_run(x + 256 * r, (int)left, 256, out);
        for (int g = 0; g < 16; g++) sum[16 * r + (g & 1) * 8 + g / 2] = sum_of(out + 16 * g, 16);
    }
}
