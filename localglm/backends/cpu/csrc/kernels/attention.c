/* Latent attention over chosen cells, in pieces of LG_PIECE ranks. */
#include "../lg_lanes.h"
#include "../lg_ops.h"

/* sum[c] = e[0] rows[0][c] + e[1] rows[1][c] + ..., ranks ascending, for 8 * groups channels from c. */
LG_INLINE void weigh(const float *const *rows, const float *e, int64_t n, float *out, int64_t c, int64_t l,
                     int groups) {
    const int64_t left = groups > 1 ? 8 : l - c; /* several groups are full */
    lg_f8 sum[8];
    for (int g = 0; g < groups; g++) sum[g] = lg_all8(0.0f);
    for (int64_t r = 0; r < n; r++)
        for (int g = 0; g < groups; g++)
            sum[g] = lg_fma8(lg_all8(e[r]), lg_load8(rows[r] + c + 8 * g, left), sum[g]);
    for (int g = 0; g < groups; g++) lg_store8(out + c + 8 * g, sum[g], left);
}

typedef struct {
    float largest, sum;
} running;

/* Weights of one piece in place of its scores. */
static running soften(float *score, int64_t n) {
    running piece = {score[0], 0.0f};
    for (int64_t r = 1; r < n; r++) piece.largest = score[r] > piece.largest ? score[r] : piece.largest;
    for (int64_t r = 0; r < n; r += 8)
        lg_store8(score + r, lg_exp8(lg_load8(score + r, n - r) - lg_all8(piece.largest)), n - r);
    piece.sum = lg_total32(score, n);
    return piece;
}

static void merge(running *all, float *acc, running piece, const float *part, int64_t l) {
    float largest = piece.largest > all->largest ? piece.largest : all->largest;
    float f = lg_exp(all->largest - largest), g = lg_exp(piece.largest - largest);
    all->sum = lg_fma(g, piece.sum, f * all->sum);
    all->largest = largest;
    for (int64_t c = 0; c < l; c += 8) {
        lg_f8 kept = lg_all8(f) * lg_load8(acc + c, l - c);
        lg_store8(acc + c, lg_fma8(lg_all8(g), lg_load8(part + c, l - c), kept), l - c);
    }
}

static void attend_piece(const lg_attend_args *a, const float *query, const float *const *rows, int64_t n,
                         int is_first, running *all, float *acc, float *part) {
    float score[LG_PIECE + 8];
    float *out = is_first ? acc : part;
    int64_t c = 0;
    for (int64_t r = 0; r < n; r += 8)
        lg_store8(score + r, lg_dots8(query, rows + r, a->l) * lg_all8(a->scale), 8);
    running piece = soften(score, n);
    for (; c + 64 <= a->l; c += 64) weigh(rows, score, n, out, c, a->l, 8);
    for (; c < a->l; c += 8) weigh(rows, score, n, out, c, a->l, 1);
    if (is_first)
        *all = piece;
    else
        merge(all, acc, piece, part, a->l);
}

/* Addresses of the rows of a piece, as float32, padded to a multiple of eight with the last one. */
static void gather(lg_attend_args *a, const int32_t *index, int64_t n, float *scratch, const float **rows) {
    for (int64_t r = 0; r < n; r++) {
        const int is_inside = index[r] >= 0 && index[r] < a->capacity;
        if (!is_inside) __atomic_store_n(&a->status, LG_BAD_INDEX, __ATOMIC_RELAXED);
        rows[r] = lg_cache_row(a->latents, a->half, is_inside ? index[r] : 0, a->l, scratch + r * a->l);
    }
    for (int64_t r = n; r % 8 != 0; r++) rows[r] = rows[n - 1];
}

/* Heads [low, high) of token t. Without cells there is no softmax: the rows become NaN. */
static void attend(lg_attend_args *a, int64_t t, int64_t low, int64_t high, float *part) {
    const int32_t *index = a->index + t * a->columns;
    const float *rows[LG_PIECE + 8];
    running all[LG_MAX_GROUP];
    for (int64_t first = 0; first < a->count[t]; first += LG_PIECE) {
        int64_t n = a->count[t] - first < LG_PIECE ? a->count[t] - first : LG_PIECE;
        gather(a, index + first, n, part + a->l, rows);
        for (int64_t h = low; h < high; h++) {
            const int64_t at = (t * a->h + h) * a->l;
            attend_piece(a, a->query + at, rows, n, first == 0, &all[h - low], a->out + at, part);
        }
    }
    for (int64_t h = low; h < high; h++) {
        float *out = a->out + (t * a->h + h) * a->l;
        lg_f8 sum = lg_all8(a->count[t] > 0 ? all[h - low].sum : lg_from_bits(0x7fc00000u));
        for (int64_t c = 0; c < a->l; c += 8) lg_store8(out + c, lg_load8(out + c, a->l - c) / sum, a->l - c);
    }
}

void LG_NAME(lg_mla_attend_task)(void *context, int64_t begin, int64_t end, int worker) {
    lg_attend_args *a = context;
    float *part = a->scratch + (int64_t)worker * a->scratch_stride;
    for (int64_t item = begin; item < end; item++) {
        const int64_t low = item % a->groups * a->group;
        attend(a, item / a->groups, low, low + a->group < a->h ? low + a->group : a->h, part);
    }
}
