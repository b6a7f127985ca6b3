/* Which instruction sets this processor runs. Asks the processor itself, so that no run-time library of a
 * particular compiler is needed. */
#include "lg_isa.h"

#if defined(__linux__) && defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__APPLE__) && defined(__aarch64__)
#include <sys/sysctl.h>

/* macOS 11 does not know the name yet; every Mac it runs on has the instructions. */
static int has_dot_products(void) {
    int answer = 1;
    size_t size = sizeof answer;
    sysctlbyname("hw.optional.arm.FEAT_DotProd", &answer, &size, NULL, 0);
    return answer != 0;
}
#endif

#if defined(__x86_64__)
#include <cpuid.h>

/* What the operating system saves, bits of XCR0: 256-bit registers; masks and all of the 512-bit registers. */
enum { SAVES_256 = 0x06, SAVES_512 = 0xe6 };

static int saves_registers(unsigned wanted) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & wanted) == wanted;
}

/* Everything the kernels may use when compiled for x86-64-v3. */
static int has_avx2(void) {
    const unsigned leaf1 = (1u << 12) | (1u << 22) | (1u << 23) | (1u << 27) | (1u << 28) | (1u << 29);
    const unsigned leaf7 = (1u << 3) | (1u << 5) | (1u << 8); /* BMI1, AVX2, BMI2 */
    const unsigned lzcnt = 1u << 5;
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & leaf1) != leaf1 || !saves_registers(SAVES_256)) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & leaf7) != leaf7) return 0;
    return __get_cpuid(0x80000001u, &a, &b, &c, &d) && (c & lzcnt) == lzcnt;
}

/* Everything the kernels may use when compiled for x86-64-v4 with VNNI, VBMI and GFNI. */
static int has_avx512(void) {
    const unsigned leaf7 = (1u << 16) | (1u << 17) | (1u << 28) | (1u << 30) | (1u << 31); /* F, DQ, CD, BW, VL */
    const unsigned tables = (1u << 1) | (1u << 8) | (1u << 11); /* VBMI, GFNI, VNNI */
    unsigned a, b, c, d;
    if (!has_avx2() || !saves_registers(SAVES_512)) return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & leaf7) == leaf7 && (c & tables) == tables;
}

/* Asked once: in a virtual machine each question costs tens of microseconds. */
static int once(_Atomic int *known, int (*ask)(void)) { /* 0 not asked, 1 no, 2 yes */
    int answer = *known;
    if (answer == 0) *known = answer = 1 + ask();
    return answer == 2;
}
#endif

int lg_isa_supported(int isa) {
    if (isa == LG_ISA_PORTABLE) return 1;
#if defined(__x86_64__)
    static _Atomic int avx2, avx512;
    if (isa == LG_ISA_AVX2) return once(&avx2, has_avx2);
    if (isa == LG_ISA_AVX512) return once(&avx512, has_avx512);
#elif defined(__APPLE__)
    if (isa == LG_ISA_NEON) return has_dot_products();
#elif defined(__linux__) && defined(__aarch64__)
    if (isa == LG_ISA_NEON) return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#endif
    return 0;
}

int lg_isa_best(void) {
    for (int isa = LG_ISA_COUNT - 1; isa > LG_ISA_PORTABLE; isa--)
        if (lg_isa_supported(isa)) return isa;
    return LG_ISA_PORTABLE;
}
