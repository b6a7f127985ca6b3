/* Element-wise ops: SwiGLU, sum, logistic function, rounding to half precision. */
#include "../lg_lanes.h"
#include "../lg_ops.h"

/* The comparisons are written so that a NaN passes through a clamp. */
LG_INLINE lg_f8 at_most(lg_f8 x, lg_f8 limit) { return lg_pick8((lg_i8)(x > limit), limit, x); }
LG_INLINE lg_f8 at_least(lg_f8 x, lg_f8 limit) { return lg_pick8((lg_i8)(x < limit), limit, x); }

void LG_NAME(lg_swiglu_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_pair_args *a = context;
    const lg_f8 limit = lg_all8(a->limit);
    (void)worker;
    for (int64_t i = begin; i < end; i += 8) {
        lg_f8 gate = lg_load8(a->x + i, end - i), up = lg_load8(a->y + i, end - i);
        if (a->has_limit) {
            gate = at_most(gate, limit);
            up = at_least(at_most(up, limit), -limit);
        }
        lg_store8(a->out + i, lg_silu8(gate) * up, end - i);
    }
}

void LG_NAME(lg_add_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_pair_args *a = context;
    (void)worker;
    for (int64_t i = begin; i < end; i += 8)
        lg_store8(a->out + i, lg_load8(a->x + i, end - i) + lg_load8(a->y + i, end - i), end - i);
}

void LG_NAME(lg_sigmoid_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_pair_args *a = context;
    (void)worker;
    for (int64_t i = begin; i < end; i += 8)
        lg_store8(a->out + i, lg_sigmoid8(lg_load8(a->x + i, end - i)), end - i);
}

void LG_NAME(lg_store_half_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_store_args *a = context;
    uint16_t *cache = a->cache;
    (void)worker;
    for (int64_t i = begin * a->n; i < end * a->n; i++) cache[i] = lg_to_half(a->rows[i]);
}
