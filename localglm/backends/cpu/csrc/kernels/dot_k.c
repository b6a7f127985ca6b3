/* Products and decoding of the K types. */
#include "dot_k_unpack.h"
#include "dot_super.h"

SUPER_TYPE(q2_k, 84, 1.0f, 1)
SUPER_TYPE(q3_k, 110, 1.0f, 0)
SUPER_TYPE(q4_k, 144, 1.0f, 1)
SUPER_TYPE(q5_k, 176, 1.0f, 1)
SUPER_TYPE(q6_k, 210, 1.0f, 0)
