/* Eight weight rows decoded at once for several tokens, on AVX2: every 32-bit lane is a row, as in dot_panel.h. A step
 * is four neighbouring values of all rows against the same four of a token.
 *
 * A byte product adds two neighbours in 16 bits (dot_avx2.h). Where the largest weight held leaves room, products
 * of `adds` steps are added there before they are multiplied by the scale and widened:
 *   4 steps  u <= 32: 4 * 2 * 32 * 127 = 32512 < 32767
 *   2 steps  u <= 64
 *   1 step   u <= 128, or a signed byte whose sign is given to x instead (wide). */
#ifndef LG_DOT_PANEL_AVX2_H
#define LG_DOT_PANEL_AVX2_H

#include "../lg_blocks.h"
#include "../lg_isa.h"

enum { LG_OCTET = 8, LG_OCTET_TOKENS = 8 };

/* 256 columns of super-blocks. Scales twice 16 bits, in the order of lg_row.sum, of which groups of 32 fill eight.
 * pair: minima, or what the centre of the weights adds for each sum of x, in the same order, two in 32 bits. */
typedef struct {
    uint8_t u[64][LG_OCTET][4];
    int32_t scale[16][LG_OCTET], pair[8][LG_OCTET];
    float d[LG_OCTET], m[LG_OCTET];
} lg_octet_block;

/* 256 columns of 32-value blocks; blocks the row lacks have d = m = 0. */
typedef struct {
    uint8_t u[64][LG_OCTET][4];
    float d[8][LG_OCTET], m[8][LG_OCTET];
} lg_octet_run;

_Static_assert(sizeof(lg_octet_block) + LG_OCTET_TOKENS * 16 <= 5760 && sizeof(lg_octet_run) <= sizeof(lg_octet_block),
               "a panel and its sums fit what lg_panel_bytes counts");

/* What the products of a decoded panel are told. */
typedef struct {
    const void *panel;
    int64_t blocks; /* of 256 columns */
    int group, adds, wide, has_min;
    int centre;    /* 32-value blocks: weights are u - centre */
    int16_t *sums; /* groups of 32: eight sums of x for each block and token of a tile */
} lg_octet_form;

/* y[t][at + r] for rows r < count <= 8 of all tokens. */
void LG_NAME(octet_super)(const lg_octet_form *form, int count, const lg_row *x, int64_t tokens, float *const *y,
                          int64_t at);
void LG_NAME(octet_run32)(const lg_octet_form *form, int count, const lg_row *x, int64_t tokens, float *const *y,
                          int64_t at);

#endif
