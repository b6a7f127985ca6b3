/* Sixteen weight rows decoded at once for several tokens: every vector lane is a row, so that the sums of
 * section 3 need no exchange between lanes. A step is four neighbouring values of all rows against the same
 * four of a token. */
#ifndef LG_DOT_PANEL_H
#define LG_DOT_PANEL_H

#include "../lg_blocks.h"
#include "../lg_isa.h"

enum { LG_PANEL_ROWS = 16, LG_PANEL_TOKENS = 8 };

/* 256 columns of a panel of super-blocks. Scales and pairs of minima in the order of lg_row.sum; types with
 * one scale for 32 weights fill eight. */
typedef struct {
    uint8_t u[64][LG_PANEL_ROWS][4];
    int32_t scale[16][LG_PANEL_ROWS], min[8][LG_PANEL_ROWS];
    float d[LG_PANEL_ROWS], m[LG_PANEL_ROWS];
} lg_panel_block;

/* 256 columns of a panel of 32-value blocks; blocks the row lacks have d = m = 0. */
typedef struct {
    uint8_t u[64][LG_PANEL_ROWS][4];
    float d[8][LG_PANEL_ROWS], m[8][LG_PANEL_ROWS];
} lg_panel_run;

_Static_assert(sizeof(lg_panel_block) == 5760 && sizeof(lg_panel_run) <= sizeof(lg_panel_block),
               "lg_panel_bytes counts the larger of the two");

/* What the products of a decoded panel are told. Weights are u - centre. */
typedef struct {
    const void *panel;
    int64_t blocks; /* of 256 columns */
    int centre, group, has_min;
    int32_t *offsets; /* room for LG_PANEL_TOKENS * blocks * 16 */
} lg_panel_form;

/* y[t][at + r] for rows r < count of all tokens. */
void LG_NAME(panel_super)(const lg_panel_form *form, int count, const lg_row *x, int64_t tokens, float *const *y,
                          int64_t at);
void LG_NAME(panel_run32)(const lg_panel_form *form, int count, const lg_row *x, int64_t tokens, float *const *y,
                          int64_t at);

#endif
