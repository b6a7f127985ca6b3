/* Matrix-matrix kernels with int8 matrix instructions: 64 weight rows x 64 tokens a block, eight warps,
 * 16 x 32 each; K advances by 256 values. Orders A and F walk the partials: K = j, j + 8, ... for
 * j = 0..7, with one running partial and one total. */
#include "shim.h"

enum { COLS = 4096, STEPS = COLS / 256, TILE = 64, THREADS = 256 };

struct operands {
    const u8 *plane0, *plane1, *plane2;
    const u16 *scales;
    const i8 *x;
    const float *x_scale; /* [runs, tokens] */
    const u2 *grid;
    float *y; /* [tokens, rows] */
    int rows, tokens;
};

template <int FORMAT> struct tile {
    /* 288 keeps 8-byte, 272 keeps 4-byte fragment loads free of bank conflicts. */
    static constexpr int stride = FORMAT == Q6_K ? 272 : 288;
    static constexpr int blocks = FORMAT == Q8_0 ? 8 : 1;
    alignas(16) i8 w[TILE * stride];
    alignas(16) i8 x[TILE * stride];
    float d_w[TILE][blocks + 1];
    float d_x[blocks][TILE];
    int factor[FORMAT == Q8_0 ? 1 : FORMAT == Q6_K ? 16 : 8][TILE];
};

DEVICE void mma32(int *c, u2 a0, u2 a1, u2 b, int start) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%10,%10,%10};"
        : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
        : "r"(a0.x), "r"(a1.x), "r"(a0.y), "r"(a1.y), "r"(b.x), "r"(b.y), "r"(start));
}
DEVICE void mma16(int *c, u32 a0, u32 a1, u32 b) {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%7,%7,%7,%7};"
        : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
        : "r"(a0), "r"(a1), "r"(b), "r"(0));
}

template <int FORMAT> DEVICE void stage_weights(operands o, tile<FORMAT> &m, const u2 *grid,
                                                int row0, int step) {
    if (FORMAT == Q8_0) {
#pragma unroll
        for (int k = thread(); k < TILE * 16; k += THREADS) {
            long at = (long)(row0 + k / 16) * (COLS / 16) + step * 16 + k % 16;
            *(v4 *)(m.w + k / 16 * m.stride + 16 * (k % 16)) = ((const v4 *)o.plane0)[at];
        }
        for (int k = thread(); k < TILE * 8; k += THREADS)
            m.d_w[k / 8][k % 8] = half(o.scales[(row0 + k / 8) * (COLS / 32) + step * 8 + k % 8]);
        return;
    }
#pragma unroll
    for (int k = thread(); k < TILE * 8; k += THREADS) {
        int row = k / 8, c = k % 8;
        long at = ((long)(row0 + row) * STEPS + step) * 8 + c;
        i8 *w = m.w + row * m.stride;
        if (FORMAT == Q6_K) {
            v4 l = ((const v4 *)o.plane0)[at], low, high;
            u2 h = ((const u2 *)o.plane1)[at];
            int g = 8 * (c / 4) + c % 4, sc = ((const u16 *)o.plane2)[at];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                low[i] = minus32(bits_of(l[i], h.x, i));
                high[i] = minus32(bits_of((u32)l[i] >> 4, h.y, i));
            }
            *(v4 *)(w + 16 * g) = low;
            *(v4 *)(w + 16 * g + 64) = high;
            m.factor[g][row] = (i8)sc;
            m.factor[g + 4][row] = (i8)(sc >> 8);
        } else {
            u2 b = ((const u2 *)o.plane0)[at];
#pragma unroll
            for (int i = 0; i < 4; i++)
                *(u2 *)(w + 32 * c + 8 * i) = signed_grid(grid[b.x >> (8 * i) & 255], b.y >> (7 * i) & 127);
            m.factor[c][row] = 2 * (b.y >> 28) + 1;
        }
    }
    if (thread() < TILE) {
        float d = half(o.scales[(row0 + thread()) * STEPS + step]);
        m.d_w[thread()][0] = FORMAT == IQ2_XXS ? d * 0.125f : d;
    }
}

template <int FORMAT> DEVICE void stage_tokens(operands o, tile<FORMAT> &m, int token0, int step) {
#pragma unroll
    for (int k = thread(); k < TILE * 16; k += THREADS) {
        long at = (long)(token0 + k / 16) * (COLS / 16) + step * 16 + k % 16;
        *(v4 *)(m.x + k / 16 * m.stride + 16 * (k % 16)) = ((const v4 *)o.x)[at];
    }
    for (int k = thread(); k < TILE * m.blocks; k += THREADS)
        m.d_x[k / TILE][k % TILE] = o.x_scale[(step * m.blocks + k / TILE) * o.tokens + token0 + k % TILE];
}

/* Factors d_w * d_x of a 16 x 8 fragment. */
template <int FORMAT> DEVICE void factors(const tile<FORMAT> &m, int row, int token, int b, float *f) {
    f2 dx = *(const f2 *)&m.d_x[b][token];
    float d0 = m.d_w[row][b], d1 = m.d_w[row + 8][b];
    f[0] = d0 * dx.x;
    f[1] = d0 * dx.y;
    f[2] = d1 * dx.x;
    f[3] = d1 * dx.y;
}

/* A sum of 32 products stays below 2^22: started at the bits of 1.5 * 2^23 it is a float already, and
 * one exact subtraction replaces the slower conversion. */
enum { MAGIC = 0x4b400000 };
DEVICE float converted(int c) { return __builtin_bit_cast(float, c) - 12582912.0f; }

/* Q8_0: one run of eight blocks of a fragment onto p. */
template <int ORDER> DEVICE void run_q8(const tile<Q8_0> &m, const u2 (*a)[2], int row, int token,
                                        int n, float *p) {
    int lane = thread() & 31, t = lane & 3;
    float level[3][4];
#pragma unroll
    for (int k = 0; k < 8; k++) {
        int c[4];
        float f[4];
        const i8 *x = m.x + (n + (lane >> 2)) * m.stride;
        mma32(c, a[k][0], a[k][1], *(const u2 *)(x + 32 * k + 8 * t), MAGIC);
        factors(m, row, token, k, f);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            if (ORDER == C) {
                p[e] = fma(f[e], converted(c[e]), p[e]);
            } else if (ORDER == F) {
                level[0][e] = fma(f[e], converted(c[e]), k ? level[0][e] : 0.0f);
            } else {
                float v = f[e] * converted(c[e]);
                if (k & 1) v = level[0][e] + v;
                if ((k & 3) == 3) v = level[1][e] + v;
                if (k == 7) v = level[2][e] + v;
                level[k == 7 ? 0 : (k & 3) == 3 ? 2 : k & 1][e] = v;
            }
        }
    }
    if (ORDER == C) return;
#pragma unroll
    for (int e = 0; e < 4; e++) p[e] += level[0][e];
}

/* Super-blocks: one block of a fragment onto p; E converts every group to float instead. */
template <int FORMAT, int ORDER> DEVICE void block_super(const tile<FORMAT> &m, const u2 (*a)[2],
                                                         int row, int token, int n, float *p) {
    int lane = thread() & 31, t = lane & 3, s[4] = {0, 0, 0, 0};
    float part[4] = {0, 0, 0, 0}, f[4];
    const i8 *x = m.x + (n + (lane >> 2)) * m.stride;
    constexpr int groups = FORMAT == Q6_K ? 16 : 8;
#pragma unroll
    for (int k = 0; k < groups; k++) {
        int c[4], up = m.factor[k][row], down = m.factor[k][row + 8];
        if (FORMAT == Q6_K)
            mma16(c, a[k / 2][0][k % 2], a[k / 2][1][k % 2], *(const u32 *)(x + 16 * k + 4 * t));
        else
            mma32(c, a[k][0], a[k][1], *(const u2 *)(x + 32 * k + 8 * t), 0);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            if (ORDER == E) part[e] = fma((float)(e < 2 ? up : down), (float)c[e], part[e]);
            else s[e] += (e < 2 ? up : down) * c[e];
        }
    }
    factors(m, row, token, 0, f);
#pragma unroll
    for (int e = 0; e < 4; e++) p[e] = fma(f[e], ORDER == E ? part[e] : (float)s[e], p[e]);
}

template <int FORMAT> DEVICE void load_a(const tile<FORMAT> &m, int row, u2 (*a)[2]) {
    int t = thread() & 3;
#pragma unroll
    for (int k = 0; k < 8; k++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const i8 *w = m.w + (row + 8 * h) * m.stride + 32 * k;
            if (FORMAT == Q6_K) {
                a[k][h].x = *(const u32 *)(w + 4 * t);
                a[k][h].y = *(const u32 *)(w + 16 + 4 * t);
            } else {
                a[k][h] = *(const u2 *)(w + 8 * t);
            }
        }
}

/* RESIDENT reads the tiles once and multiplies them again and again: its results mean nothing, its
 * time is that of a kernel whose loads are hidden completely. */
template <int FORMAT, int ORDER, bool RESIDENT> DEVICE void matmul(operands o) {
    SHARED static tile<FORMAT> m;
    SHARED static u2 grid[FORMAT == IQ2_XXS ? 256 : 1];
    int lane = thread() & 31, warp = thread() >> 5, row0 = block_x() * TILE, token0 = block_y() * TILE;
    int row = (warp & 3) * 16 + (lane >> 2), col = (warp >> 2) * 32;
    constexpr bool partials = ORDER == A || ORDER == F;
    constexpr int inner = partials ? 2 : STEPS;
    float y[4][4] = {};
    if (FORMAT == IQ2_XXS)
        for (int k = thread(); k < 256; k += THREADS) grid[k] = o.grid[k];
#pragma unroll 1
    for (int j = 0; j < STEPS / inner; j++) {
        float p[4][4] = {};
#pragma unroll 1
        for (int i = 0; i < inner; i++) {
            sync();
            if (!RESIDENT || i + j == 0) {
                int step = partials ? 8 * i + j : i;
                stage_weights<FORMAT>(o, m, grid, row0, step);
                stage_tokens<FORMAT>(o, m, token0, step);
            }
            sync();
            u2 a[8][2];
            load_a<FORMAT>(m, row, a);
#pragma unroll
            for (int ni = 0; ni < 4; ni++) {
                int n = col + 8 * ni, token = n + 2 * (lane & 3);
                if constexpr (FORMAT == Q8_0) run_q8<ORDER>(m, a, row, token, n, p[ni]);
                else block_super<FORMAT, ORDER>(m, a, row, token, n, p[ni]);
            }
        }
        /* A partial is never -0, so the first one may be added to +0. */
#pragma unroll
        for (int k = 0; k < 16; k++) y[k / 4][k % 4] += p[k / 4][k % 4];
    }
#pragma unroll
    for (int k = 0; k < 16; k++) {
        long token = token0 + col + 8 * (k / 4) + 2 * (lane & 3) + (k & 1);
        o.y[token * o.rows + row0 + row + 8 * (k >> 1 & 1)] = y[k / 4][k % 4];
    }
}

#define EXPORT(format, order)                                                \
    KERNEL BOUNDS(256, 2) void matmul_##format##_##order(operands o) {       \
        matmul<format, order, false>(o);                                     \
    }                                                                        \
    KERNEL BOUNDS(256, 2) void resident_##format##_##order(operands o) {     \
        matmul<format, order, true>(o);                                      \
    }
EXPORT(Q8_0, A) EXPORT(Q8_0, C) EXPORT(Q8_0, F)
EXPORT(Q6_K, A) EXPORT(Q6_K, C) EXPORT(Q6_K, E)
EXPORT(IQ2_XXS, A) EXPORT(IQ2_XXS, C) EXPORT(IQ2_XXS, E)
