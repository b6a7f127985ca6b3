/* Products and decoding of the 32-value types. */
#include "dot_run32_unpack.h"
#include "dot_types.h"

LG_INLINE void decode_run32(const uint8_t *row, int64_t n, float *out, int bytes, int has_min,
                            lg_unpack32 unpack) {
    lg_block32 block;
    for (int64_t b = 0; b < n / 32; b++) {
        unpack(row + b * bytes, &block);
        float d = lg_half(block.d), m = has_min ? lg_half(block.m) : 0.0f;
        for (int i = 0; i < 32; i++) {
            float value = d * (float)block.w[i];
            out[32 * b + i] = has_min ? value + m : value;
        }
    }
}

#define DOT_RUN32(type, tokens, bytes, has_min) \
    portable_run32(row, n, x, y, tokens, bytes, has_min, unpack_##type)

#define RUN32_TYPE(type, bytes, has_min)                                                       \
    void LG_NAME(one_##type)(const uint8_t *row, int64_t n, const lg_row *x, float *y) {       \
        DOT_RUN32(type, 1, bytes, has_min);                                                    \
    }                                                                                          \
    void LG_NAME(tile_##type)(const uint8_t *row, int64_t n, const lg_row *x, float *y) {      \
        DOT_RUN32(type, LG_TILE, bytes, has_min);                                              \
    }                                                                                          \
    void LG_NAME(decode_##type)(const uint8_t *row, int64_t n, float *out) {                   \
        decode_run32(row, n, out, bytes, has_min, unpack_##type);                              \
    }

RUN32_TYPE(q8_0, 34, 0)
RUN32_TYPE(q4_0, 18, 0)
RUN32_TYPE(q4_1, 20, 1)
RUN32_TYPE(q5_0, 22, 0)
RUN32_TYPE(q5_1, 24, 1)
RUN32_TYPE(iq4_nl, 18, 0)
