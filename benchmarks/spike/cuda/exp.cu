/* The contract's exp, one value a thread, and a plain read for the bandwidth ceiling. */
#include "shim.h"

DEVICE float from_bits(u32 u) { return __builtin_bit_cast(float, u); }

KERNEL void contract_exp(const float *in, float *out, int n) {
    int i = block_x() * 256 + thread();
    if (i >= n) return;
    float x = in[i];
    if (!(x <= 88.72284f)) {
        out[i] = x > 88.72284f ? from_bits(0x7f800000u) : x;
        return;
    }
    if (x < -104.0f) {
        out[i] = 0.0f;
        return;
    }
    const float magic = 12582912.0f;
    float k = (x * 1.44269504f + magic) - magic;
    float r = fma(k, -0x1.62e4p-1f, x);
    r = fma(k, -1.42860677e-6f, r);
    float p = 0x1.6a23d0p-10f;
    p = fma(p, r, 0x1.123a20p-7f);
    p = fma(p, r, 0x1.5558f2p-5f);
    p = fma(p, r, 0x1.555492p-3f);
    p = fma(p, r, 0x1.fffffcp-2f);
    p = fma(p, r, 1.0f);
    p = fma(p, r, 1.0f);
    int e = (int)k, half_e = e / 2;
    out[i] = (p * from_bits((u32)(half_e + 127) << 23)) * from_bits((u32)(e - half_e + 127) << 23);
}

/* Every thread sums 16-byte words; the result is stored only if it is one particular value. */
KERNEL void plain_read(const v4 *in, int *out, int words, int stride) {
    v4 sum = {0, 0, 0, 0};
    int at = block_x() * 256 + thread();
#pragma unroll 4
    for (; at < words; at += stride) sum ^= in[at];
    if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x5eed) out[0] = 1;
}
