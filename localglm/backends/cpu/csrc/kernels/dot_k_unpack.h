/* K-type super-blocks to integers. */
#ifndef LG_DOT_K_UNPACK_H
#define LG_DOT_K_UNPACK_H

#include "dot_portable.h"

/* Fields of `bits` bits: the lowest of `run` bytes, then the next of those; then the following bytes. */
LG_INLINE void split_fields(const uint8_t *p, int bytes, int bits, int run, int8_t *w) {
    for (int at = 0; at < bytes; at += run)
        for (int shift = 0; shift < 8; shift += bits, w += run)
            for (int i = 0; i < run; i++) w[i] = (int8_t)((p[at + i] >> shift) & ((1 << bits) - 1));
}

/* The same fields above the `low` bits already in w. */
LG_INLINE void add_fields(const uint8_t *p, int bytes, int bits, int run, int low, int8_t *w) {
    for (int at = 0; at < bytes; at += run)
        for (int shift = 0; shift < 8; shift += bits, w += run)
            for (int i = 0; i < run; i++)
                w[i] = (int8_t)(w[i] | ((p[at + i] >> shift) & ((1 << bits) - 1)) << low);
}

/* The eight 6-bit scales and minima of Q4_K and Q5_K as bytes. The first four of each are the low six
 * bits of bytes 0-3 and 4-7; the rest have low halves in bytes 8-11 and top bits above the first four. */
LG_INLINE void scales_and_minima(const uint8_t *p, uint64_t *scales, uint64_t *minima) {
    uint32_t a = lg_load32(p), b = lg_load32(p + 4), c = lg_load32(p + 8);
    uint32_t high_scales = (c & 0x0f0f0f0fu) | ((a >> 2) & 0x30303030u);
    uint32_t high_minima = ((c >> 4) & 0x0f0f0f0fu) | ((b >> 2) & 0x30303030u);
    *scales = (a & 0x3f3f3f3fu) | (uint64_t)high_scales << 32;
    *minima = (b & 0x3f3f3f3fu) | (uint64_t)high_minima << 32;
}

LG_INLINE void pairs_of_groups(const uint8_t *p, lg_block256 *out) {
    uint64_t scales, minima;
    scales_and_minima(p, &scales, &minima);
    for (int g = 0; g < 16; g++) {
        out->scale[g] = (int16_t)((scales >> (g / 2 * 8)) & 255);
        out->min[g] = (int16_t)((minima >> (g / 2 * 8)) & 255);
    }
}

/* The sixteen 6-bit scales of Q3_K, not yet centred: 16 low halves, then 4 bytes of top bits. */
LG_INLINE void scales_q3_k(const uint8_t *p, uint64_t *low, uint64_t *high) {
    uint64_t halves = lg_load64(p), top = lg_load32(p + 8);
    uint64_t first = (top & 0x03030303u) | ((top >> 2) & 0x03030303u) << 32;
    uint64_t second = ((top >> 4) & 0x03030303u) | ((top >> 6) & 0x03030303u) << 32;
    *low = (halves & 0x0f0f0f0f0f0f0f0full) | first << 4;
    *high = ((halves >> 4) & 0x0f0f0f0f0f0f0f0full) | second << 4;
}

LG_INLINE void unpack_q2_k(const uint8_t *p, lg_block256 *out) {
    out->d = lg_load16(p + 80);
    out->m = lg_load16(p + 82);
    for (int g = 0; g < 16; g++) {
        out->scale[g] = p[g] & 15;
        out->min[g] = p[g] >> 4;
    }
    split_fields(p + 16, 64, 2, 32, out->w);
}

LG_INLINE void unpack_q3_k(const uint8_t *p, lg_block256 *out) {
    uint64_t low, high;
    out->d = lg_load16(p + 108);
    scales_q3_k(p + 96, &low, &high);
    for (int g = 0; g < 8; g++) {
        out->scale[g] = (int16_t)((int)((low >> (8 * g)) & 255) - 32);
        out->scale[8 + g] = (int16_t)((int)((high >> (8 * g)) & 255) - 32);
    }
    split_fields(p + 32, 64, 2, 32, out->w);
    add_fields(p, 32, 1, 32, 2, out->w);
    for (int i = 0; i < 256; i++) out->w[i] = (int8_t)(out->w[i] - 4);
}

LG_INLINE void unpack_q4_k(const uint8_t *p, lg_block256 *out) {
    out->d = lg_load16(p);
    out->m = lg_load16(p + 2);
    pairs_of_groups(p + 4, out);
    split_fields(p + 16, 128, 4, 32, out->w);
}

LG_INLINE void unpack_q5_k(const uint8_t *p, lg_block256 *out) {
    out->d = lg_load16(p);
    out->m = lg_load16(p + 2);
    pairs_of_groups(p + 4, out);
    split_fields(p + 48, 128, 4, 32, out->w);
    add_fields(p + 16, 32, 1, 32, 4, out->w);
}

LG_INLINE void unpack_q6_k(const uint8_t *p, lg_block256 *out) {
    out->d = lg_load16(p + 208);
    for (int g = 0; g < 16; g++) out->scale[g] = (int8_t)p[192 + g];
    split_fields(p, 128, 4, 64, out->w);
    add_fields(p + 128, 64, 2, 32, 4, out->w);
    for (int i = 0; i < 256; i++) out->w[i] = (int8_t)(out->w[i] - 32);
}

#endif
