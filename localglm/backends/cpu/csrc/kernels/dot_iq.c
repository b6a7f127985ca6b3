/* Products and decoding of the grid types. */
#include "dot_iq_unpack.h"
#include "dot_super.h"
#if defined(__AVX2__)
#include "dot_iq_avx2.h"
#endif

SUPER_TYPE(iq1_s, 50, 0.125f, LG_BIASED)
SUPER_TYPE(iq1_m, 56, 0.125f, LG_BIASED)
SUPER_TYPE(iq2_xxs, 66, 0.125f, LG_SIGNED)
SUPER_TYPE(iq2_xs, 74, 0.125f, LG_SIGNED)
SUPER_TYPE(iq2_s, 82, 0.125f, LG_SIGNED)
SUPER_TYPE(iq3_xxs, 98, 0.25f, LG_SIGNED)
SUPER_TYPE(iq3_s, 110, 1.0f, LG_SIGNED)
SUPER_TYPE(iq4_xs, 136, 1.0f, LG_SIGNED)
