/* Eight weight rows decoded at once for several tokens: every vector lane is a row, so that the sums of section 3
 * need no exchange between lanes. A step is four neighbouring values of all rows against the same four of a token. */
#ifndef LG_DOT_PANEL_NEON_H
#define LG_DOT_PANEL_NEON_H

#include "dot_neon.h"
#include "dot_types.h"

enum { LG_NEON_ROWS = 8, LG_NEON_TOKENS = 4 };

/* 256 columns of super-blocks. Scales in the order of the groups; minima in the order of lg_row.sum, types with groups
 * of 32 fill the first eight. */
typedef struct {
    int8_t w[64][LG_NEON_ROWS][4];
    int32_t scale[16][LG_NEON_ROWS];
    int16_t min[16][LG_NEON_ROWS];
    float d[LG_NEON_ROWS], m[LG_NEON_ROWS];
} lg_neon_block;

/* 256 columns of 32-value blocks; blocks the row lacks have no weights and d = m = 0. */
typedef struct {
    int8_t w[64][LG_NEON_ROWS][4];
    float d[8][LG_NEON_ROWS], m[8][LG_NEON_ROWS];
} lg_neon_run;

_Static_assert(sizeof(lg_neon_block) <= 5760 && sizeof(lg_neon_run) <= 5760, "lg_panel_bytes has room for either");

/* y[t][at + r] for rows r < count of all tokens; blocks of 256 columns. */
void LG_NAME(neon_panel_super)(const lg_neon_block *panel, int64_t blocks, int group, int has_min, int count,
                               const lg_row *x, int64_t tokens, float *const *y, int64_t at);
void LG_NAME(neon_panel_run32)(const lg_neon_run *panel, int64_t runs, int has_min, int count, const lg_row *x,
                               int64_t tokens, float *const *y, int64_t at);

/* 32 weights of a row into eight steps. */
LG_INLINE void put_part(int8_t (*w)[LG_NEON_ROWS][4], int r, lg_part part) {
    for (int h = 0; h < 2; h++) {
        int32x4_t fours = vreinterpretq_s32_s8(part.w[h]);
        vst1q_lane_s32((int32_t *)(void *)w[4 * h][r], fours, 0);
        vst1q_lane_s32((int32_t *)(void *)w[4 * h + 1][r], fours, 1);
        vst1q_lane_s32((int32_t *)(void *)w[4 * h + 2][r], fours, 2);
        vst1q_lane_s32((int32_t *)(void *)w[4 * h + 3][r], fours, 3);
    }
}

LG_INLINE void put_block(lg_neon_block *to, int r, const uint8_t *block, lg_form256 form, int group,
                         lg_head_fn read_head, lg_part_fn part) {
    lg_head256 head;
    read_head(block, &head);
    to->d[r] = float_of_half(head.d) * form.factor;
#pragma clang loop unroll(full)
    for (int j = 0; j < 8; j++) put_part(to->w + 8 * j, r, part(block, &head, j));
#pragma clang loop unroll(full)
    for (int g = 0; g < 256 / group; g++) to->scale[g][r] = scale_of(&head, g);
    if (!(form.flags & LG_HAS_MIN)) return;
    to->m[r] = float_of_half(head.m);
#pragma clang loop unroll(full)
    for (int g = 0; g < 256 / group; g++) to->min[g][r] = head.min[g / 8][g % 8];
}

LG_INLINE void neon_super_panel(LG_PANEL_ARGUMENTS, lg_form256 form, int group, lg_head_fn read_head,
                                lg_part_fn part) {
    lg_neon_block *panel = room;
    const int64_t blocks = n / 256;
    for (int first = 0; first < count; first += LG_NEON_ROWS) {
        int rows = count - first < LG_NEON_ROWS ? count - first : LG_NEON_ROWS;
        for (int r = 0; r < LG_NEON_ROWS; r++) { /* the last row stands for those a panel lacks */
            const uint8_t *from = row + (first + (r < rows ? r : rows - 1)) * row_bytes;
#pragma clang loop unroll(disable)
            for (int64_t b = 0; b < blocks; b++)
                put_block(&panel[b], r, from + b * form.bytes, form, group, read_head, part);
        }
        LG_NAME(neon_panel_super)(panel, blocks, group, form.flags & LG_HAS_MIN, rows, x, tokens, y, at + first);
    }
}

LG_INLINE void put_run_block(lg_neon_run *to, int k, int r, const uint8_t *block, lg_form32 form,
                             lg_vector_unpack32 unpack) {
    lg_vector32 w;
    unpack(block, &w);
    put_part(to->w + 8 * k, r, w.part);
    to->d[k][r] = float_of_half(w.d);
    if (form.flags & LG_HAS_MIN) to->m[k][r] = float_of_half(w.m);
}

LG_INLINE void neon_run32_panel(LG_PANEL_ARGUMENTS, lg_form32 form, lg_vector_unpack32 unpack) {
    lg_neon_run *panel = room;
    const int64_t blocks = n / 32, runs = (blocks + 7) / 8;
    memset(&panel[runs - 1], 0, sizeof *panel);
    for (int first = 0; first < count; first += LG_NEON_ROWS) {
        int rows = count - first < LG_NEON_ROWS ? count - first : LG_NEON_ROWS;
        for (int r = 0; r < LG_NEON_ROWS; r++) {
            const uint8_t *from = row + (first + (r < rows ? r : rows - 1)) * row_bytes;
#pragma clang loop unroll(disable)
            for (int64_t b = 0; b < blocks; b++)
                put_run_block(&panel[b / 8], (int)(b % 8), r, from + b * form.bytes, form, unpack);
        }
        LG_NAME(neon_panel_run32)(panel, runs, form.flags & LG_HAS_MIN, rows, x, tokens, y, at + first);
    }
}

#endif
