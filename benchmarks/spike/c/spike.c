/* Exported loops of the order spike: matrix-vector, matrix-matrix, plain read, exp. */
#include "matmul.h"

#define SPIKE_EXPORT __attribute__((visibility("default")))

/* Constant formats and orders become separate loops; clang folds the branches on them. */
static void matvec_rows(int format, int order, const uint8_t *w, int64_t rows, int blocks,
                        operand x, const float *scale, float *y) {
    for (int64_t r = 0; r < rows; r++, w += (int64_t)blocks * BYTES[format])
#ifdef __AVX2__
        y[r] = row_avx2(format, order, w, blocks, x, scale);
#else
        y[r] = row_portable(format, order, w, blocks, x, scale);
#endif
}

#define EACH_ORDER(call, format)                                                  \
    switch (order) {                                                              \
    case ORDER_A: call(format, ORDER_A); break;                                   \
    case ORDER_B: call(format, ORDER_B); break;                                   \
    case ORDER_C: call(format, ORDER_C); break;                                   \
    case ORDER_D: call(format, ORDER_D); break;                                   \
    default: call(format, FREE); break;                                           \
    }
#define EACH(call)                                                                \
    if (format == Q8_0) { EACH_ORDER(call, Q8_0) }                                \
    else if (format == Q6_K) { EACH_ORDER(call, Q6_K) }                           \
    else { EACH_ORDER(call, IQ2_XXS) }

SPIKE_EXPORT void spike_matvec(int format, int order, const uint8_t *w, int64_t rows, int64_t cols,
                               const int8_t *q, const float *scale, const int16_t *sums,
                               const uint64_t *tables, float *y) {
    operand x = {q, sums, tables};
    int blocks = (int)(cols / VALUES[format]);
#define CALL(f, o) matvec_rows(f, o, w, rows, blocks, x, scale, y)
    EACH(CALL)
#undef CALL
}

/* scale is [runs, tokens] here; y is [tokens, rows]; tokens is a multiple of eight. */
SPIKE_EXPORT void spike_matmul(int format, int order, const uint8_t *w, int64_t rows, int64_t cols,
                               int64_t tokens, const int8_t *q, const float *scale,
                               const uint64_t *tables, float *y) {
    batch x = {q, scale, tables, tokens, cols};
#define CALL(f, o) matmul_rows(f, o, w, rows, x, y)
    EACH(CALL)
#undef CALL
}

SPIKE_EXPORT uint64_t spike_read(const uint64_t *p, int64_t n) {
    uint64_t a[8] = {0};
    for (int64_t i = 0; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) a[k] += p[i + k];
    return a[0] + a[1] + a[2] + a[3] + a[4] + a[5] + a[6] + a[7];
}

SPIKE_EXPORT void spike_exp(const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = lg_exp(x[i]);
}
