/* Matrix-vector kernels, rows of 4,096: a warp computes four rows, eight warps a block.
 *
 * Each lane multiplies integers; partial block sums are exchanged while they are still exact, so that
 * a lane ends with whole blocks. The last few operations of a row run in the fixed order in one lane.
 */
#include "shim.h"

enum { ROWS = 4, WARPS = 8, BLOCKS_OF_32 = 128, BLOCKS_OF_256 = 16 };

struct operands {
    const u8 *plane0, *plane1, *plane2;
    const u16 *scales;
    const i8 *x;
    const float *x_scale;
    const int *x_sums;
    const u2 *grid;
    float *y;
};

/* Keep one half of 2N values by a lane bit and add the partner's share: integers, any order. */
template <int N> DEVICE void fold_i(int *v, int bit, int mask) {
#pragma unroll
    for (int k = 0; k < N; k++) {
        int keep = bit ? v[k + N] : v[k], send = bit ? v[k] : v[k + N];
        v[k] = keep + swap_i(send, mask);
    }
}

template <int N> DEVICE void fold_f(float *v, int bit, int mask) {
#pragma unroll
    for (int k = 0; k < N; k++) {
        float keep = bit ? v[k + N] : v[k], send = bit ? v[k] : v[k + N];
        v[k] = keep + swap_f(send, mask);
    }
}

/* Free order: four rows' lane sums, row = lane & 3 afterwards. */
DEVICE void store_free(float *acc, int lane, float *y) {
    fold_f<2>(acc, lane >> 1 & 1, 2);
    fold_f<1>(acc, lane & 1, 1);
    float v = acc[0];
    v += swap_f(v, 4);
    v += swap_f(v, 8);
    v += swap_f(v, 16);
    if (lane < ROWS) y[lane] = v;
}

/* Eight partials over 16 run sums, then the order of A (and F) or B. */
template <int ORDER> DEVICE float finish_runs(const float *t) {
    float p[8];
#pragma unroll
    for (int j = 0; j < 8; j++) p[j] = (0.0f + t[j]) + t[j + 8];
    if (ORDER == B) return tree<8>(p);
#pragma unroll
    for (int j = 1; j < 8; j++) p[0] += p[j];
    return p[0];
}

/* Sixteen blocks of factor and sum in the order asked for. */
template <int ORDER> DEVICE float finish_blocks(const f2 *fs) {
    float p[16];
    constexpr int count = ORDER == C ? 1 : ORDER == D ? 16 : 8;
#pragma unroll
    for (int j = 0; j < count; j++) p[j] = 0.0f;
#pragma unroll
    for (int b = 0; b < BLOCKS_OF_256; b++) {
        f2 v = fs[b];
        p[b % count] = fma(v.x, v.y, p[b % count]);
    }
    if (ORDER == C) return p[0];
    if (ORDER == B) return tree<8>(p);
    if (ORDER == D) {
#pragma unroll
        for (int j = 0; j < 16; j++) p[j] += 0.0f; /* partials 16..31 have no block in this row */
        return tree<16>(p);
    }
#pragma unroll
    for (int j = 1; j < 8; j++) p[0] += p[j];
    return p[0];
}

DEVICE int dot16(v4 w, v4 x, int acc) {
    acc = dp4a(w.x, x.x, acc);
    acc = dp4a(w.y, x.y, acc);
    acc = dp4a(w.z, x.z, acc);
    return dp4a(w.w, x.w, acc);
}

/* Orders A and B of Q8_0: products of a lane's four blocks become one run sum a lane. */
DEVICE void runs_by_tree(float *p, int lane, float *t) {
    fold_f<2>(p, lane >> 1 & 1, 2);
    fold_f<1>(p, lane >> 2 & 1, 4);
    float v = p[0] + swap_f(p[0], 8);
    int i = (lane & 1) * 4 + (lane >> 1 & 1) * 2 + (lane >> 2 & 1);
    if (!(lane & 8)) t[2 * i + (lane >> 4)] = v;
}

template <int ORDER> DEVICE void q8_rows(operands o) {
    constexpr bool walk = ORDER == C;
    SHARED static float runs[WARPS][ROWS][17];
    SHARED static f2 all[walk ? WARPS : 1][ROWS][walk ? BLOCKS_OF_32 + 1 : 1];
    int lane = thread() & 31, warp = thread() >> 5, odd = lane & 1;
    int row0 = (block_x() * WARPS + warp) * ROWS;
    v4 x[8];
    float dx[8], acc[ROWS];
#pragma unroll
    for (int i = 0; i < 8; i++) x[i] = ((const v4 *)o.x)[32 * i + lane];
#pragma unroll
    for (int k = 0; k < 8; k++) {
        int i = ORDER == E ? k : ORDER == D ? 2 * (k & 3) + odd : 4 * odd + (k & 3);
        dx[k] = o.x_scale[16 * i + (lane >> 1)];
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const v4 *w = (const v4 *)o.plane0 + (long)(row0 + r) * 256 + lane;
        const u16 *d = o.scales + (long)(row0 + r) * BLOCKS_OF_32 + (lane >> 1);
        int s[8];
        float p[4], sum = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; i++) s[ORDER == D ? (i >> 1) + 4 * (i & 1) : i] = dot16(w[32 * i], x[i], 0);
        if (ORDER == E) {
#pragma unroll
            for (int i = 0; i < 8; i++) sum = fma(half(d[16 * i]) * dx[i], (float)s[i], sum);
            acc[r] = sum;
            continue;
        }
        fold_i<4>(s, odd, 1);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            float f = half(d[16 * (ORDER == D ? 2 * k + odd : 4 * odd + k)]) * dx[k];
            if (ORDER == D) sum = fma(f, (float)s[k], sum);
            else if (walk) all[warp][r][16 * (4 * odd + k) + (lane >> 1)] = (f2){f, (float)s[k]};
            else p[k] = f * (float)s[k];
        }
        if (ORDER == A || ORDER == B) runs_by_tree(p, lane, runs[warp][r]);
        if (ORDER == D) {
            sum += swap_f(sum, 1);
            sum += swap_f(sum, 16);
            sum += swap_f(sum, 8);
            sum += swap_f(sum, 4);
            sum += swap_f(sum, 2);
            if (lane == 0) o.y[row0 + r] = sum;
        }
    }
    if (ORDER == E) return store_free(acc, lane, o.y + row0);
    if (ORDER == D) return;
    sync_warp();
    if (lane >= ROWS) return;
    if (!walk) {
        o.y[row0 + lane] = finish_runs<ORDER>(runs[warp][lane]);
        return;
    }
    float y = 0.0f;
    for (int b = 0; b < BLOCKS_OF_32; b++) y = fma(all[warp][lane][b].x, all[warp][lane][b].y, y);
    o.y[row0 + lane] = y;
}

/* Order F of Q8_0: a half warp a row, a lane a run; the plane is stored block-in-run first,
 * [row pair][block][halves of 16 bytes][row, run], so that the loads stay contiguous; the
 * activations are [block][half][run]. */
DEVICE void q8_chain(operands o) {
    SHARED static float runs[WARPS][ROWS][17];
    int lane = thread() & 31, warp = thread() >> 5, run = lane & 15;
    int row0 = (block_x() * WARPS + warp) * ROWS;
    const v4 *x = (const v4 *)o.x + run;
#pragma unroll
    for (int pair = 0; pair < ROWS / 2; pair++) {
        const v4 *w = (const v4 *)o.plane0 + (long)(row0 / 2 + pair) * 512 + lane;
        const u16 *d = o.scales + (long)(row0 / 2 + pair) * 256 + lane;
        float t = 0.0f;
#pragma unroll
        for (int b = 0; b < 8; b++) {
            int s = dot16(w[64 * b + 32], x[32 * b + 16], dot16(w[64 * b], x[32 * b], 0));
            t = fma(half(d[32 * b]) * o.x_scale[16 * b + run], (float)s, t);
        }
        runs[warp][2 * pair + (lane >> 4)][run] = t;
    }
    sync_warp();
    if (lane < ROWS) o.y[row0 + lane] = finish_runs<F>(runs[warp][lane]);
}

struct x_super {
    v4 low, high;
    int sum_low, sum_high;
};

template <int FORMAT> DEVICE x_super load_x(operands o, int block, int c) {
    x_super x;
    if (FORMAT == Q6_K) {
        int at = block * 16 + (c >> 2) * 8 + (c & 3);
        x.low = ((const v4 *)o.x)[at];
        x.high = ((const v4 *)o.x)[at + 4];
        x.sum_low = o.x_sums[at];
        x.sum_high = o.x_sums[at + 4];
    } else {
        x.low = ((const v4 *)o.x)[block * 16 + 2 * c];
        x.high = ((const v4 *)o.x)[block * 16 + 2 * c + 1];
    }
    return x;
}

DEVICE int q6_piece(operands o, long at, const x_super &x) {
    v4 l = ((const v4 *)o.plane0)[at];
    u2 h = ((const u2 *)o.plane1)[at];
    int sc = ((const u16 *)o.plane2)[at], low = 0, high = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        low = dp4a(bits_of(l[k], h.x, k), x.low[k], low);
        high = dp4a(bits_of((u32)l[k] >> 4, h.y, k), x.high[k], high);
    }
    return (i8)sc * (low - 32 * x.sum_low) + (i8)(sc >> 8) * (high - 32 * x.sum_high);
}

DEVICE int iq2_piece(operands o, long at, const x_super &x, const u2 *grid) {
    u2 w = ((const u2 *)o.plane0)[at];
    int dot = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        u2 g = signed_grid(grid[w.x >> (8 * k) & 255], w.y >> (7 * k) & 127);
        dot = dp4a(g.x, k < 2 ? x.low[2 * k] : x.high[2 * k - 4], dot);
        dot = dp4a(g.y, k < 2 ? x.low[2 * k + 1] : x.high[2 * k - 3], dot);
    }
    return (int)(2 * (w.y >> 28) + 1) * dot;
}

template <int FORMAT> DEVICE float scale_of(u16 h) {
    return FORMAT == IQ2_XXS ? half(h) * 0.125f : half(h);
}

template <int FORMAT, int ORDER> DEVICE void super_rows(operands o) {
    SHARED static f2 all[WARPS][ROWS][17];
    SHARED static u2 grid[FORMAT == IQ2_XXS ? 256 : 1];
    int lane = thread() & 31, warp = thread() >> 5, c = lane & 7;
    int row0 = (block_x() * WARPS + warp) * ROWS;
    if (FORMAT == IQ2_XXS) {
        grid[thread()] = o.grid[thread()];
        sync();
    }
    x_super x[4];
    float acc[ROWS];
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = load_x<FORMAT>(o, 4 * i + (lane >> 3), c);
    int mine = 4 * ((lane & 2) + (lane >> 2 & 1)) + (lane >> 3);
    float dx[4];
#pragma unroll
    for (int i = 0; i < 4; i++) dx[i] = o.x_scale[ORDER == E ? 4 * i + (lane >> 3) : mine];
#pragma unroll
    for (int r = 0; r < ROWS; r += 2) {
        int s[8];
#pragma unroll
        for (int k = 0; k < 8; k++) {
            long at = (long)(row0 + r + (k >> 2)) * 128 + 32 * (k & 3) + lane;
            s[k] = FORMAT == Q6_K ? q6_piece(o, at, x[k & 3]) : iq2_piece(o, at, x[k & 3], grid);
        }
        if (ORDER == E) {
#pragma unroll
            for (int k = 0; k < 8; k++) {
                u16 d = o.scales[(row0 + r + (k >> 2)) * BLOCKS_OF_256 + 4 * (k & 3) + (lane >> 3)];
                float before = k & 3 ? acc[r + (k >> 2)] : 0.0f;
                acc[r + (k >> 2)] = fma(scale_of<FORMAT>(d) * dx[k & 3], (float)s[k], before);
            }
            continue;
        }
        fold_i<4>(s, lane & 1, 1);
        fold_i<2>(s, lane >> 1 & 1, 2);
        fold_i<1>(s, lane >> 2 & 1, 4);
        float d = scale_of<FORMAT>(o.scales[(row0 + r + (lane & 1)) * BLOCKS_OF_256 + mine]);
        all[warp][r + (lane & 1)][mine] = (f2){d * dx[0], (float)s[0]};
    }
    if (ORDER == E) return store_free(acc, lane, o.y + row0);
    sync_warp();
    if (lane < ROWS) o.y[row0 + lane] = finish_blocks<ORDER>(all[warp][lane]);
}

KERNEL BOUNDS(256, 2) void matvec_Q8_0_A(operands o) { q8_rows<A>(o); }
KERNEL BOUNDS(256, 2) void matvec_Q8_0_B(operands o) { q8_rows<B>(o); }
KERNEL BOUNDS(256, 2) void matvec_Q8_0_C(operands o) { q8_rows<C>(o); }
KERNEL BOUNDS(256, 2) void matvec_Q8_0_D(operands o) { q8_rows<D>(o); }
KERNEL BOUNDS(256, 2) void matvec_Q8_0_E(operands o) { q8_rows<E>(o); }
KERNEL BOUNDS(256, 2) void matvec_Q8_0_F(operands o) { q8_chain(o); }
KERNEL BOUNDS(256, 2) void matvec_Q6_K_A(operands o) { super_rows<Q6_K, A>(o); }
KERNEL BOUNDS(256, 2) void matvec_Q6_K_B(operands o) { super_rows<Q6_K, B>(o); }
KERNEL BOUNDS(256, 2) void matvec_Q6_K_C(operands o) { super_rows<Q6_K, C>(o); }
KERNEL BOUNDS(256, 2) void matvec_Q6_K_D(operands o) { super_rows<Q6_K, D>(o); }
KERNEL BOUNDS(256, 2) void matvec_Q6_K_E(operands o) { super_rows<Q6_K, E>(o); }
KERNEL BOUNDS(256, 2) void matvec_IQ2_XXS_A(operands o) { super_rows<IQ2_XXS, A>(o); }
KERNEL BOUNDS(256, 2) void matvec_IQ2_XXS_B(operands o) { super_rows<IQ2_XXS, B>(o); }
KERNEL BOUNDS(256, 2) void matvec_IQ2_XXS_C(operands o) { super_rows<IQ2_XXS, C>(o); }
KERNEL BOUNDS(256, 2) void matvec_IQ2_XXS_D(operands o) { super_rows<IQ2_XXS, D>(o); }
KERNEL BOUNDS(256, 2) void matvec_IQ2_XXS_E(operands o) { super_rows<IQ2_XXS, E>(o); }
