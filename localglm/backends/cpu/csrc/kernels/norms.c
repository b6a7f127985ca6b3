/* RMSNorm, LayerNorm and the gated norm; sums of section 4 of the arithmetic contract. */
#include "../lg_lanes.h"
#include "../lg_ops.h"

LG_INLINE float inverse_rms(const float *x, int64_t n, float epsilon) {
    return 1.0f / lg_sqrt(lg_dot32(x, x, n) / (float)n + epsilon);
}

void LG_NAME(lg_rms_norm_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_norm_args *a = context;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        const float *x = a->x + row * a->n;
        float *out = a->out + row * a->n;
        lg_f8 inverse = lg_all8(inverse_rms(x, a->n, a->epsilon));
        for (int64_t i = 0; i < a->n; i += 8) {
            int64_t left = a->n - i;
            lg_store8(out + i, (lg_load8(x + i, left) * inverse) * lg_load8(a->weight + i, left), left);
        }
    }
}

void LG_NAME(lg_unit_rms_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_norm_args *a = context;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        const float *x = a->x + row * a->n;
        float *out = a->out + row * a->n;
        lg_f8 inverse = lg_all8(inverse_rms(x, a->n, a->epsilon));
        for (int64_t i = 0; i < a->n; i += 8)
            lg_store8(out + i, lg_load8(x + i, a->n - i) * inverse, a->n - i);
    }
}

void LG_NAME(lg_gated_norm_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_norm_args *a = context;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        const float *x = a->x + row * a->n, *gate = a->gate + row * a->n;
        float *out = a->out + row * a->n;
        lg_f8 inverse = lg_all8(inverse_rms(x, a->n, a->epsilon));
        for (int64_t i = 0; i < a->n; i += 8) {
            int64_t left = a->n - i;
            lg_f8 y = (lg_load8(x + i, left) * inverse) * lg_load8(a->weight + i, left);
            lg_store8(out + i, y * lg_sigmoid8(lg_load8(gate + i, left)), left);
        }
    }
}

/* out is used for the centred row before it is scaled. */
void LG_NAME(lg_layer_norm_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_norm_args *a = context;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        const float *x = a->x + row * a->n;
        float *out = a->out + row * a->n;
        lg_f8 mean = lg_all8(lg_total32(x, a->n) / (float)a->n);
        for (int64_t i = 0; i < a->n; i += 8)
            lg_store8(out + i, lg_load8(x + i, a->n - i) - mean, a->n - i);
        lg_f8 inverse = lg_all8(inverse_rms(out, a->n, a->epsilon));
        for (int64_t i = 0; i < a->n; i += 8) {
            int64_t left = a->n - i;
            lg_f8 unit = lg_load8(out + i, left) * inverse;
            lg_f8 y = lg_fma8(unit, lg_load8(a->weight + i, left), lg_load8(a->bias + i, left));
            lg_store8(out + i, y, left);
        }
    }
}
