/* The kernels of this instruction set by file type id. */
#include "dot_types.h"
#include "quantise.h"

#define ENTRY(type) {LG_NAME(one_##type), LG_NAME(tile_##type), LG_NAME(decode_##type)}

const lg_kernel_set LG_NAME(lg_kernels) = {
    .run32 = LG_NAME(quantise_run32),
    .super = LG_NAME(quantise_super),
    .types =
        {
            [LG_F32] = ENTRY(f32),
            [LG_F16] = ENTRY(f16),
            [LG_BF16] = ENTRY(bf16),
            [LG_Q8_0] = ENTRY(q8_0),
        },
};
