/* 32-value blocks to integers. Half-precision d at byte 0, in *_1 types m at byte 2. Value i of a 4-bit
 * type is the low half of byte i, value 16 + i the high half; fifth bits are one 32-bit word. */
#ifndef LG_DOT_RUN32_UNPACK_H
#define LG_DOT_RUN32_UNPACK_H

#include "../generated/lg_tables.h"
#include "dot_portable.h"

LG_INLINE void nibbles32(const uint8_t *p, int8_t *w) {
    for (int i = 0; i < 16; i++) {
        w[i] = (int8_t)(p[i] & 15);
        w[16 + i] = (int8_t)(p[i] >> 4);
    }
}

LG_INLINE void fifth_bits(uint32_t word, int8_t *w) {
    for (int i = 0; i < 32; i++) w[i] = (int8_t)(w[i] | (int)(((word >> i) & 1) << 4));
}

LG_INLINE void shift_down(int8_t *w, int count, int by) {
    for (int i = 0; i < count; i++) w[i] = (int8_t)(w[i] - by);
}

LG_INLINE void unpack_q8_0(const uint8_t *p, lg_block32 *out) {
    out->d = lg_load16(p);
    memcpy(out->w, p + 2, 32);
}

LG_INLINE void unpack_q4_0(const uint8_t *p, lg_block32 *out) {
    out->d = lg_load16(p);
    nibbles32(p + 2, out->w);
    shift_down(out->w, 32, 8);
}

LG_INLINE void unpack_q4_1(const uint8_t *p, lg_block32 *out) {
    out->d = lg_load16(p);
    out->m = lg_load16(p + 2);
    nibbles32(p + 4, out->w);
}

LG_INLINE void unpack_q5_0(const uint8_t *p, lg_block32 *out) {
    out->d = lg_load16(p);
    nibbles32(p + 6, out->w);
    fifth_bits(lg_load32(p + 2), out->w);
    shift_down(out->w, 32, 16);
}

LG_INLINE void unpack_q5_1(const uint8_t *p, lg_block32 *out) {
    out->d = lg_load16(p);
    out->m = lg_load16(p + 2);
    nibbles32(p + 8, out->w);
    fifth_bits(lg_load32(p + 4), out->w);
}

LG_INLINE void unpack_iq4_nl(const uint8_t *p, lg_block32 *out) {
    out->d = lg_load16(p);
    nibbles32(p + 2, out->w);
    for (int i = 0; i < 32; i++) out->w[i] = lg_kvalues_iq4nl[out->w[i]];
}

#endif
