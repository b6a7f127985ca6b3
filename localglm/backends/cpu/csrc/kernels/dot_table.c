/* The kernels of this instruction set by file type id. */
#include "dot_types.h"
#include "quantise.h"

#define TILED(type)                                                                            \
    {.one = LG_NAME(one_##type),                                                               \
     .four = LG_NAME(four_##type),                                                             \
     .eight = LG_NAME(eight_##type),                                                           \
     .decode = LG_NAME(decode_##type)}
/* Panels from how many tokens on; types without a fast form need more of them. */
#if defined(LG_HAS_PANELS)
#define PANEL_FROM(from) .panel_from = from, .panel_bytes = LG_PANEL_BYTES
#else
#define PANEL_FROM(from) .panel_from = 5
#endif
#if defined(LG_HAS_PANELS) || defined(LG_HAS_NEON) || defined(LG_HAS_OCTETS)
#define ENTRY(type, from)                                                                      \
    {.one = LG_NAME(one_##type),                                                               \
     .two = LG_NAME(two_##type),                                                               \
     .four = LG_NAME(four_##type),                                                             \
     .panel = LG_NAME(panel_##type),                                                           \
     PANEL_FROM(from),                                                                         \
     .decode = LG_NAME(decode_##type)}
#else
#define ENTRY(type, from) TILED(type)
#endif

const lg_kernel_set LG_NAME(lg_kernels) = {
    .run32 = LG_NAME(quantise_run32),
    .super = LG_NAME(quantise_super),
#if defined(LG_HAS_PANELS)
    .weave = LG_NAME(weave),
#endif
    .types =
        {
            [LG_F32] = TILED(f32),
            [LG_F16] = TILED(f16),
            [LG_BF16] = TILED(bf16),
            [LG_Q8_0] = ENTRY(q8_0, 2),
            [LG_Q4_0] = ENTRY(q4_0, 3),
            [LG_Q4_1] = ENTRY(q4_1, 3),
            [LG_Q5_0] = ENTRY(q5_0, 3),
            [LG_Q5_1] = ENTRY(q5_1, 3),
            [LG_IQ4_NL] = ENTRY(iq4_nl, 3),
            [LG_Q2_K] = ENTRY(q2_k, 5),
            [LG_Q3_K] = ENTRY(q3_k, 5),
            [LG_Q4_K] = ENTRY(q4_k, 2),
            [LG_Q5_K] = ENTRY(q5_k, 2),
            [LG_Q6_K] = ENTRY(q6_k, 4),
            [LG_IQ1_S] = ENTRY(iq1_s, 5),
            [LG_IQ1_M] = ENTRY(iq1_m, 5),
            [LG_IQ2_XXS] = ENTRY(iq2_xxs, 5),
            [LG_IQ2_XS] = ENTRY(iq2_xs, 6),
            [LG_IQ2_S] = ENTRY(iq2_s, 6),
            [LG_IQ3_XXS] = ENTRY(iq3_xxs, 5),
            [LG_IQ3_S] = ENTRY(iq3_s, 8),
            [LG_IQ4_XS] = ENTRY(iq4_xs, 2),
        },
};
