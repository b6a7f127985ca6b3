/* Sizes of the storage types; the values of localglm/quant/types.py. */
#include "lg_blocks.h"
#include "lg_products.h"

static const lg_layout layouts[LG_TYPE_LIMIT] = {
    [LG_F32] = {1, 4, LG_FLOAT},         [LG_F16] = {1, 2, LG_FLOAT},
    [LG_BF16] = {1, 2, LG_FLOAT},        [LG_Q4_0] = {32, 18, LG_RUN32},
    [LG_Q4_1] = {32, 20, LG_RUN32},      [LG_Q5_0] = {32, 22, LG_RUN32},
    [LG_Q5_1] = {32, 24, LG_RUN32},      [LG_Q8_0] = {32, 34, LG_RUN32},
    [LG_IQ4_NL] = {32, 18, LG_RUN32},    [LG_Q2_K] = {256, 84, LG_SUPER},
    [LG_Q3_K] = {256, 110, LG_SUPER},    [LG_Q4_K] = {256, 144, LG_SUPER},
    [LG_Q5_K] = {256, 176, LG_SUPER},    [LG_Q6_K] = {256, 210, LG_SUPER},
    [LG_IQ2_XXS] = {256, 66, LG_SUPER},  [LG_IQ2_XS] = {256, 74, LG_SUPER},
    [LG_IQ3_XXS] = {256, 98, LG_SUPER},  [LG_IQ1_S] = {256, 50, LG_SUPER},
    [LG_IQ3_S] = {256, 110, LG_SUPER},   [LG_IQ2_S] = {256, 82, LG_SUPER},
    [LG_IQ4_XS] = {256, 136, LG_SUPER},  [LG_IQ1_M] = {256, 56, LG_SUPER},
};

const lg_layout *lg_layout_of(int type) {
    if (type < 0 || type >= LG_TYPE_LIMIT || layouts[type].family == 0) return NULL;
    return &layouts[type];
}

int64_t lg_row_bytes(int type, int64_t cols) {
    const lg_layout *layout = lg_layout_of(type);
    if (!layout || cols < 1 || cols % layout->values) return 0;
    return cols / layout->values * layout->bytes;
}
