/* Which instruction sets this processor runs. Asks the processor itself, so that no run-time library of a
 * particular compiler is needed. */
#include "lg_isa.h"

#if defined(__linux__) && defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#if defined(__x86_64__)
#include <cpuid.h>

/* The operating system saves the 256-bit registers (bits 1 and 2 of XCR0). */
static int saves_wide_registers(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & 6) == 6;
}

/* Everything the kernels may use when compiled for x86-64-v3. */
static int has_avx2(void) {
    const unsigned leaf1 = (1u << 12) | (1u << 22) | (1u << 23) | (1u << 27) | (1u << 28) | (1u << 29);
    const unsigned leaf7 = (1u << 3) | (1u << 5) | (1u << 8); /* BMI1, AVX2, BMI2 */
    const unsigned lzcnt = 1u << 5;
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & leaf1) != leaf1 || !saves_wide_registers()) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & leaf7) != leaf7) return 0;
    return __get_cpuid(0x80000001u, &a, &b, &c, &d) && (c & lzcnt) == lzcnt;
}

/* Asked once: in a virtual machine each question costs tens of microseconds. */
static int has_avx2_once(void) {
    static _Atomic int known; /* 0 not asked, 1 no, 2 yes */
    int answer = known;
    if (answer == 0) known = answer = 1 + has_avx2();
    return answer == 2;
}
#endif

int lg_isa_supported(int isa) {
    if (isa == LG_ISA_PORTABLE) return 1;
#if defined(__x86_64__)
    if (isa == LG_ISA_AVX2) return has_avx2_once();
#elif defined(__APPLE__)
    if (isa == LG_ISA_NEON) return 1; /* every Apple arm64 processor has the dot-product instructions */
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
