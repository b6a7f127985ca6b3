/* Pooled indexer: keys of pools and their scores. Sums over slots and heads ascend. */
#include "../lg_lanes.h"
#include "../lg_ops.h"
#include "../lg_wide.h"

void LG_NAME(lg_pool_keys_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_pool_keys_args *a = context;
    const int64_t n = a->i;
    (void)worker;
    for (int64_t p = begin; p < end; p++) {
        const float *keys = a->keys + p * a->pool * n, *gates = a->gates + p * a->pool * n;
        for (int64_t c = 0; c < n; c += 8) {
            const int64_t left = n - c;
            lg_f8 largest = lg_load8(gates + c, left) + lg_load8(a->slot_bias + c, left);
            for (int64_t s = 1; s < a->pool; s++) {
                lg_f8 x = lg_load8(gates + s * n + c, left) + lg_load8(a->slot_bias + s * n + c, left);
                largest = lg_pick8((lg_i8)(x > largest), x, largest);
            }
            lg_f8 sum = lg_all8(0.0f), key = lg_all8(0.0f);
            for (int64_t s = 0; s < a->pool; s++) {
                lg_f8 x = lg_load8(gates + s * n + c, left) + lg_load8(a->slot_bias + s * n + c, left);
                lg_f8 e = lg_exp8(x - largest);
                sum = sum + e;
                key = lg_fma8(e, lg_load8(keys + s * n + c, left), key);
            }
            lg_store8(a->out + p * n + c, key / sum, left);
        }
    }
}

/* sum + weight * relu(dot); a NaN stays. */
LG_INLINE lg_f8 add_head(lg_f8 sum, float weight, lg_f8 dot) {
    dot = lg_pick8((lg_i8)(dot < lg_all8(0.0f)), lg_all8(0.0f), dot);
    return lg_fma8(lg_all8(weight), dot, sum);
}

/* Scores of eight pools of one token; heads two by two. */
LG_INLINE lg_f8 score8(const lg_scores_args *a, int64_t t, const float *const *rows) {
    const float *query = a->query + t * a->g * a->i, *weight = a->head_weight + t * a->g;
    lg_f8 sum = lg_all8(0.0f), dot[2];
    for (int64_t g = 0; g < a->g; g += 2) {
        const int is_last = g + 1 == a->g;
        lg_wide_dots8(query + g * a->i, query + (is_last ? g : g + 1) * a->i, rows, a->i, dot);
        sum = add_head(sum, weight[g], dot[0]);
        if (!is_last) sum = add_head(sum, weight[g + 1], dot[1]);
    }
    return sum * lg_all8(1.0f / lg_sqrt((float)(a->i * a->g)));
}

void LG_NAME(lg_indexer_scores_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_scores_args *a = context;
    float *room = a->scratch + (int64_t)worker * 8 * a->i;
    for (int64_t item = begin; item < end; item++) {
        const int64_t t = item / a->blocks, first = item % a->blocks * LG_SCORE_BLOCK;
        const int64_t complete = (a->first_position + t + 1) / a->pool;
        const int64_t last = first + LG_SCORE_BLOCK < a->columns ? first + LG_SCORE_BLOCK : a->columns;
        float *out = a->out + t * a->columns;
        int64_t p = first;
        for (; p < last && p < complete; p += 8) {
            const int64_t n = (last < complete ? last : complete) - p;
            const float *rows[8];
            for (int64_t r = 0; r < 8; r++)
                rows[r] = lg_cache_row(a->pools, a->half, p + (r < n ? r : n - 1), a->i, room + r * a->i);
            lg_store8(out + p, score8(a, t, rows), n);
        }
        for (p = first > complete ? first : complete; p < last; p++) out[p] = lg_from_bits(0xff800000u);
    }
}
