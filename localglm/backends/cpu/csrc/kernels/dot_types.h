/* The kernels of every type, as this instruction set names them. */
#ifndef LG_DOT_TYPES_H
#define LG_DOT_TYPES_H

#include "../lg_blocks.h"
#include "../lg_isa.h"

#define LG_DECLARE(type)                                                                      \
    void LG_NAME(one_##type)(const uint8_t *row, int64_t n, const lg_row *x, float *y);       \
    void LG_NAME(tile_##type)(const uint8_t *row, int64_t n, const lg_row *x, float *y);      \
    void LG_NAME(decode_##type)(const uint8_t *row, int64_t n, float *out);

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
