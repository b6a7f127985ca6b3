/* The kernels of every type, as this instruction set names them. */
#ifndef LG_DOT_TYPES_H
#define LG_DOT_TYPES_H

#include "../lg_blocks.h"
#include "../lg_isa.h"

#if defined(__AVX512VNNI__) && defined(__AVX512VBMI__) && defined(__GFNI__)
#define LG_HAS_PANELS 1
enum { LG_PANEL_BYTES = 76 * 1024 };
#elif defined(__AVX2__)
#define LG_HAS_OCTETS 1
#elif defined(__ARM_FEATURE_DOTPROD)
#define LG_HAS_NEON 1
#endif

#define LG_DOT_ARGUMENTS const uint8_t *row, int64_t n, const lg_row *x, float *y
#define LG_PANEL_ARGUMENTS                                                                     \
    const uint8_t *row, int64_t row_bytes, int64_t count, int64_t n, const lg_row *x, int64_t tokens, \
        float *const *y, int64_t at, void *room

#define LG_DECLARE(type)                                                                       \
    void LG_NAME(one_##type)(LG_DOT_ARGUMENTS);                                                \
    void LG_NAME(two_##type)(LG_DOT_ARGUMENTS);                                                \
    void LG_NAME(four_##type)(LG_DOT_ARGUMENTS);                                               \
    void LG_NAME(eight_##type)(LG_DOT_ARGUMENTS);                                              \
    void LG_NAME(panel_##type)(LG_PANEL_ARGUMENTS);                                            \
    void LG_NAME(decode_##type)(const uint8_t *row, int64_t n, float *out);

/* The three products of a type; dot(type, tokens) is what one of them does. */
#define LG_DEFINE_DOTS(type, dot)                                                              \
    void LG_NAME(one_##type)(LG_DOT_ARGUMENTS) { dot(type, 1); }                               \
    void LG_NAME(four_##type)(LG_DOT_ARGUMENTS) { dot(type, 4); }                              \
    void LG_NAME(eight_##type)(LG_DOT_ARGUMENTS) { dot(type, 8); }

/* The same for types with panels; panel(type) is what the product of a panel does. */
#define LG_DEFINE_PANELS(type, dot, panel)                                                     \
    LG_DEFINE_SMALL(type, dot)                                                                 \
    void LG_NAME(panel_##type)(LG_PANEL_ARGUMENTS) { panel(type); }

#define LG_DEFINE_SMALL(type, dot)                                                             \
    void LG_NAME(one_##type)(LG_DOT_ARGUMENTS) { dot(type, 1); }                               \
    void LG_NAME(two_##type)(LG_DOT_ARGUMENTS) { dot(type, 2); }                               \
    void LG_NAME(four_##type)(LG_DOT_ARGUMENTS) { dot(type, 4); }

LG_DECLARE(f32)
LG_DECLARE(f16)
LG_DECLARE(bf16)
LG_DECLARE(q8_0)
LG_DECLARE(q4_0)
LG_DECLARE(q4_1)
LG_DECLARE(q5_0)
LG_DECLARE(q5_1)
LG_DECLARE(iq4_nl)
LG_DECLARE(q2_k)
LG_DECLARE(q3_k)
LG_DECLARE(q4_k)
LG_DECLARE(q5_k)
LG_DECLARE(q6_k)
LG_DECLARE(iq1_s)
LG_DECLARE(iq1_m)
LG_DECLARE(iq2_xxs)
LG_DECLARE(iq2_xs)
LG_DECLARE(iq2_s)
LG_DECLARE(iq3_xxs)
LG_DECLARE(iq3_s)
LG_DECLARE(iq4_xs)

#endif
