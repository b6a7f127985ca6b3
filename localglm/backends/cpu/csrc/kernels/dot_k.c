/* Products and decoding of the K types. */
#include "dot_k_unpack.h"
#include "dot_super.h"
#if defined(LG_HAS_PANELS)
#include "dot_panel_k_avx512.h"
#elif defined(__AVX2__)
#include "dot_k_avx2.h"
#include "dot_panel_fill_avx2.h"
#elif defined(LG_HAS_NEON)
#include "dot_k_neon.h"
#include "dot_panel_neon.h"
#endif

SUPER_TYPE(q2_k, 0, 16, 84, 1.0f, LG_HAS_MIN)
SUPER_TYPE(q3_k, 4, 16, 110, 1.0f, LG_BIASED)
SUPER_TYPE(q4_k, 0, 32, 144, 1.0f, LG_HAS_MIN)
SUPER_TYPE(q5_k, 0, 32, 176, 1.0f, LG_HAS_MIN)
SUPER_TYPE(q6_k, 32, 16, 210, 1.0f, LG_BIASED)

#if defined(LG_HAS_PANELS)
PANELS_FROM_ROWS(q2_k, times_16_narrow_min)
PANELS_FROM_ROWS(q3_k, times_16_narrow)
PANELS_SUPER(q4_k, 8, times_32_lifted_min)
PANELS_SUPER(q5_k, 0, times_32_min)
PANELS_SUPER(q6_k, 32, times_16)
#endif
