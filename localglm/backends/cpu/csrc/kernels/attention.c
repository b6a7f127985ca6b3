/* Latent attention over chosen cells, in pieces of LG_PIECE ranks. Heads are worked on two by two, so that
 * a cell is read once for both; a head without a partner is its own and computed twice. */
#include "../lg_lanes.h"
#include "../lg_ops.h"
#include "../lg_wide.h"

typedef struct {
    const float *rows[LG_PIECE + 8];
    int64_t n, l;
} piece_rows;

/* One head: its query, the running result, and scratch for the weights of a piece. */
typedef struct {
    const float *query;
    float *acc, *part, largest, sum;
    float score[LG_PIECE + 8];
} head_state;

/* part[c] = e[0] rows[0][c] + e[1] rows[1][c] + ..., ranks ascending, for WIDE * groups channels from c. */
LG_INLINE void weigh(const piece_rows *p, head_state *a, head_state *b, int64_t c, int groups) {
    const int64_t left = groups > 1 ? WIDE : p->l - c; /* several groups are full */
    lg_wide sum[2][4];
    for (int g = 0; g < groups; g++) sum[0][g] = sum[1][g] = wide_all(0.0f);
    for (int64_t r = 0; r < p->n; r++) {
        const lg_wide x = wide_all(a->score[r]), y = wide_all(b->score[r]);
        for (int g = 0; g < groups; g++) {
            const lg_wide row = wide_load(p->rows[r] + c + WIDE * g, left);
            sum[0][g] = wide_fma(x, row, sum[0][g]);
            sum[1][g] = wide_fma(y, row, sum[1][g]);
        }
    }
    for (int g = 0; g < groups; g++) {
        wide_store(a->part + c + WIDE * g, sum[0][g], left);
        wide_store(b->part + c + WIDE * g, sum[1][g], left);
    }
}

/* Turn the n scores of a piece into weights; returns their sum. */
static float soften(float *score, int64_t n, float *largest) {
    *largest = score[0];
    for (int64_t r = 1; r < n; r++) *largest = score[r] > *largest ? score[r] : *largest;
    for (int64_t r = 0; r < n; r += 8)
        lg_store8(score + r, lg_exp8(lg_load8(score + r, n - r) - lg_all8(*largest)), n - r);
    return lg_total32(score, n);
}

/* Add the piece in part to the running result. */
static void merge(head_state *h, float largest, float sum, int64_t l, int is_first) {
    if (is_first) {
        memcpy(h->acc, h->part, (size_t)l * sizeof *h->acc);
        h->largest = largest;
        h->sum = sum;
        return;
    }
    const float top = largest > h->largest ? largest : h->largest;
    const float f = lg_exp(h->largest - top), g = lg_exp(largest - top);
    h->sum = lg_fma(g, sum, f * h->sum);
    h->largest = top;
    for (int64_t c = 0; c < l; c += 8) {
        const lg_f8 kept = lg_all8(f) * lg_load8(h->acc + c, l - c);
        lg_store8(h->acc + c, lg_fma8(lg_all8(g), lg_load8(h->part + c, l - c), kept), l - c);
    }
}

static void attend_piece(const piece_rows *p, head_state *a, head_state *b, float scale, int is_first) {
    float largest_a, largest_b;
    lg_f8 dots[2];
    int64_t c = 0;
    for (int64_t r = 0; r < p->n; r += 8) {
        lg_wide_dots8(a->query, b->query, p->rows + r, p->l, dots);
        lg_store8(a->score + r, dots[0] * lg_all8(scale), 8);
        lg_store8(b->score + r, dots[1] * lg_all8(scale), 8);
    }
    const float sum_a = soften(a->score, p->n, &largest_a), sum_b = soften(b->score, p->n, &largest_b);
    for (; c + 4 * WIDE <= p->l; c += 4 * WIDE) weigh(p, a, b, c, 4);
    for (; c < p->l; c += WIDE) weigh(p, a, b, c, 1);
    merge(a, largest_a, sum_a, p->l, is_first);
    merge(b, largest_b, sum_b, p->l, is_first);
}

/* Addresses of the rows of a piece, as float32, padded to a multiple of eight with the last one. */
static void gather(lg_attend_args *a, const int32_t *index, piece_rows *p, float *scratch) {
    for (int64_t r = 0; r < p->n; r++) {
        const int is_inside = index[r] >= 0 && index[r] < a->capacity;
        if (!is_inside) __atomic_store_n(&a->status, LG_BAD_INDEX, __ATOMIC_RELAXED);
        p->rows[r] = lg_cache_row(a->latents, a->half, is_inside ? index[r] : 0, a->l, scratch + r * a->l);
    }
    for (int64_t r = p->n; r % 8 != 0; r++) p->rows[r] = p->rows[p->n - 1];
}

/* Heads [low, low + count) of token t. Without cells there is no softmax: the rows become NaN. */
static void attend(lg_attend_args *a, int64_t t, int64_t low, int64_t count, float *scratch) {
    const int64_t cells = a->count[t], l = a->l;
    head_state heads[LG_MAX_GROUP + 1];
    piece_rows p = {.l = l};
    for (int64_t h = 0; h < count; h++) {
        const int64_t at = (t * a->h + low + h) * l;
        heads[h].query = a->query + at;
        heads[h].acc = a->out + at;
        heads[h].part = scratch + (h % 2) * l;
        heads[h].sum = lg_from_bits(0x7fc00000u);
    }
    if (count % 2) { /* the partner of the last head works on the spare rows */
        heads[count] = heads[count - 1];
        heads[count].acc = scratch + 2 * l;
        heads[count].part = scratch + l;
    }
    for (int64_t first = 0; first < cells; first += LG_PIECE) {
        p.n = cells - first < LG_PIECE ? cells - first : LG_PIECE;
        gather(a, a->index + t * a->columns + first, &p, scratch + 3 * l);
        for (int64_t h = 0; h < count; h += 2)
            attend_piece(&p, &heads[h], &heads[h + 1], a->scale, first == 0);
    }
    for (int64_t h = 0; h < count; h++)
        for (int64_t c = 0; c < l; c += 8) {
            const lg_f8 sum = lg_all8(heads[h].sum);
            lg_store8(heads[h].acc + c, lg_load8(heads[h].acc + c, l - c) / sum, l - c);
        }
}

void LG_NAME(lg_mla_attend_task)(void *context, int64_t begin, int64_t end, int worker) {
    lg_attend_args *a = context;
    float *scratch = a->scratch + (int64_t)worker * a->scratch_stride;
    for (int64_t item = begin; item < end; item++) {
        const int64_t low = item % a->groups * a->group, left = a->h - low;
        attend(a, item / a->groups, low, left < a->group ? left : a->group, scratch);
    }
}
