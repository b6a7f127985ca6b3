/* Products and decoding of the grid types. */
#include "dot_iq_unpack.h"
#include "dot_super.h"
#if defined(LG_HAS_PANELS)
#include "dot_iq_avx512.h"
#include "dot_iq_woven_avx512.h"
#include "dot_panel_iq_avx512.h"
#elif defined(__AVX2__)
#include "dot_iq_avx2.h"
#include "dot_panel_fill_avx2.h"
#elif defined(LG_HAS_NEON)
#include "dot_iq_neon.h"
#include "dot_panel_neon.h"
#endif

NARROW_TYPE(iq1_s, 9, 32, 50, 0.125f, LG_BIASED)
SUPER_TYPE(iq1_m, 9, 16, 56, 0.125f, LG_BIASED)
WOVEN_TYPE(iq2_xxs, 64, 32, 66, 0.125f, LG_SIGNED | LG_LOOKED_UP)
WOVEN_TYPE(iq2_xs, 64, 16, 74, 0.125f, LG_SIGNED)
WOVEN_TYPE(iq2_s, 64, 16, 82, 0.125f, LG_SIGNED)
WOVEN_TYPE(iq3_xxs, 64, 32, 98, 0.25f, LG_SIGNED | LG_LOOKED_UP)
WOVEN_TYPE(iq3_s, 64, 32, 110, 1.0f, LG_SIGNED)
SUPER_TYPE(iq4_xs, 128, 32, 136, 1.0f, LG_SIGNED)

#if defined(LG_HAS_PANELS)
PANELS_FROM_ROWS(iq1_s, times_32)
PANELS_FROM_ROWS(iq1_m, times_16_narrow)
PANELS_SUPER(iq2_xxs, 64, times_32)
PANELS_FROM_ROWS(iq2_xs, times_16)
PANELS_FROM_ROWS(iq2_s, times_16)
PANELS_SUPER(iq3_xxs, 64, times_32)
PANELS_FROM_ROWS(iq3_s, times_32)
PANELS_SUPER(iq4_xs, 128, times_32)
#endif
