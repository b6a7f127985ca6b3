/* Routing: the choice of experts, their weights, and the sum of their rows. */
#include "../lg_lanes.h"
#include "../lg_ops.h"

/* Largest first; an equal value at a higher index never wins. Chosen entries leave the race as NaN,
 * which compares below everything; the caller has excluded other NaN. */
static void choose(float *merit, int64_t e, int64_t x, int32_t *ids) {
    for (int64_t rank = 0; rank < x; rank++) {
        int64_t best = -1;
        for (int64_t i = 0; i < e; i++)
            if (merit[i] == merit[i] && (best < 0 || merit[i] > merit[best])) best = i;
        ids[rank] = (int32_t)best;
        merit[best] = lg_from_bits(0x7fc00000u);
    }
}

static int route_token(const lg_route_args *a, int64_t t, float *share, float *merit) {
    int32_t *ids = a->ids + t * a->x;
    float sum = 0.0f;
    for (int64_t i = 0; i < a->e; i += 8) {
        lg_f8 p = lg_sigmoid8(lg_load8(a->logits + t * a->e + i, a->e - i));
        lg_store8(share + i, p, a->e - i);
        lg_store8(merit + i, p + lg_load8(a->bias + i, a->e - i), a->e - i);
    }
    for (int64_t i = 0; i < a->e; i++)
        if (merit[i] != merit[i]) return LG_NUMERIC;
    if (a->forced)
        memcpy(ids, a->forced + t * a->x, (size_t)a->x * sizeof *ids);
    else
        choose(merit, a->e, a->x, ids);
    for (int64_t r = 0; r < a->x; r++) {
        if (ids[r] < 0 || ids[r] >= a->e) return LG_BAD_INDEX;
        sum = sum + share[ids[r]];
    }
    for (int64_t r = 0; r < a->x; r++)
        a->weights[t * a->x + r] = (a->scale * share[ids[r]]) / (sum + 1e-20f);
    return LG_OK;
}

void LG_NAME(lg_route_task)(void *context, int64_t begin, int64_t end, int worker) {
    lg_route_args *a = context;
    float *share = a->scratch + (int64_t)worker * 2 * a->e;
    for (int64_t t = begin; t < end; t++) {
        int status = route_token(a, t, share, share + a->e);
        if (status != LG_OK) __atomic_store_n(&a->status, status, __ATOMIC_RELAXED);
    }
}

void LG_NAME(lg_combine_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_combine_args *a = context;
    const int64_t d = a->d;
    (void)worker;
    for (int64_t t = begin; t < end; t++)
        for (int64_t c = 0; c < d; c += 8) {
            lg_f8 sum = lg_all8(0.0f);
            for (int64_t r = 0; r < a->x; r++) {
                const int64_t row = t * a->x + r;
                sum = lg_fma8(lg_all8(a->weights[row]), lg_load8(a->rows + row * d + c, d - c), sum);
            }
            lg_store8(a->out + t * d + c, sum + lg_load8(a->shared + t * d + c, d - c), d - c);
        }
}
