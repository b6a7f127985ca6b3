/* 32-value blocks to vectors; the layouts are those of dot_run32_unpack.h. */
#ifndef LG_DOT_RUN32_NEON_H
#define LG_DOT_RUN32_NEON_H

#include "../generated/lg_tables.h"
#include "dot_neon.h"

/* Low halves of 16 bytes, then their high halves. */
LG_INLINE lg_part vector_nibbles(const uint8_t *p) {
    uint8x16_t bytes = vld1q_u8(p);
    return part_of(vandq_u8(bytes, vdupq_n_u8(15)), vshrq_n_u8(bytes, 4));
}

/* All bits of byte i set where bit i of a 32-bit word is, bytes 16 half .. of 32; every lane of words holds the word.
 * The empty statement keeps the mask one: as a condition it would cost an instruction more where it is used. */
LG_INLINE uint8x16_t vector_bits(uint8x16_t words, int half) {
    const uint8x16_t byte_of = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    const uint8x16_t bit_of = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t mask = vtstq_u8(vqtbl1q_u8(words, byte_of + (uint8_t)(2 * half)), bit_of);
    __asm__("" : "+w"(mask));
    return mask;
}

LG_INLINE uint8x16_t word_everywhere(const uint8_t *p) { return vreinterpretq_u8_u32(vdupq_n_u32(lg_load32(p))); }

/* Nibbles with fifth bits, and less 16 where a weight is centred. */
LG_INLINE lg_part with_fifth_bits(lg_part nibbles, const uint8_t *word, int centred) {
    const int8x16_t sixteen = vdupq_n_s8(16);
    uint8x16_t words = word_everywhere(word);
    for (int h = 0; h < 2; h++) {
        int8x16_t set = vreinterpretq_s8_u8(vector_bits(words, h));
        nibbles.w[h] = centred ? vsubq_s8(nibbles.w[h], vbicq_s8(sixteen, set))
                               : vorrq_s8(nibbles.w[h], vandq_s8(sixteen, set));
    }
    return nibbles;
}

/* Table values of codes 0..15. */
LG_INLINE lg_part vector_iq4(lg_part codes) {
    const int8x16_t table = vld1q_s8(lg_kvalues_iq4nl);
    for (int h = 0; h < 2; h++) codes.w[h] = vqtbl1q_s8(table, vreinterpretq_u8_s8(codes.w[h]));
    return codes;
}

LG_INLINE void vector_q8_0(const uint8_t *p, lg_vector32 *out) {
    out->d = lg_load16(p);
    out->part = part_of(vld1q_u8(p + 2), vld1q_u8(p + 18));
}

LG_INLINE void vector_q4_0(const uint8_t *p, lg_vector32 *out) {
    out->d = lg_load16(p);
    out->part = vector_nibbles(p + 2);
    for (int h = 0; h < 2; h++) out->part.w[h] = vsubq_s8(out->part.w[h], vdupq_n_s8(8));
}

LG_INLINE void vector_q4_1(const uint8_t *p, lg_vector32 *out) {
    out->d = lg_load16(p);
    out->m = lg_load16(p + 2);
    out->part = vector_nibbles(p + 4);
}

LG_INLINE void vector_q5_0(const uint8_t *p, lg_vector32 *out) {
    out->d = lg_load16(p);
    out->part = with_fifth_bits(vector_nibbles(p + 6), p + 2, 1);
}

LG_INLINE void vector_q5_1(const uint8_t *p, lg_vector32 *out) {
    out->d = lg_load16(p);
    out->m = lg_load16(p + 2);
    out->part = with_fifth_bits(vector_nibbles(p + 8), p + 4, 0);
}

LG_INLINE void vector_iq4_nl(const uint8_t *p, lg_vector32 *out) {
    out->d = lg_load16(p);
    out->part = vector_iq4(vector_nibbles(p + 2));
}

#endif
