/* The choice of cells. Integer work: one build serves every instruction set. */
#include <string.h>

#include "lg_math.h"
#include "lg_ops.h"

typedef struct {
    const float *scores;
    int32_t *index, *count;
    uint32_t *scratch;
    int64_t columns, width, first_position, pool, kept;
    int select_tail, status;
} select_args;

/* Unsigned integers in the order of the scores; -0 and +0 are one value. Returns 0 when a score is NaN. */
static int order_keys(const float *scores, int64_t n, uint32_t *keys) {
    int is_ordered = 1;
    for (int64_t p = 0; p < n; p++) {
        uint32_t u = lg_bits(scores[p] + 0.0f);
        is_ordered &= scores[p] == scores[p];
        keys[p] = (u & 0x80000000u) ? ~u : u | 0x80000000u;
    }
    return is_ordered;
}

/* The rank-th largest key (rank >= 1), found byte by byte from the top; *above becomes the number of
 * larger keys. */
static uint32_t nth_largest(const uint32_t *keys, int64_t n, int64_t rank, int64_t *above) {
    uint32_t value = 0, known = 0;
    *above = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        int64_t tally[256] = {0};
        uint32_t digit = 255;
        for (int64_t p = 0; p < n; p++)
            if ((keys[p] & known) == value) tally[(keys[p] >> shift) & 255]++;
        while (*above + tally[digit] < rank) *above += tally[digit--];
        value |= digit << shift;
        known |= 255u << shift;
    }
    return value;
}

static int32_t *put_pool(int32_t *to, int64_t p, int64_t pool) {
    for (int64_t s = 0; s < pool; s++) *to++ = (int32_t)(p * pool + s);
    return to;
}

static int32_t *put_best(const select_args *a, const uint32_t *keys, int64_t complete, int32_t *to) {
    int64_t above;
    const uint32_t cut = nth_largest(keys, complete, a->kept, &above);
    int64_t equal = a->kept - above; /* of those at the cut, the first ones */
    for (int64_t p = 0; p < complete; p++)
        if (keys[p] > cut || (keys[p] == cut && equal-- > 0)) to = put_pool(to, p, a->pool);
    return to;
}

static void select_task(void *context, int64_t begin, int64_t end, int worker) {
    select_args *a = context;
    uint32_t *keys = a->scratch + (int64_t)worker * a->columns;
    for (int64_t t = begin; t < end; t++) {
        const int64_t seen = a->first_position + t + 1, complete = seen / a->pool;
        int32_t *row = a->index + t * a->width, *to = row;
        if (!order_keys(a->scores + t * a->columns, complete, keys))
            __atomic_store_n(&a->status, LG_NUMERIC, __ATOMIC_RELAXED);
        if (complete <= a->kept)
            for (int64_t p = 0; p < complete; p++) to = put_pool(to, p, a->pool);
        else if (a->kept > 0)
            to = put_best(a, keys, complete, to);
        for (int64_t m = complete * a->pool; a->select_tail && m < seen; m++) *to++ = (int32_t)m;
        a->count[t] = (int32_t)(to - row);
        memset(to, 0, (size_t)(a->width - (to - row)) * sizeof *to);
    }
}

/* width is the largest count of a token. isa is part of every op; integers need none. */
LG_EXPORT int lg_select_cells(lg_pool *pool, int isa, const float *scores, int32_t *index,
                              int32_t *count, int64_t tokens, int64_t columns, int64_t width, int64_t first_position, int64_t slots,
                              int64_t kept, int select_tail) {
    (void)isa;
    uint32_t *scratch = malloc(((size_t)lg_pool_threads(pool) * (size_t)columns + 1) * sizeof *scratch);
    if (!scratch) return LG_NO_MEMORY;
    select_args a = {scores, index,          count, scratch, columns,     width,
                     first_position, slots, kept,  select_tail, LG_OK};
    lg_pool_run(pool, select_task, &a, tokens, 1);
    free(scratch);
    return a.status;
}
