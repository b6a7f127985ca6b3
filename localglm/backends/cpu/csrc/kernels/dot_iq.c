/* Products and decoding of the grid types. */
#include "dot_iq_unpack.h"
#include "dot_super.h"

SUPER_TYPE(iq1_s, 50, 0.125f, 0)
SUPER_TYPE(iq1_m, 56, 0.125f, 0)
SUPER_TYPE(iq2_xxs, 66, 0.125f, 0)
SUPER_TYPE(iq2_xs, 74, 0.125f, 0)
SUPER_TYPE(iq2_s, 82, 0.125f, 0)
SUPER_TYPE(iq3_xxs, 98, 0.25f, 0)
SUPER_TYPE(iq3_s, 110, 1.0f, 0)
SUPER_TYPE(iq4_xs, 136, 1.0f, 0)
