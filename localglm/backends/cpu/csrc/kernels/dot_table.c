/* The kernels of this instruction set by file type id. */
#include "dot_types.h"
#include "quantise.h"

#define TILED(type)                                                                            \
    {.one = LG_NAME(one_##type),                                                               \
     .four = LG_NAME(four_##type),                                                             \
     .eight = LG_NAME(eight_##type),                                                           \
     .decode = LG_NAME(decode_##type)}
#if defined(LG_HAS_PANELS) || defined(LG_HAS_NEON)
#define ENTRY(type)                                                                            \
    {.one = LG_NAME(one_##type),                                                               \
     .two = LG_NAME(two_##type),                                                               \
     .four = LG_NAME(four_##type),                                                             \
     .panel = LG_NAME(panel_##type),                                                           \
     .decode = LG_NAME(decode_##type)}
#else
#define ENTRY(type) TILED(type)
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
            [LG_Q8_0] = ENTRY(q8_0),
            [LG_Q4_0] = ENTRY(q4_0),
            [LG_Q4_1] = ENTRY(q4_1),
            [LG_Q5_0] = ENTRY(q5_0),
            [LG_Q5_1] = ENTRY(q5_1),
            [LG_IQ4_NL] = ENTRY(iq4_nl),
            [LG_Q2_K] = ENTRY(q2_k),
            [LG_Q3_K] = ENTRY(q3_k),
            [LG_Q4_K] = ENTRY(q4_k),
            [LG_Q5_K] = ENTRY(q5_k),
            [LG_Q6_K] = ENTRY(q6_k),
            [LG_IQ1_S] = ENTRY(iq1_s),
            [LG_IQ1_M] = ENTRY(iq1_m),
            [LG_IQ2_XXS] = ENTRY(iq2_xxs),
            [LG_IQ2_XS] = ENTRY(iq2_xs),
            [LG_IQ2_S] = ENTRY(iq2_s),
            [LG_IQ3_XXS] = ENTRY(iq3_xxs),
            [LG_IQ3_S] = ENTRY(iq3_s),
            [LG_IQ4_XS] = ENTRY(iq4_xs),
        },
};
