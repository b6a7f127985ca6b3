/* Each file under kernels/ is compiled once per instruction set, with LG_ISA naming it; LG_NAME makes the
 * symbols distinct. Ids: 0 portable, 1 AVX2 + FMA, 2 NEON. */
#ifndef LG_ISA_H
#define LG_ISA_H

#define LG_JOIN_(a, b) a##_##b
#define LG_JOIN(a, b) LG_JOIN_(a, b)
#define LG_NAME(name) LG_JOIN(name, LG_ISA)

enum { LG_ISA_PORTABLE = 0, LG_ISA_AVX2 = 1, LG_ISA_NEON = 2, LG_ISA_COUNT = 3 };

#endif
