/* 32-value blocks to integers. Fields: half-precision d at byte 0, for *_1 types m at byte 2. */
#ifndef LG_DOT_RUN32_UNPACK_H
#define LG_DOT_RUN32_UNPACK_H

#include "dot_portable.h"

LG_INLINE void unpack_q8_0(const uint8_t *p, lg_block32 *out) {
    out->d = lg_load16(p);
    memcpy(out->w, p + 2, 32);
}

#endif
