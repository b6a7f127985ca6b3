/* Eight stored rows to a decoded panel (dot_panel_avx2.h). */
#ifndef LG_DOT_PANEL_FILL_AVX2_H
#define LG_DOT_PANEL_FILL_AVX2_H

#include "dot_avx2.h"
#include "dot_panel_avx2.h"

/* How a type is held in a panel. */
typedef struct {
    int group, adds; /* weights per scale, steps added in 16 bits */
    int centre;      /* LG_SIGNED: added to each weight; 0 keeps the sign (wide) */
} lg_octet_type;

/* Steps and centres of the types; u is at most 32 for four steps and 64 for two. */
enum { adds_q2_k = 4, adds_q3_k = 4, adds_q4_k = 4, adds_q5_k = 4, adds_q6_k = 2, adds_iq1_s = 4, adds_iq1_m = 4,
       adds_iq2_xxs = 1, adds_iq2_xs = 1, adds_iq2_s = 1, adds_iq3_xxs = 1, adds_iq3_s = 4, adds_iq4_xs = 1 };
enum { centre_q2_k = 0, centre_q3_k = 0, centre_q4_k = 0, centre_q5_k = 0, centre_q6_k = 0, centre_iq1_s = 0,
       centre_iq1_m = 0, centre_iq2_xxs = 64, centre_iq2_xs = 64, centre_iq2_s = 64, centre_iq3_xxs = 64,
       centre_iq3_s = 16, centre_iq4_xs = 0 };

/* 16 bytes of rows r and 4 + r. */
LG_INLINE __m256i rows_apart(const uint8_t *piece, int64_t stride) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load128(piece)), load128(piece + 4 * stride), 1);
}

/* Eight rows of `pieces` times four 32-bit words, to words of eight rows. */
LG_INLINE void transpose_octet(const void *from, int64_t stride, int pieces, void *out) {
    const uint8_t *rows = from;
    __m256i *to = out;
#pragma clang loop unroll(disable)
    for (int i = 0; i < pieces; i++, rows += 16, to += 4) {
        __m256i a = rows_apart(rows, stride), b = rows_apart(rows + stride, stride);
        __m256i c = rows_apart(rows + 2 * stride, stride), d = rows_apart(rows + 3 * stride, stride);
        __m256i ab_low = _mm256_unpacklo_epi32(a, b), ab_high = _mm256_unpackhi_epi32(a, b);
        __m256i cd_low = _mm256_unpacklo_epi32(c, d), cd_high = _mm256_unpackhi_epi32(c, d);
        _mm256_store_si256(to, _mm256_unpacklo_epi64(ab_low, cd_low));
        _mm256_store_si256(to + 1, _mm256_unpackhi_epi64(ab_low, cd_low));
        _mm256_store_si256(to + 2, _mm256_unpacklo_epi64(ab_high, cd_high));
        _mm256_store_si256(to + 3, _mm256_unpackhi_epi64(ab_high, cd_high));
    }
}

/* One block of each row before its words are exchanged. */
typedef struct {
    _Alignas(32) uint8_t u[LG_OCTET][256];
    _Alignas(32) int32_t scale[LG_OCTET][16];
    _Alignas(32) int16_t pair[LG_OCTET][16];
    uint16_t d[LG_OCTET], m[LG_OCTET];
} lg_octet_rows;

/* Sixteen 16-bit scales, each twice. */
LG_INLINE void store_twice(int32_t *out, __m256i scale) {
    __m256i low = _mm256_unpacklo_epi16(scale, scale), high = _mm256_unpackhi_epi16(scale, scale);
    _mm256_store_si256((__m256i *)(void *)out, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_store_si256((__m256i *)(void *)(out + 8), _mm256_permute2x128_si256(low, high, 0x31));
}

/* With a centre, weights are kept as centre + weight, and -centre * scale meets the sums of x. */
LG_INLINE void keep_octet_row(lg_octet_rows *rows, int r, const uint8_t *block, int flags, lg_octet_type type,
                              lg_head_fn read_head, lg_part_fn part) {
    lg_head256 head;
    read_head(block, &head);
#pragma clang loop unroll(full)
    for (int j = 0; j < 8; j++) {
        lg_part w = part(block, &head, j);
        __m256i u = w.u;
        if (flags & LG_SIGNED)
            u = type.centre ? _mm256_add_epi8(_mm256_sign_epi8(w.u, w.s), _mm256_set1_epi8((char)type.centre)) : w.s;
        _mm256_store_si256((__m256i *)(void *)(rows->u[r] + 32 * j), u);
        if (flags & LG_LOOKED_UP) rows->scale[r][j] = _mm256_cvtsi256_si32(w.scale);
    }
    rows->d[r] = head.d;
    if (flags & LG_HAS_MIN) rows->m[r] = head.m;
    if (!(flags & LG_LOOKED_UP)) store_twice(rows->scale[r], head.scale);
    __m256i pair = flags & LG_HAS_MIN ? head.min : head.bias;
    if (flags & LG_SIGNED) {
        if (flags & LG_LOOKED_UP) { /* the other types leave 16-bit scales */
            __m256i wide = _mm256_load_si256((const __m256i *)(const void *)rows->scale[r]);
            wide = _mm256_and_si256(wide, _mm256_set1_epi32(0xffff));
            head.scale = _mm256_permute4x64_epi64(_mm256_packs_epi32(wide, wide), 0x88);
        }
        pair = _mm256_mullo_epi16(head.scale, _mm256_set1_epi16((short)-type.centre));
    }
    _mm256_store_si256((__m256i *)(void *)rows->pair[r], pair);
}

LG_INLINE void exchange_octet(const lg_octet_rows *rows, lg_octet_block *out, lg_form256 form, int group) {
    transpose_octet(rows->u, 256, 16, out->u);
    transpose_octet(rows->scale, 64, group == 16 ? 4 : 2, out->scale);
    transpose_octet(rows->pair, 32, group == 16 ? 2 : 1, out->pair);
    _mm256_store_ps(out->d, _mm256_mul_ps(halves8(rows->d), _mm256_set1_ps(form.factor)));
    if (form.flags & LG_HAS_MIN) _mm256_store_ps(out->m, halves8(rows->m));
}

/* Rows the panel lacks repeat the last one. */
LG_INLINE const uint8_t *octet_row(const uint8_t *row, int64_t row_bytes, int r, int count) {
    return row + (r < count ? r : count - 1) * row_bytes;
}

LG_INLINE void fill_octet(const uint8_t *row, int64_t row_bytes, int count, int64_t blocks, lg_octet_block *out,
                          lg_form256 form, lg_octet_type type, lg_head_fn read_head, lg_part_fn part) {
    lg_octet_rows rows;
#pragma clang loop unroll(disable)
    for (int64_t b = 0; b < blocks; b++) {
#pragma clang loop unroll(disable)
        for (int r = 0; r < LG_OCTET; r++) {
            const uint8_t *block = octet_row(row, row_bytes, r, count) + b * form.bytes;
            keep_octet_row(&rows, r, block, form.flags, type, read_head, part);
        }
        exchange_octet(&rows, &out[b], form, type.group);
    }
}

/* Types that take many operations a step are faster unpacked for one tile of 6 to 8 tokens than decoded. */
LG_INLINE int takes_tile(lg_octet_type type, int64_t tokens) {
    return type.adds < 4 && tokens > LG_TILE - 3 && tokens <= LG_TILE;
}

/* Places a tile has to spare repeat its last token. */
LG_INLINE void rows_of_tile(const uint8_t *row, int64_t row_bytes, int64_t count, int64_t n, const lg_row *x,
                            int64_t tokens, float *const *y, int64_t at, lg_dot_fn tile) {
    lg_row places[LG_TILE];
    float out[LG_TILE];
    for (int t = 0; t < LG_TILE; t++) places[t] = x[t < tokens ? t : tokens - 1];
    for (int64_t r = 0; r < count; r++) {
        tile(row + r * row_bytes, n, places, out);
        for (int64_t t = 0; t < tokens; t++) y[t][at + r] = out[t];
    }
}

LG_INLINE void avx2_super_panel(const uint8_t *row, int64_t row_bytes, int64_t count, int64_t n, const lg_row *x,
                                int64_t tokens, float *const *y, int64_t at, void *room, lg_form256 form,
                                lg_octet_type type, lg_dot_fn tile, lg_head_fn read_head, lg_part_fn part) {
    const int64_t blocks = n / 256;
    lg_octet_block *panel = room;
    const lg_octet_form told = {.panel = panel, .blocks = blocks, .group = type.group, .adds = type.adds,
                                .wide = (form.flags & LG_SIGNED) && !type.centre, .has_min = form.flags & LG_HAS_MIN,
                                .sums = (int16_t *)(void *)(panel + blocks)};
    if (takes_tile(type, tokens)) {
        rows_of_tile(row, row_bytes, count, n, x, tokens, y, at, tile);
        return;
    }
    for (int64_t r = 0; r < count; r += LG_OCTET) {
        int here = count - r < LG_OCTET ? (int)(count - r) : LG_OCTET;
        fill_octet(row + r * row_bytes, row_bytes, here, blocks, panel, form, type, read_head, part);
        LG_NAME(octet_super)(&told, here, x, tokens, y, at + r);
    }
}

/* Run r of each row. */
LG_INLINE void fill_octet_run(const uint8_t *row, int64_t row_bytes, int count, int64_t r, int64_t blocks,
                              lg_octet_run *out, lg_form32 form, lg_vector_unpack32 unpack) {
    _Alignas(32) uint8_t u[LG_OCTET][256];
    uint16_t d[8][LG_OCTET] = {{0}}, m[8][LG_OCTET] = {{0}};
    int here = blocks - 8 * r < 8 ? (int)(blocks - 8 * r) : 8;
#pragma clang loop unroll(disable)
    for (int i = 0; i < LG_OCTET; i++) {
        const uint8_t *first = octet_row(row, row_bytes, i, count) + 8 * r * form.bytes;
#pragma clang loop unroll(disable)
        for (int k = 0; k < 8; k++) {
            lg_vector32 w;
            unpack(first + (k < here ? k : 0) * form.bytes, &w);
            _mm256_store_si256((__m256i *)(void *)(u[i] + 32 * k), form.flags & LG_SIGNED ? w.s : w.u);
            if (k >= here) continue;
            d[k][i] = w.d;
            if (form.flags & LG_HAS_MIN) m[k][i] = w.m;
        }
    }
    transpose_octet(u, 256, 16, out->u);
    for (int k = 0; k < 8; k++) {
        _mm256_store_ps(out->d[k], halves8(d[k]));
        if (form.flags & LG_HAS_MIN) _mm256_store_ps(out->m[k], halves8(m[k]));
    }
}

LG_INLINE void avx2_run32_panel(const uint8_t *row, int64_t row_bytes, int64_t count, int64_t n, const lg_row *x,
                                int64_t tokens, float *const *y, int64_t at, void *room, lg_form32 form,
                                lg_vector_unpack32 unpack) {
    const int64_t runs = (n + 255) / 256;
    lg_octet_run *panel = room;
    const lg_octet_form told = {.panel = panel, .blocks = runs, .wide = form.flags & LG_SIGNED,
                                .has_min = form.flags & LG_HAS_MIN,
                                .centre = form.flags & LG_BIASED ? form.centre : 0};
    for (int64_t r = 0; r < count; r += LG_OCTET) {
        int here = count - r < LG_OCTET ? (int)(count - r) : LG_OCTET;
        for (int64_t k = 0; k < runs; k++)
            fill_octet_run(row + r * row_bytes, row_bytes, here, k, n / 32, panel + k, form, unpack);
        LG_NAME(octet_run32)(&told, here, x, tokens, y, at + r);
    }
}

#endif
