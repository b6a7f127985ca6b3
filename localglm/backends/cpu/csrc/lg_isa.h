/* Each file under kernels/ is compiled once per instruction set, with LG_ISA naming it; LG_NAME makes the
 * symbols distinct. Ids: 0 portable, 1 AVX2 + FMA, 2 NEON with dot products, 3 AVX-512 with VNNI, VBMI and GFNI. */
#ifndef LG_ISA_H
#define LG_ISA_H

#define LG_JOIN_(a, b) a##_##b
#define LG_JOIN(a, b) LG_JOIN_(a, b)
#define LG_NAME(name) LG_JOIN(name, LG_ISA)

#if defined(_WIN32)
#define LG_EXPORT __declspec(dllexport)
#else
#define LG_EXPORT __attribute__((visibility("default")))
#endif

enum { LG_ISA_PORTABLE = 0, LG_ISA_AVX2 = 1, LG_ISA_NEON = 2, LG_ISA_AVX512 = 3, LG_ISA_COUNT = 4 };

/* 1 when this library holds kernels for the instruction set and this processor can run them. */
LG_EXPORT int lg_isa_supported(int isa);
/* The fastest supported instruction set. */
LG_EXPORT int lg_isa_best(void);

#endif
