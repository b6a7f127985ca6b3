/* What the kernels need of CUDA C++, without its headers. */
#ifndef SPIKE_SHIM_H
#define SPIKE_SHIM_H

#define KERNEL extern "C" __attribute__((global))
#define BOUNDS(threads, blocks) __attribute__((launch_bounds(threads, blocks)))
#define DEVICE static __attribute__((device)) inline
#define SHARED __attribute__((shared))

typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int v4 __attribute__((ext_vector_type(4)));
typedef unsigned int u2 __attribute__((ext_vector_type(2)));
typedef float f2 __attribute__((ext_vector_type(2)));

enum { Q8_0, Q6_K, IQ2_XXS };
enum { A, B, C, D, E, F };

DEVICE int thread() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE int block_x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE int block_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
DEVICE void sync() { asm volatile("bar.sync 0;" ::: "memory"); }
DEVICE void sync_warp() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
DEVICE int swap_i(int v, int m) { return __nvvm_shfl_sync_bfly_i32(-1, v, m, 31); }
DEVICE float swap_f(float v, int m) { return __nvvm_shfl_sync_bfly_f32(-1, v, m, 31); }
DEVICE int dp4a(int a, int b, int c) {
    int d;
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
DEVICE float half(u16 h) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    return x;
}
DEVICE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

/* Four signed bytes q - 32 from four values q of six bits. */
DEVICE int minus32(u32 q) { return ((q | 0x80808080u) - 0x20202020u) ^ 0x80808080u; }

DEVICE u32 bits_of(u32 nibbles, u32 pairs, int k) {
    return (nibbles & 0x0f0f0f0fu) | ((pairs >> (2 * k) & 0x03030303u) << 4);
}

/* Eight grid bytes with their signs: seven sign bits, the eighth makes their count even. */
DEVICE u2 signed_grid(u2 grid, u32 seven) {
    u32 s = seven | (__builtin_popcount(seven) & 1) << 7;
    u32 one0 = (s & 15) * 0x00204081u & 0x01010101u, one1 = (s >> 4) * 0x00204081u & 0x01010101u;
    grid.x = (grid.x ^ one0 * 255u) + one0;
    grid.y = (grid.y ^ one1 * 255u) + one1;
    return grid;
}

/* The tree of orders B and D: p[j] + p[j + h] for h = n / 2 .. 1. */
template <int N> DEVICE float tree(float *p) {
#pragma unroll
    for (int h = N / 2; h >= 1; h /= 2)
#pragma unroll
        for (int j = 0; j < h; j++) p[j] += p[j + h];
    return p[0];
}

#endif
