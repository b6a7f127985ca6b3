/* Sixteen stored rows to a decoded panel (dot_panel.h). */
#ifndef LG_DOT_PANEL_AVX512_H
#define LG_DOT_PANEL_AVX512_H

#include "dot_avx512.h"
#include "dot_panel.h"

/* 16 bytes of rows r, 4 + r, 8 + r and 12 + r. */
LG_INLINE __m512i every_fourth(const uint8_t *piece, int64_t stride) {
    __m512i v = _mm512_castsi128_si512(load128(piece));
    v = _mm512_inserti32x4(v, load128(piece + 4 * stride), 1);
    v = _mm512_inserti32x4(v, load128(piece + 8 * stride), 2);
    return _mm512_inserti32x4(v, load128(piece + 12 * stride), 3);
}

/* 16 rows of `pieces` times four 32-bit words, to words of 16 rows. */
LG_INLINE void transpose_rows(const uint8_t *rows, int64_t stride, int pieces, void *out) {
    uint8_t *to = out;
#pragma clang loop unroll(disable)
    for (int i = 0; i < pieces; i++, rows += 16, to += 256) {
        __m512i a = every_fourth(rows, stride), b = every_fourth(rows + stride, stride);
        __m512i c = every_fourth(rows + 2 * stride, stride), d = every_fourth(rows + 3 * stride, stride);
        __m512i ab_low = _mm512_unpacklo_epi32(a, b), ab_high = _mm512_unpackhi_epi32(a, b);
        __m512i cd_low = _mm512_unpacklo_epi32(c, d), cd_high = _mm512_unpackhi_epi32(c, d);
        _mm512_store_si512(to, _mm512_unpacklo_epi64(ab_low, cd_low));
        _mm512_store_si512(to + 64, _mm512_unpackhi_epi64(ab_low, cd_low));
        _mm512_store_si512(to + 128, _mm512_unpacklo_epi64(ab_high, cd_high));
        _mm512_store_si512(to + 192, _mm512_unpackhi_epi64(ab_high, cd_high));
    }
}

LG_INLINE void store_halves(float *out, const uint16_t *halves, float factor) {
    __m512 wide = _mm512_cvtph_ps(load256(halves));
    _mm512_store_ps(out, _mm512_mul_ps(wide, _mm512_set1_ps(factor)));
}

/* One block of each row before its words are exchanged. */
typedef struct {
    _Alignas(64) uint8_t u[LG_PANEL_ROWS][256];
    _Alignas(64) int32_t scale[LG_PANEL_ROWS][16];
    _Alignas(64) int16_t min[LG_PANEL_ROWS][16];
    uint16_t d[LG_PANEL_ROWS], m[LG_PANEL_ROWS];
} lg_panel_rows;

/* Magnitudes with sign bits to weights plus 64. */
LG_INLINE __m512i centred(__m512i u, __mmask64 signs) {
    const __m512i centre = _mm512_set1_epi8(64);
    return _mm512_mask_sub_epi8(_mm512_add_epi8(u, centre), signs, centre, u);
}

LG_INLINE void keep_row(lg_panel_rows *rows, int r, const uint8_t *block, const lg_pair512 *pair, int which,
                        int flags, lg_part_fn512 part) {
    const lg_head256 *head = &pair->head[which];
#pragma clang loop unroll(full)
    for (int j = 0; j < 4; j++) {
        __m512i u = part(block, pair, which, j);
        if (flags & LG_LOOKED_UP) u = centred(u, mask_of(&pair->signs[4 * which + j]));
        _mm512_store_si512(rows->u[r] + 64 * j, u);
    }
    _mm512_store_si512(rows->scale[r], _mm512_cvtepi16_epi32(head->scale));
    rows->d[r] = head->d;
    if (flags & LG_HAS_MIN) {
        _mm256_store_si256((__m256i *)(void *)rows->min[r], head->min);
        rows->m[r] = head->m;
    }
}

LG_INLINE void exchange_block(const lg_panel_rows *rows, lg_panel_block *out, lg_form256 form, int group) {
    transpose_rows(rows->u[0], 256, 16, out->u);
    transpose_rows((const uint8_t *)rows->scale, 64, group == 16 ? 4 : 2, out->scale);
    store_halves(out->d, rows->d, form.factor);
    if (!(form.flags & LG_HAS_MIN)) return;
    transpose_rows((const uint8_t *)rows->min, 32, 2, out->min);
    store_halves(out->m, rows->m, 1.0f);
}

/* Rows the panel lacks repeat the last one. */
LG_INLINE const uint8_t *panel_row(const uint8_t *row, int64_t row_bytes, int r, int count) {
    return row + (r < count ? r : count - 1) * row_bytes;
}

LG_INLINE void fill_super(const uint8_t *row, int64_t row_bytes, int count, int64_t blocks, lg_panel_block *out,
                          lg_form256 form, int group, lg_pair_fn read_pair, lg_part_fn512 part) {
    lg_panel_rows rows[2];
#pragma clang loop unroll(disable)
    for (int64_t b = 0; b < blocks; b += 2) {
#pragma clang loop unroll(disable)
        for (int r = 0; r < LG_PANEL_ROWS; r++) {
            const uint8_t *first = panel_row(row, row_bytes, r, count) + b * form.bytes;
            const uint8_t *second = b + 1 < blocks ? first + form.bytes : first;
            lg_pair512 pair;
            read_pair(first, second, &pair);
            keep_row(&rows[0], r, first, &pair, 0, form.flags, part);
            keep_row(&rows[1], r, second, &pair, 1, form.flags, part);
        }
        exchange_block(&rows[0], &out[b], form, group);
        if (b + 1 < blocks) exchange_block(&rows[1], &out[b + 1], form, group);
    }
}

/* Where the offsets of the products lie behind the panel. */
LG_INLINE lg_panel_form panel_form(void *room, int64_t n, size_t block_bytes, int centre, int group, int flags) {
    int64_t blocks = (n + 255) / 256;
    int32_t *offsets = (int32_t *)(void *)((uint8_t *)room + (size_t)blocks * block_bytes);
    return (lg_panel_form){room, blocks, centre, group, flags & LG_HAS_MIN, offsets};
}

LG_INLINE void avx512_super_panel(const uint8_t *row, int64_t row_bytes, int count, int64_t n, const lg_row *x,
                                  int64_t tokens, float *const *y, int64_t at, void *room, lg_form256 form,
                                  lg_form512 wide, lg_pair_fn read_pair, lg_part_fn512 part) {
    lg_panel_form told = panel_form(room, n, sizeof(lg_panel_block), wide.centre, wide.group, form.flags);
    fill_super(row, row_bytes, count, told.blocks, room, form, wide.group, read_pair, part);
    LG_NAME(panel_super)(&told, count, x, tokens, y, at);
}

/* Run r of each row, two blocks at a time: blocks k and k + 4 are unpacked together. */
LG_INLINE void fill_run(const uint8_t *row, int64_t row_bytes, int count, int64_t r, int64_t blocks,
                        lg_panel_run *out, lg_form32 form, lg_unpack512 unpack) {
    _Alignas(64) uint8_t u[LG_PANEL_ROWS][256];
    uint16_t d[8][LG_PANEL_ROWS] = {{0}}, m[8][LG_PANEL_ROWS] = {{0}};
    int here = blocks - 8 * r < 8 ? (int)(blocks - 8 * r) : 8;
#pragma clang loop unroll(disable)
    for (int i = 0; i < LG_PANEL_ROWS; i++) {
        const uint8_t *first = panel_row(row, row_bytes, i, count) + 8 * r * form.bytes;
#pragma clang loop unroll(disable)
        for (int k = 0; k < here; k++) {
            d[k][i] = lg_load16(first + k * form.bytes);
            if (form.flags & LG_HAS_MIN) m[k][i] = lg_load16(first + k * form.bytes + 2);
        }
#pragma clang loop unroll(full)
        for (int k = 0; k < 4; k++) {
            const uint8_t *low = first + (k < here ? k : 0) * form.bytes;
            const uint8_t *high = first + (k + 4 < here ? k + 4 : 0) * form.bytes;
            __m512i both = unpack(low, high);
            _mm256_store_si256((__m256i *)(void *)(u[i] + 32 * k), _mm512_castsi512_si256(both));
            _mm256_store_si256((__m256i *)(void *)(u[i] + 32 * k + 128), _mm512_extracti64x4_epi64(both, 1));
        }
    }
    transpose_rows(u[0], 256, 16, out->u);
    for (int k = 0; k < 8; k++) {
        store_halves(out->d[k], d[k], 1.0f);
        if (form.flags & LG_HAS_MIN) store_halves(out->m[k], m[k], 1.0f);
    }
}

LG_INLINE void avx512_run32_panel(const uint8_t *row, int64_t row_bytes, int count, int64_t n, const lg_row *x,
                                  int64_t tokens, float *const *y, int64_t at, void *room, lg_form32 form,
                                  int centre, lg_unpack512 unpack) {
    lg_panel_form told = panel_form(room, n, sizeof(lg_panel_run), centre, 32, form.flags);
    lg_panel_run *panel = room;
    for (int64_t r = 0; r < told.blocks; r++)
        fill_run(row, row_bytes, count, r, n / 32, panel + r, form, unpack);
    LG_NAME(panel_run32)(&told, count, x, tokens, y, at);
}

#endif
