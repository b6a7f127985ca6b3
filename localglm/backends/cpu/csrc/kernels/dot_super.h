/* Makes the functions of a super-block type from its form and how it is unpacked. */
#ifndef LG_DOT_SUPER_H
#define LG_DOT_SUPER_H

#include "dot_portable.h"
#include "dot_types.h"

/* Every product is exact (11 bits of d, at most 7 of scale, at most 7 of weight, 24 or fewer in all), so
 * the grouping of factors does not matter; the subtraction of minima is the only rounding. */
LG_INLINE void decode_super(const uint8_t *row, int64_t n, float *out, lg_form256 form, lg_unpack256 unpack) {
    lg_block256 block;
    for (int64_t b = 0; b < n / 256; b++) {
        unpack(row + b * form.bytes, &block);
        float d = lg_half(block.d) * form.factor, m = form.flags & LG_HAS_MIN ? lg_half(block.m) : 0.0f;
        for (int i = 0; i < 256; i++) {
            float value = (d * (float)block.scale[i / 16]) * (float)block.w[i];
            out[256 * b + i] = form.flags & LG_HAS_MIN ? value - m * (float)block.min[i / 16] : value;
        }
    }
}

#if defined(LG_HAS_PANELS)
#define DOT_SUPER(type, tokens)                                                                \
    avx512_super(row, n, x, y, tokens, form_##type, wide_##type, pair_##type, part512_##type)
#define PRODUCTS_SUPER(type, ...)                                                              \
    static const lg_form512 wide_##type = {__VA_ARGS__};                                       \
    LG_DEFINE_SMALL(type, DOT_SUPER)
#define DOT_WOVEN(type, tokens)                                                                \
    avx512_woven(row, n, x, y, tokens, form_##type, wide_##type.group, weave_##type)
#define PRODUCTS_WOVEN(type, ...)                                                              \
    static const lg_form512 wide_##type = {__VA_ARGS__};                                       \
    LG_DEFINE_SMALL(type, DOT_WOVEN)
#define DOT_NARROW(type, tokens) avx2_super(row, n, x, y, tokens, form_##type, head_##type, part_##type)
#define PRODUCTS_NARROW(type, ...)                                                             \
    static const lg_form512 wide_##type = {__VA_ARGS__};                                       \
    LG_DEFINE_SMALL(type, DOT_NARROW)
/* Panels of a type whose fill_TYPE is known: what is added to each weight, the product (dot_panel.h). */
#define PANELS_SUPER(type, centre, times)                                                      \
    void LG_NAME(panel_##type)(LG_PANEL_ARGUMENTS) {                                           \
        lg_panel_source from = {row, row_bytes, n, count, form_##type.bytes, NULL};            \
        avx512_panel(from, x, tokens, y, at, room, centre, fill_##type, NULL, LG_NAME(times)); \
    }
#define PANELS_FROM_ROWS(type, times)                                                          \
    LG_FILL_FROM_ROWS(type)                                                                    \
    PANELS_SUPER(type, wide_##type.centre, times)
#elif defined(LG_HAS_OCTETS)
#define DOT_SUPER(type, tokens) avx2_super(row, n, x, y, tokens, form_##type, head_##type, part_##type)
#define PANEL_SUPER(type)                                                                      \
    avx2_super_panel(row, row_bytes, count, n, x, tokens, y, at, room, form_##type, octet_##type, tile_##type, \
                     head_##type, part_##type)
#define PRODUCTS_SUPER(type, centre512, group)                                                 \
    static const lg_octet_type octet_##type = {group, adds_##type, centre_##type};             \
    static void tile_##type(LG_DOT_ARGUMENTS) { DOT_SUPER(type, 8); }                          \
    LG_DEFINE_PANELS(type, DOT_SUPER, PANEL_SUPER)
#elif defined(LG_HAS_NEON)
#define DOT_SUPER(type, tokens) \
    neon_super(row, n, x, y, tokens, form_##type, group_##type, head_##type, part_##type)
#define PANEL_SUPER(type)                                                                      \
    neon_super_panel(row, row_bytes, count, n, x, tokens, y, at, room, form_##type, group_##type, head_##type, \
                     part_##type)
#define PRODUCTS_SUPER(type, centre, group)                                                    \
    enum { group_##type = group };                                                             \
    LG_DEFINE_PANELS(type, DOT_SUPER, PANEL_SUPER)
#else
#define DOT_SUPER(type, tokens) portable_super(row, n, x, y, tokens, form_##type, unpack_##type)
#endif
#if !defined(PRODUCTS_SUPER)
#define PRODUCTS_SUPER(type, ...) LG_DEFINE_DOTS(type, DOT_SUPER)
#endif
#if !defined(PRODUCTS_WOVEN)
#define PRODUCTS_WOVEN PRODUCTS_SUPER
#define PRODUCTS_NARROW PRODUCTS_SUPER
#endif

/* centre and group are those of lg_form512, the further arguments the fields of lg_form256. */
#define SUPER_TYPE(type, centre, group, ...) TYPE_OF_PRODUCTS(PRODUCTS_SUPER, type, centre, group, __VA_ARGS__)
/* Types that dot_woven_avx512.h serves where it can. */
#define WOVEN_TYPE(type, centre, group, ...) TYPE_OF_PRODUCTS(PRODUCTS_WOVEN, type, centre, group, __VA_ARGS__)
/* Types for which joining two vectors of 256 bits costs more than it saves. */
#define NARROW_TYPE(type, centre, group, ...) TYPE_OF_PRODUCTS(PRODUCTS_NARROW, type, centre, group, __VA_ARGS__)

#define TYPE_OF_PRODUCTS(products, type, centre, group, ...)                                   \
    static const lg_form256 form_##type = {__VA_ARGS__};                                       \
    products(type, centre, group)                                                              \
    void LG_NAME(decode_##type)(const uint8_t *row, int64_t n, float *out) {                   \
        decode_super(row, n, out, form_##type, unpack_##type);                                 \
    }

#endif
