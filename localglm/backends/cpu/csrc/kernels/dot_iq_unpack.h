/* Grid-type super-blocks to integers. Grid entries hold value k in byte k, lowest first. */
#ifndef LG_DOT_IQ_UNPACK_H
#define LG_DOT_IQ_UNPACK_H

#include "../generated/lg_tables.h"
#include "dot_portable.h"

/* Count magnitudes of an entry, negated where the sign byte has a bit. */
LG_INLINE void put_signed(int8_t *w, uint64_t entry, int count, unsigned signs) {
    for (int k = 0; k < count; k++) {
        int value = (int)((entry >> (8 * k)) & 255);
        w[k] = (int8_t)((signs >> k) & 1 ? -value : value);
    }
}

LG_INLINE void put_signed_pair(int8_t *w, uint32_t first, uint32_t second, unsigned signs) {
    put_signed(w, first | (uint64_t)second << 32, 8, signs);
}

LG_INLINE void put_shifted(int8_t *w, uint64_t entry, int t) {
    for (int k = 0; k < 8; k++) w[k] = (int8_t)(8 * (int8_t)(entry >> (8 * k)) + t);
}

LG_INLINE void pair_scale(lg_block256 *out, int group32, int scale) {
    out->scale[2 * group32] = out->scale[2 * group32 + 1] = (int16_t)scale;
}

/* Sixteen half-byte sub-scales s as 2 s + 1. */
LG_INLINE void odd_scales16(const uint8_t *p, lg_block256 *out) {
    for (int g = 0; g < 16; g++) out->scale[g] = (int16_t)(2 * ((p[g / 2] >> (g % 2 * 4)) & 15) + 1);
}

/* A group is four grid indices and a word: four times 7 bits of sign code, then the scale. */
LG_INLINE void unpack_iq2_xxs(const uint8_t *p, lg_block256 *out) {
    out->d = lg_load16(p);
    for (int g = 0; g < 8; g++) {
        const uint8_t *index = p + 2 + 8 * g;
        uint32_t word = lg_load32(index + 4);
        pair_scale(out, g, (int)(2 * (word >> 28) + 1));
        for (int k = 0; k < 4; k++)
            put_signed(out->w + 32 * g + 8 * k, lg_iq2xxs_grid[index[k]], 8,
                       lg_ksigns_iq2xs[(word >> (7 * k)) & 127]);
    }
}

/* Words of 9 bits of grid index and 7 of sign code. */
LG_INLINE void unpack_iq2_xs(const uint8_t *p, lg_block256 *out) {
    out->d = lg_load16(p);
    odd_scales16(p + 66, out);
    for (int k = 0; k < 32; k++) {
        uint32_t word = lg_load16(p + 2 + 2 * k);
        put_signed(out->w + 8 * k, lg_iq2xs_grid[word & 511], 8, lg_ksigns_iq2xs[word >> 9]);
    }
}

LG_INLINE uint32_t index_iq2_s(const uint8_t *p, int k) {
    return p[2 + k] | (uint32_t)((p[66 + k / 4] >> (k % 4 * 2)) & 3) << 8;
}

LG_INLINE void unpack_iq2_s(const uint8_t *p, lg_block256 *out) {
    out->d = lg_load16(p);
    odd_scales16(p + 74, out);
    for (int k = 0; k < 32; k++) put_signed(out->w + 8 * k, lg_iq2s_grid[index_iq2_s(p, k)], 8, p[34 + k]);
}

LG_INLINE void unpack_iq3_xxs(const uint8_t *p, lg_block256 *out) {
    out->d = lg_load16(p);
    for (int g = 0; g < 8; g++) {
        uint32_t word = lg_load32(p + 66 + 4 * g);
        pair_scale(out, g, (int)(2 * (word >> 28) + 1));
        for (int k = 0; k < 4; k++) {
            const uint8_t *index = p + 2 + 8 * g + 2 * k;
            put_signed_pair(out->w + 32 * g + 8 * k, lg_iq3xxs_grid[index[0]], lg_iq3xxs_grid[index[1]],
                            lg_ksigns_iq2xs[(word >> (7 * k)) & 127]);
        }
    }
}

LG_INLINE uint32_t index_iq3_s(const uint8_t *p, int k) {
    return p[2 + k] | (uint32_t)((p[66 + k / 8] >> (k % 8)) & 1) << 8;
}

LG_INLINE void unpack_iq3_s(const uint8_t *p, lg_block256 *out) {
    out->d = lg_load16(p);
    for (int g = 0; g < 8; g++) pair_scale(out, g, 2 * ((p[106 + g / 2] >> (g % 2 * 4)) & 15) + 1);
    for (int k = 0; k < 32; k++)
        put_signed_pair(out->w + 8 * k, lg_iq3s_grid[index_iq3_s(p, 2 * k)],
                        lg_iq3s_grid[index_iq3_s(p, 2 * k + 1)], p[74 + k]);
}

/* A word per group: four times 3 top bits of grid index, 3 bits of scale, the sign of t. */
LG_INLINE void unpack_iq1_s(const uint8_t *p, lg_block256 *out) {
    out->d = lg_load16(p);
    for (int g = 0; g < 8; g++) {
        uint32_t word = lg_load16(p + 34 + 2 * g);
        pair_scale(out, g, (int)(2 * ((word >> 12) & 7) + 1));
        for (int k = 0; k < 4; k++) {
            uint32_t index = p[2 + 4 * g + k] | ((word >> (3 * k)) & 7) << 8;
            put_shifted(out->w + 32 * g + 8 * k, lg_iq1s_grid[index], word & 0x8000 ? -1 : 1);
        }
    }
}

/* d is the top halves of the four scale words, lowest first. */
LG_INLINE uint16_t scale_iq1_m(uint64_t words) {
    return (uint16_t)(((words >> 12) & 0x000f) | ((words >> 24) & 0x00f0) | ((words >> 36) & 0x0f00) |
                      ((words >> 48) & 0xf000));
}

/* Half bytes of 3 top bits of grid index and the sign of t, one for each eight values. */
LG_INLINE void unpack_iq1_m(const uint8_t *p, lg_block256 *out) {
    uint64_t words = lg_load64(p + 48);
    out->d = scale_iq1_m(words);
    for (int g = 0; g < 16; g++)
        out->scale[g] = (int16_t)(2 * ((words >> (g / 4 * 16 + g % 4 * 3)) & 7) + 1);
    for (int k = 0; k < 32; k++) {
        uint32_t high = (uint32_t)p[32 + k / 2] >> (k % 2 * 4);
        put_shifted(out->w + 8 * k, lg_iq1s_grid[p[k] | (high & 7) << 8], high & 8 ? -1 : 1);
    }
}

/* Sub-scale of group g of IQ4_XS, centred. */
LG_INLINE int scale_iq4_xs(const uint8_t *p, int g) {
    int low = (p[4 + g / 2] >> (g % 2 * 4)) & 15, high = (lg_load16(p + 2) >> (2 * g)) & 3;
    return (low | high << 4) - 32;
}

LG_INLINE void unpack_iq4_xs(const uint8_t *p, lg_block256 *out) {
    out->d = lg_load16(p);
    for (int g = 0; g < 8; g++) {
        pair_scale(out, g, scale_iq4_xs(p, g));
        for (int i = 0; i < 16; i++) {
            uint8_t byte = p[8 + 16 * g + i];
            out->w[32 * g + i] = lg_kvalues_iq4nl[byte & 15];
            out->w[32 * g + 16 + i] = lg_kvalues_iq4nl[byte >> 4];
        }
    }
}

#endif
