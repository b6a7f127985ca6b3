/* One block of sixteen weight rows decoded at once for several tokens: every vector lane is a row, so that the
 * sums of section 3 need no exchange between lanes. A step is four neighbouring values of all rows against the
 * same four of a token. A block is small enough to stay in the first cache until all tokens have met it; their
 * partials wait in memory in the meantime. */
#ifndef LG_DOT_PANEL_H
#define LG_DOT_PANEL_H

#include "../lg_blocks.h"
#include "../lg_isa.h"

enum {
    LG_PANEL_ROWS = 16,
    LG_PANEL_TOKENS = 8, /* the most that one turn of the inner loops takes */
    LG_PANEL_SLAB = 128  /* the most that meet a block before the next one is decoded */
};

/* 256 columns of a panel of super-blocks. Groups in natural order. A pair is two 16-bit numbers for a product
 * with neighbouring sums of x: groups 2 i and 2 i + 1, or, for groups of 16, in the order of lg_row.sum. */
typedef struct {
    uint8_t u[64][LG_PANEL_ROWS][4];
    int32_t scale[16][LG_PANEL_ROWS];
    int32_t lift[4][LG_PANEL_ROWS], min[8][LG_PANEL_ROWS]; /* pairs of centre * scale, and of minima */
    float d[LG_PANEL_ROWS], m[LG_PANEL_ROWS];
} lg_panel_block;

/* 256 columns of a panel of 32-value blocks; blocks the row lacks have d = m = 0. */
typedef struct {
    uint8_t u[64][LG_PANEL_ROWS][4];
    float d[8][LG_PANEL_ROWS], m[8][LG_PANEL_ROWS];
} lg_panel_run;

/* A panel's memory: partial j of token t at [j][t]. */
typedef struct {
    float partials[8][LG_PANEL_SLAB][LG_PANEL_ROWS];
    union {
        lg_panel_block block;
        lg_panel_run run;
    } decoded;
} lg_panel_room;

/* Adds block b of the decoded rows to partial b mod 8 of each token; partials [tokens][16].
 * decoded is an lg_panel_block or an lg_panel_run, its weights are u - centre. */
typedef void (*lg_panel_times)(const void *decoded, int centre, int64_t b, const lg_row *x, int64_t tokens,
                               float (*partials)[LG_PANEL_ROWS]);

/* Super-blocks by the weights a scale is for. _min: with minima. _narrow: centred so that the sum of a group
 * fits 16 bits; _lifted: narrow, but the weights of the contract are u, which lift puts right. */
void LG_NAME(times_16)(const void *, int, int64_t, const lg_row *, int64_t, float (*)[LG_PANEL_ROWS]);
void LG_NAME(times_16_narrow)(const void *, int, int64_t, const lg_row *, int64_t, float (*)[LG_PANEL_ROWS]);
void LG_NAME(times_16_narrow_min)(const void *, int, int64_t, const lg_row *, int64_t, float (*)[LG_PANEL_ROWS]);
void LG_NAME(times_32)(const void *, int, int64_t, const lg_row *, int64_t, float (*)[LG_PANEL_ROWS]);
void LG_NAME(times_32_min)(const void *, int, int64_t, const lg_row *, int64_t, float (*)[LG_PANEL_ROWS]);
void LG_NAME(times_32_lifted_min)(const void *, int, int64_t, const lg_row *, int64_t, float (*)[LG_PANEL_ROWS]);
void LG_NAME(times_run)(const void *, int, int64_t, const lg_row *, int64_t, float (*)[LG_PANEL_ROWS]);
void LG_NAME(times_run_min)(const void *, int, int64_t, const lg_row *, int64_t, float (*)[LG_PANEL_ROWS]);

/* y[t][at + step * r] of the tokens of a slab, for rows r < count. */
void LG_NAME(panel_finish)(const lg_panel_room *room, int count, int64_t tokens, float *const *y, int64_t at, int step);

#endif
