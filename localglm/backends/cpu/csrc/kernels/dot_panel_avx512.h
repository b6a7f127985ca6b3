/* From sixteen stored rows to products: blocks are decoded one after another (dot_panel.h) and meet every token
 * of a slab at once. Types without a form of their own are decoded row by row and then turned round. */
#ifndef LG_DOT_PANEL_AVX512_H
#define LG_DOT_PANEL_AVX512_H

#include "dot_avx512.h"
#include "dot_panel.h"

/* Block of 16 rows, `stride` bytes apart, to a decoded one. */
typedef void (*lg_fill_super)(const uint8_t *rows, int64_t stride, lg_panel_block *out);
/* The same for a run of up to eight 32-value blocks a row. */
typedef void (*lg_fill_run)(const uint8_t *rows, int64_t stride, int blocks, lg_panel_run *out);

enum { LG_MOST_STORED = 272 }; /* bytes of 256 columns of a row; Q8_0 has the most */

_Static_assert(sizeof(lg_panel_room) + 16 * LG_MOST_STORED <= LG_PANEL_BYTES, "a panel fits its memory");

/* 16 bytes of rows r, 4 + r, 8 + r and 12 + r. */
LG_INLINE __m512i every_fourth(const uint8_t *piece, int64_t stride) {
    __m512i v = _mm512_castsi128_si512(load128(piece));
    v = _mm512_inserti32x4(v, load128(piece + 4 * stride), 1);
    v = _mm512_inserti32x4(v, load128(piece + 8 * stride), 2);
    return _mm512_inserti32x4(v, load128(piece + 12 * stride), 3);
}

/* Four 32-bit words of each row, to a vector of rows for each word. */
LG_INLINE void words_of_rows(const uint8_t *rows, int64_t stride, __m512i *word) {
    __m512i a = every_fourth(rows, stride), b = every_fourth(rows + stride, stride);
    __m512i c = every_fourth(rows + 2 * stride, stride), d = every_fourth(rows + 3 * stride, stride);
    __m512i ab_low = _mm512_unpacklo_epi32(a, b), ab_high = _mm512_unpackhi_epi32(a, b);
    __m512i cd_low = _mm512_unpacklo_epi32(c, d), cd_high = _mm512_unpackhi_epi32(c, d);
    word[0] = _mm512_unpacklo_epi64(ab_low, cd_low);
    word[1] = _mm512_unpackhi_epi64(ab_low, cd_low);
    word[2] = _mm512_unpacklo_epi64(ab_high, cd_high);
    word[3] = _mm512_unpackhi_epi64(ab_high, cd_high);
}

/* `pieces` times four words of each row. */
LG_INLINE void turn_rows(const uint8_t *rows, int64_t stride, int pieces, void *out) {
    uint8_t *to = out;
#pragma clang loop unroll(disable)
    for (int i = 0; i < pieces; i++, rows += 16, to += 256) {
        __m512i word[4];
        words_of_rows(rows, stride, word);
        for (int k = 0; k < 4; k++) _mm512_store_si512(to + 64 * k, word[k]);
    }
}

/* The half-precision number in the low 16 bits of each word. */
LG_INLINE __m512 low_halves(__m512i words) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(words)); }
LG_INLINE __m512 high_halves(__m512i words) { return low_halves(_mm512_srli_epi32(words, 16)); }

LG_INLINE void store_halves(float *out, const uint16_t *halves, float factor) {
    __m512 wide = _mm512_cvtph_ps(load256(halves));
    _mm512_store_ps(out, _mm512_mul_ps(wide, _mm512_set1_ps(factor)));
}

/* The block of each row before its words are exchanged. */
typedef struct {
    _Alignas(64) uint8_t u[LG_PANEL_ROWS][256];
    _Alignas(64) int16_t scale[LG_PANEL_ROWS][16];
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
    _mm256_store_si256((__m256i *)(void *)rows->scale[r], head->scale);
    rows->d[r] = head->d;
    if (flags & LG_HAS_MIN) {
        _mm256_store_si256((__m256i *)(void *)rows->min[r], head->min);
        rows->m[r] = head->m;
    }
}

LG_INLINE __m512i low_signed(__m512i pairs) { return _mm512_srai_epi32(_mm512_slli_epi32(pairs, 16), 16); }
LG_INLINE __m512i high_signed(__m512i pairs) { return _mm512_srai_epi32(pairs, 16); }

/* Pairs of scales in the order of lg_row.sum to a scale a group. */
LG_INLINE void put_scales(const __m512i *pairs, lg_panel_block *out, int group) {
#pragma clang loop unroll(full)
    for (int i = 0; i < (group == 16 ? 8 : 4); i++) {
        const int g = group == 16 ? (i & 3) * 4 + i / 4 : 2 * i, next = group == 16 ? 2 : 1;
        _mm512_store_si512(out->scale[g], low_signed(pairs[i]));
        _mm512_store_si512(out->scale[g + next], high_signed(pairs[i]));
    }
}

LG_INLINE void fill_from_rows(const uint8_t *stored, int64_t stride, lg_panel_block *out, lg_form256 form,
                              lg_form512 wide, lg_pair_fn read_pair, lg_part_fn512 part) {
    lg_panel_rows rows;
    __m512i pairs[8];
#pragma clang loop unroll(disable)
    for (int r = 0; r < LG_PANEL_ROWS; r += 2, stored += 2 * stride) {
        lg_pair512 pair;
        read_pair(stored, stored + stride, &pair);
        keep_row(&rows, r, stored, &pair, 0, form.flags, part);
        keep_row(&rows, r + 1, stored + stride, &pair, 1, form.flags, part);
    }
    turn_rows(rows.u[0], 256, 16, out->u);
    store_halves(out->d, rows.d, form.factor);
    words_of_rows((const uint8_t *)rows.scale, 32, pairs);
    if (wide.group == 16) words_of_rows((const uint8_t *)rows.scale + 16, 32, pairs + 4);
    put_scales(pairs, out, wide.group);
    if (!(form.flags & LG_HAS_MIN)) return;
    turn_rows((const uint8_t *)rows.min, 32, wide.group == 16 ? 2 : 1, out->min);
    store_halves(out->m, rows.m, 1.0f);
}

/* Two blocks at a time: k and k + 4 are unpacked together. */
LG_INLINE void fill_from_runs(const uint8_t *rows, int64_t stride, int blocks, lg_panel_run *out, lg_form32 form,
                              lg_unpack512 unpack) {
    _Alignas(64) uint8_t u[LG_PANEL_ROWS][256];
    uint16_t d[8][LG_PANEL_ROWS] = {{0}}, m[8][LG_PANEL_ROWS] = {{0}};
#pragma clang loop unroll(disable)
    for (int i = 0; i < LG_PANEL_ROWS; i++, rows += stride) {
#pragma clang loop unroll(disable)
        for (int k = 0; k < blocks; k++) {
            d[k][i] = lg_load16(rows + k * form.bytes);
            if (form.flags & LG_HAS_MIN) m[k][i] = lg_load16(rows + k * form.bytes + 2);
        }
#pragma clang loop unroll(full)
        for (int k = 0; k < 4; k++) {
            const uint8_t *low = rows + (k < blocks ? k : 0) * form.bytes;
            const uint8_t *high = rows + (k + 4 < blocks ? k + 4 : 0) * form.bytes;
            __m512i both = unpack(low, high);
            _mm256_store_si256((__m256i *)(void *)(u[i] + 32 * k), _mm512_castsi512_si256(both));
            _mm256_store_si256((__m256i *)(void *)(u[i] + 32 * k + 128), _mm512_extracti64x4_epi64(both, 1));
        }
    }
    turn_rows(u[0], 256, 16, out->u);
    for (int k = 0; k < 8; k++) {
        store_halves(out->d[k], d[k], 1.0f);
        if (form.flags & LG_HAS_MIN) store_halves(out->m[k], m[k], 1.0f);
    }
}

/* What a call of lg_panel_fn is given, with the rows' 256 columns in bytes. */
typedef struct {
    const uint8_t *row;
    int64_t row_bytes, n;
    int64_t count;
    int bytes;
    const uint8_t *next; /* first row of the panel after this one */
} lg_panel_source;

/* Where block b of the rows lies and how far they are apart. Rows the panel lacks repeat the last one. */
LG_INLINE const uint8_t *panel_rows(const lg_panel_source *from, int64_t b, int here, uint8_t *spare, int64_t *stride) {
    const uint8_t *rows = from->row + b * from->bytes;
    *stride = from->row_bytes;
    if (from->count == LG_PANEL_ROWS) return rows;
    for (int r = 0; r < LG_PANEL_ROWS; r++)
        memcpy(spare + r * LG_MOST_STORED, rows + (r < from->count ? r : from->count - 1) * from->row_bytes,
               (size_t)here);
    *stride = LG_MOST_STORED;
    return spare;
}

/* Slabs of about the same size, so that none is left with a few tokens. */
LG_INLINE int64_t slab_tokens(int64_t tokens) {
    int64_t slabs = (tokens + LG_PANEL_SLAB - 1) / LG_PANEL_SLAB;
    return ((tokens + slabs - 1) / slabs + LG_PANEL_TOKENS - 1) / LG_PANEL_TOKENS * LG_PANEL_TOKENS;
}

LG_INLINE void clear_partials(lg_panel_room *room, int64_t tokens) {
    for (int j = 0; j < 8; j++) memset(room->partials[j], 0, (size_t)tokens * sizeof room->partials[j][0]);
}

/* Blocks from a fetch to its use: fewer come too late, more are followed worse by the processor. */
enum { LG_AHEAD = 4 };

/* The block LG_AHEAD after this one, of the next panel where the rows end. */
LG_INLINE void fetch_next(const lg_panel_source *from, int64_t b) {
    const int64_t blocks = (from->n + 255) / 256, at = b + LG_AHEAD;
    const uint8_t *rows = at < blocks ? from->row + at * from->bytes : from->next + (at - blocks) * from->bytes;
#pragma clang loop unroll(disable)
    for (int r = 0; r < LG_PANEL_ROWS; r++, rows += from->row_bytes)
#pragma clang loop unroll(full)
        for (int line = 0; line < (from->bytes + 32) / 64; line++)
            _mm_prefetch((const char *)rows + 64 * line, _MM_HINT_T1);
}

LG_INLINE void panel_slab(const lg_panel_source *from, const lg_row *x, int64_t tokens, void *memory, int centre,
                          lg_fill_super fill_super, lg_fill_run fill_run, lg_panel_times times) {
    lg_panel_room *room = memory;
    uint8_t *spare = (uint8_t *)(room + 1);
    clear_partials(room, tokens);
#pragma clang loop unroll(disable)
    for (int64_t b = 0; 256 * b < from->n; b++) {
        int blocks = from->n / 32 - 8 * b < 8 ? (int)(from->n / 32 - 8 * b) : 8;
        int64_t stride;
        const uint8_t *rows = panel_rows(from, b, from->bytes * blocks / 8, spare, &stride);
        if (fill_run) fill_run(rows, stride, blocks, &room->decoded.run);
        else fill_super(rows, stride, &room->decoded.block);
        fetch_next(from, b);
        times(&room->decoded, centre, b, x, tokens, room->partials[b & 7]);
    }
}

/* The processor follows one run of reads in each page. Rows shorter than a page are taken so far apart that no
 * two of a panel share one, as far as there are rows. */
LG_INLINE int row_step(int64_t row_bytes, int64_t count) {
    int64_t apart = (4096 + row_bytes - 1) / row_bytes, panels = count / LG_PANEL_ROWS;
    int64_t step = apart < panels ? apart : panels;
    return step < 1 ? 1 : (int)step;
}

LG_INLINE void one_panel(lg_panel_source from, const lg_row *x, int64_t tokens, float *const *y, int64_t at, int step,
                         void *memory, int centre, lg_fill_super fill_super, lg_fill_run fill_run,
                         lg_panel_times times) {
    int64_t slab = slab_tokens(tokens);
#pragma clang loop unroll(disable)
    for (int64_t t = 0; t < tokens; t += slab) {
        int64_t here = tokens - t < slab ? tokens - t : slab;
        panel_slab(&from, x + t, here, memory, centre, fill_super, fill_run, times);
        LG_NAME(panel_finish)(memory, (int)from.count, here, y + t, at, step);
    }
}

LG_INLINE void avx512_panel(lg_panel_source from, const lg_row *x, int64_t tokens, float *const *y, int64_t at,
                            void *memory, int centre, lg_fill_super fill_super, lg_fill_run fill_run,
                            lg_panel_times times) {
    int64_t left = from.count, row_bytes = from.row_bytes;
    int phase = 0, step = row_step(row_bytes, left);
#pragma clang loop unroll(disable)
    while (left > 0) {
        lg_panel_source one = from;
        one.count = left < LG_PANEL_ROWS ? left : LG_PANEL_ROWS;
        one.row_bytes = step * row_bytes;
        one.row += phase * row_bytes;
        one.next = phase + 1 < step ? one.row + row_bytes : from.row + LG_PANEL_ROWS * step * row_bytes;
        one_panel(one, x, tokens, y, at + phase, step, memory, centre, fill_super, fill_run, times);
        if (++phase < step) continue;
        int64_t done = step == 1 ? one.count : LG_PANEL_ROWS * (int64_t)step;
        from.row += done * row_bytes;
        at += done;
        left -= done;
        phase = 0;
        step = row_step(row_bytes, left);
    }
}

#endif
