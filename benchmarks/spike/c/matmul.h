/* Weight rows are decoded once to int8 and meet the tokens eight at a time: lanes are tokens. */
#ifndef SPIKE_MATMUL_H
#define SPIKE_MATMUL_H

#include "matvec.h"

enum { COLS = 4096, CHUNK = 8, RUNS = COLS / 32 };

typedef struct {
    const int8_t *q;
    const float *scale; /* [runs, tokens] */
    const uint64_t *tables;
    int64_t tokens, cols;
} batch;

typedef struct {
    _Alignas(32) int8_t q[COLS];
    _Alignas(32) int16_t factor[RUNS][16]; /* of each value pair of a run of 32 */
    float d[RUNS];                         /* one a block */
} decoded;

static inline void decode_q6(const uint8_t *w, decoded *row, int b) {
    for (int i = 0; i < 256; i++) {
        int n = i >> 7, k = i >> 5 & 3, l = i & 31;
        int low = w[64 * n + 32 * (k & 1) + l] >> (4 * (k >> 1)) & 15;
        int high = w[128 + 32 * n + l] >> (2 * k) & 3;
        row->q[256 * b + i] = (int8_t)((low | high << 4) - 32);
        row->factor[8 * b + (i >> 5)][i >> 1 & 15] = (int8_t)w[192 + (i >> 4)];
    }
}

static inline void decode_iq2(const uint8_t *w, const uint64_t *tables, decoded *row, int b) {
    for (int g = 0; g < 8; g++) {
        uint32_t index = load32(w + 2 + 8 * g), s = load32(w + 6 + 8 * g);
        for (int k = 0; k < 4; k++) {
            int8_t grid[8], plus[8];
            memcpy(grid, tables + (index >> (8 * k) & 255), 8);
            memcpy(plus, tables + 256 + (s >> (7 * k) & 127), 8);
            int8_t *q = row->q + 256 * b + 32 * g + 8 * k;
            for (int i = 0; i < 8; i++) q[i] = (int8_t)(grid[i] * plus[i]);
        }
        for (int i = 0; i < 16; i++) row->factor[8 * b + g][i] = (int16_t)(2 * (s >> 28) + 1);
    }
}

static inline void decode_row(int format, const uint8_t *w, const uint64_t *tables, decoded *row) {
    for (int b = 0; b < COLS / VALUES[format]; b++, w += BYTES[format]) {
        row->d[b] = weight_scale(format, w);
        if (format == Q6_K) decode_q6(w, row, b);
        else if (format == IQ2_XXS) decode_iq2(w, tables, row, b);
        else memcpy(row->q + 32 * b, w + 2, 32);
    }
}

#ifdef __AVX2__
/* The int32 lanes of one block for eight tokens. */
static inline void tile_lanes(int format, const decoded *row, const int8_t *x, int b, __m256i *v) {
    int runs = VALUES[format] / 32;
    for (int i = 0; i < 8; i++) v[i] = _mm256_setzero_si256();
    for (int k = 0; k < runs; k++) {
        const int at = b * runs + k;
        __m256i w = load(row->q + 32 * at);
        __m256i f = format == Q8_0 ? _mm256_set1_epi16(1) : load(row->factor[at]);
        for (int i = 0; i < 8; i++) {
            __m256i dot = dot_signed(w, load(x + (int64_t)i * COLS + 32 * at), f);
            v[i] = runs == 1 ? dot : _mm256_add_epi32(v[i], dot);
        }
    }
}

static inline __m256 tile_factor(const decoded *row, const float *scale, int64_t tokens, int b) {
    return _mm256_mul_ps(_mm256_set1_ps(row->d[b]), _mm256_loadu_ps(scale + b * tokens));
}

static inline __m256 tile_sums(int format, const decoded *row, const int8_t *x, int b) {
    __m256i v[8];
    tile_lanes(format, row, x, b, v);
    return _mm256_cvtepi32_ps(across(v));
}

static inline __m256 tile_free(int format, const decoded *row, const int8_t *x, const float *scale,
                               int64_t tokens) {
    __m256 acc[8];
    for (int i = 0; i < 8; i++) acc[i] = _mm256_setzero_ps();
    for (int b = 0; b < COLS / VALUES[format]; b++) {
        __m256i v[8];
        tile_lanes(format, row, x, b, v);
        for (int i = 0; i < 8; i++) {
            __m256 f = _mm256_set1_ps(row->d[b] * scale[b * tokens + i]);
            acc[i] = _mm256_fmadd_ps(f, _mm256_cvtepi32_ps(v[i]), acc[i]);
        }
    }
    return across_ps(acc);
}

/* One of the eight partials of orders A and B, blocks or runs j, j + 8, ... */
static inline __m256 tile_partial(int format, const decoded *row, const int8_t *x,
                                  const float *scale, int64_t tokens, int j) {
    __m256 acc = _mm256_setzero_ps();
    if (format != Q8_0) {
        for (int b = j; b < COLS / 256; b += 8)
            acc = _mm256_fmadd_ps(tile_factor(row, scale, tokens, b), tile_sums(format, row, x, b),
                                  acc);
        return acc;
    }
    for (int r = j; r < COLS / 256; r += 8) {
        __m256 p[8];
        for (int i = 0; i < 8; i++)
            p[i] = _mm256_mul_ps(tile_factor(row, scale, tokens, 8 * r + i),
                                 tile_sums(Q8_0, row, x, 8 * r + i));
        __m256 low = _mm256_add_ps(_mm256_add_ps(p[0], p[1]), _mm256_add_ps(p[2], p[3]));
        __m256 high = _mm256_add_ps(_mm256_add_ps(p[4], p[5]), _mm256_add_ps(p[6], p[7]));
        acc = _mm256_add_ps(acc, _mm256_add_ps(low, high));
    }
    return acc;
}

static inline __m256 tile_tree(__m256 *p, int n) {
    for (int h = n / 2; h >= 1; h /= 2)
        for (int j = 0; j < h; j++) p[j] = _mm256_add_ps(p[j], p[j + h]);
    return p[0];
}

static inline __m256 tile(int format, int order, const decoded *row, const int8_t *x,
                          const float *scale, int64_t tokens) {
    if (order == FREE) return tile_free(format, row, x, scale, tokens);
    __m256 p[32];
    if (order <= ORDER_B) {
        for (int j = 0; j < 8; j++) p[j] = tile_partial(format, row, x, scale, tokens, j);
        if (order == ORDER_B) return tile_tree(p, 8);
        for (int j = 1; j < 8; j++) p[0] = _mm256_add_ps(p[0], p[j]);
        return p[0];
    }
    int count = order == ORDER_C ? 1 : 32;
    for (int j = 0; j < count; j++) p[j] = _mm256_setzero_ps();
    for (int b = 0; b < COLS / VALUES[format]; b++) {
        __m256 f = tile_factor(row, scale, tokens, b);
        p[b & (count - 1)] = _mm256_fmadd_ps(f, tile_sums(format, row, x, b), p[b & (count - 1)]);
    }
    return tile_tree(p, count);
}
#else
static inline int32_t decoded_sum(int format, const decoded *row, const int8_t *x, int b) {
    int32_t total = 0;
    for (int g = b * VALUES[format] / 16; g < (b + 1) * VALUES[format] / 16; g++) {
        int32_t dot = 0;
        for (int i = 16 * g; i < 16 * g + 16; i++) dot += row->q[i] * x[i];
        total += format == Q8_0 ? dot : row->factor[g >> 1][8 * (g & 1)] * dot;
    }
    return total;
}

static __attribute__((noinline)) void decoded_sums(int format, const decoded *row, batch x,
                                                   int64_t t, float *f, int32_t *s) {
    for (int b = 0; b < COLS / VALUES[format]; b++) {
        f[b] = row->d[b] * x.scale[b * x.tokens + t];
        s[b] = decoded_sum(format, row, x.q + t * COLS, b);
    }
}
#endif

static inline void tile_store(int format, int order, const decoded *row, batch x, int64_t t,
                              int64_t rows, float *y) {
    float out[8];
#ifdef __AVX2__
    _mm256_storeu_ps(out, tile(format, order, row, x.q + t * COLS, x.scale + t, x.tokens));
#else
    for (int i = 0; i < 8; i++) {
        float f[RUNS];
        int32_t s[RUNS];
        decoded_sums(format, row, x, t + i, f, s);
        out[i] = finish(format, order, f, s, COLS / VALUES[format]);
    }
#endif
    for (int i = 0; i < 8; i++) y[(t + i) * rows] = out[i];
}

static inline void matmul_rows(int format, int order, const uint8_t *w, int64_t rows, batch x,
                               float *y) {
    static _Thread_local decoded chunk[CHUNK];
    const int64_t bytes = (int64_t)(COLS / VALUES[format]) * BYTES[format];
    for (int64_t r = 0; r < rows; r += CHUNK) {
        for (int i = 0; i < CHUNK; i++) decode_row(format, w + (r + i) * bytes, x.tables, chunk + i);
        for (int64_t t = 0; t < x.tokens; t += 8)
            for (int i = 0; i < CHUNK; i++)
                tile_store(format, order, chunk + i, x, t, rows, y + r + i);
    }
}

#endif
