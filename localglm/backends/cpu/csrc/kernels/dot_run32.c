/* Products and decoding of the 32-value types. */
#include "dot_run32_unpack.h"
#include "dot_types.h"
#if defined(LG_HAS_PANELS)
#include "dot_panel_k_avx512.h"
#define DOT_RUN32(type, tokens) avx512_run32(row, n, x, y, tokens, form_##type, centre_##type, unpack512_##type)
#define PRODUCTS_RUN32(type, centre)                                                           \
    enum { centre_##type = centre };                                                           \
    LG_DEFINE_SMALL(type, DOT_RUN32)
#elif defined(__AVX2__)
#include "dot_panel_fill_avx2.h"
#include "dot_run32_avx2.h"
#define DOT_RUN32(type, tokens) avx2_run32(row, n, x, y, tokens, form_##type, vector_##type)
#define PANEL_RUN32(type)                                                                      \
    avx2_run32_panel(row, row_bytes, count, n, x, tokens, y, at, room, form_##type, vector_##type)
#define PRODUCTS_RUN32(type, centre) LG_DEFINE_PANELS(type, DOT_RUN32, PANEL_RUN32)
#elif defined(LG_HAS_NEON)
#include "dot_run32_neon.h"
#include "dot_panel_neon.h"
#define DOT_RUN32(type, tokens) neon_run32(row, n, x, y, tokens, form_##type, vector_##type)
#define PANEL_RUN32(type)                                                                      \
    neon_run32_panel(row, row_bytes, count, n, x, tokens, y, at, room, form_##type, vector_##type)
#define PRODUCTS_RUN32(type, centre) LG_DEFINE_PANELS(type, DOT_RUN32, PANEL_RUN32)
#else
#define DOT_RUN32(type, tokens) portable_run32(row, n, x, y, tokens, form_##type, unpack_##type)
#endif
#if !defined(PRODUCTS_RUN32)
#define PRODUCTS_RUN32(type, centre) LG_DEFINE_DOTS(type, DOT_RUN32)
#endif

LG_INLINE void decode_run32(const uint8_t *row, int64_t n, float *out, lg_form32 form, lg_unpack32 unpack) {
    lg_block32 block;
    for (int64_t b = 0; b < n / 32; b++) {
        unpack(row + b * form.bytes, &block);
        float d = lg_half(block.d), m = form.flags & LG_HAS_MIN ? lg_half(block.m) : 0.0f;
        for (int i = 0; i < 32; i++) {
            float value = d * (float)block.w[i];
            out[32 * b + i] = form.flags & LG_HAS_MIN ? value + m : value;
        }
    }
}

/* centre512 is what the AVX-512 kernels add to each weight; the rest are the fields of lg_form32. */
#define RUN32_TYPE(type, centre512, ...)                                                       \
    static const lg_form32 form_##type = {__VA_ARGS__};                                        \
    PRODUCTS_RUN32(type, centre512)                                                            \
    void LG_NAME(decode_##type)(const uint8_t *row, int64_t n, float *out) {                   \
        decode_run32(row, n, out, form_##type, unpack_##type);                                 \
    }

RUN32_TYPE(q8_0, 128, 34, LG_SIGNED, 0)
RUN32_TYPE(q4_0, 8, 18, LG_BIASED, 8)
RUN32_TYPE(q4_1, 0, 20, LG_HAS_MIN, 0)
RUN32_TYPE(q5_0, 16, 22, LG_BIASED, 16)
RUN32_TYPE(q5_1, 0, 24, LG_HAS_MIN, 0)
RUN32_TYPE(iq4_nl, 128, 18, LG_SIGNED, 0)

#if defined(LG_HAS_PANELS)
#define PANELS_RUN32(type, times)                                                              \
    void LG_NAME(panel_##type)(LG_PANEL_ARGUMENTS) {                                           \
        lg_panel_source from = {row, row_bytes, n, count, 8 * form_##type.bytes, NULL};        \
        avx512_panel(from, x, tokens, y, at, room, centre_##type, NULL, fill_##type, LG_NAME(times)); \
    }
#define PANELS_FROM_RUNS(type, times)                                                          \
    LG_FILL_FROM_RUNS(type)                                                                    \
    PANELS_RUN32(type, times)

PANELS_RUN32(q8_0, times_run)
PANELS_FROM_RUNS(q4_0, times_run)
PANELS_FROM_RUNS(q4_1, times_run_min)
PANELS_FROM_RUNS(q5_0, times_run)
PANELS_FROM_RUNS(q5_1, times_run_min)
PANELS_FROM_RUNS(iq4_nl, times_run)
#endif
