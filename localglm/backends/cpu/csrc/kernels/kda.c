/* Linear attention: short convolution, decay, and the gated delta rule. */
#include "../lg_lanes.h"
#include "../lg_ops.h"

/* Row t of the chunk; rows before it lie in the window. */
LG_INLINE const float *conv_row(const lg_conv_args *a, int64_t t) {
    return t < 0 ? a->window + (t + a->taps - 1) * a->channels : a->raw + t * a->channels;
}

void LG_NAME(lg_short_conv_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_conv_args *a = context;
    const int64_t taps = a->taps, channels = a->channels;
    (void)worker;
    for (int64_t c = begin * LG_CONV_BLOCK; c < channels && c < end * LG_CONV_BLOCK; c += 8) {
        const int64_t left = channels - c;
        lg_f8 filter[LG_MAX_TAPS] = {{0}};
        for (int64_t tap = 0; tap < taps; tap++)
            for (int64_t j = 0; j < left && j < 8; j++) filter[tap][j] = a->filters[(c + j) * taps + tap];
        for (int64_t t = 0; t < a->tokens; t++) {
            lg_f8 sum = lg_all8(0.0f);
            for (int64_t tap = 0; tap < taps; tap++)
                sum = lg_fma8(filter[tap], lg_load8(conv_row(a, t - taps + 1 + tap) + c, left), sum);
            lg_store8(a->out + t * channels + c, lg_silu8(sum), left);
        }
        /* Ascending, so that a chunk shorter than the window reads rows not yet overwritten. */
        for (int64_t i = 0; i < taps - 1; i++) {
            lg_f8 row = lg_load8(conv_row(a, a->tokens - taps + 1 + i) + c, left);
            lg_store8(a->window + i * channels + c, row, left);
        }
    }
}

void LG_NAME(lg_kda_decay_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_decay_args *a = context;
    const int64_t k = a->k, row = a->h * k;
    (void)worker;
    for (int64_t t = begin; t < end; t++)
        for (int64_t h = 0; h < a->h; h++)
            for (int64_t c = 0; c < k; c += 8) {
                int64_t at = h * k + c, left = k - c;
                lg_f8 x = lg_load8(a->raw + t * row + at, left) + lg_load8(a->bias + at, left);
                lg_f8 y = lg_all8(a->lower_bound) * lg_sigmoid8(lg_all8(a->rate[h]) * x);
                lg_store8(a->out + t * row + at, y, left);
            }
}

typedef struct {
    float *query, *key, *decay; /* [LG_KDA_BLOCK, k] of one head */
} kda_block;

static void prepare(const lg_kda_args *a, int64_t head, int64_t first, int64_t n, kda_block b) {
    const int64_t k = a->k;
    const float width = 1.0f / lg_sqrt((float)k);
    for (int64_t t = 0; t < n; t++) {
        const int64_t from = ((first + t) * a->h + head) * k;
        const float *query = a->query + from, *key = a->key + from;
        lg_f8 q_inverse = lg_all8(1.0f / lg_sqrt(lg_dot32(query, query, k) + 1e-6f));
        lg_f8 k_inverse = lg_all8(1.0f / lg_sqrt(lg_dot32(key, key, k) + 1e-6f));
        for (int64_t c = 0; c < k; c += 8) {
            int64_t left = k - c;
            lg_store8(b.query + t * k + c, (lg_load8(query + c, left) * q_inverse) * lg_all8(width), left);
            lg_store8(b.key + t * k + c, lg_load8(key + c, left) * k_inverse, left);
            lg_store8(b.decay + t * k + c, lg_exp8(lg_load8(a->decay + from + c, left)), left);
        }
    }
}

/* A strip of 8 * groups value columns, the first of them v, of one head. */
typedef struct {
    float *state;
    int64_t k, width, left;
} kda_strip;

/* m = m * decay; recalled = sum over k of key and m. */
LG_INLINE void decay_and_recall(kda_strip s, const float *decay, const float *key, lg_f8 *recalled,
                                int groups) {
    for (int g = 0; g < groups; g++) recalled[g] = lg_all8(0.0f);
    for (int64_t c = 0; c < s.k; c++)
        for (int g = 0; g < groups; g++) {
            float *cell = s.state + c * s.width + 8 * g;
            const lg_f8 m = lg_load8(cell, s.left) * lg_all8(decay[c]);
            lg_store8(cell, m, s.left);
            recalled[g] = lg_fma8(lg_all8(key[c]), m, recalled[g]);
        }
}

/* m = m + key delta; out = sum over k of query and m. With a next token, its decay_and_recall follows on
 * each m while it is in a register. */
LG_INLINE void write_and_read(kda_strip s, kda_block b, int64_t t, int has_next, const lg_f8 *delta,
                              lg_f8 *out, lg_f8 *recalled, int groups) {
    const float *query = b.query + t * s.k, *key = b.key + t * s.k;
    const float *decay = b.decay + (t + has_next) * s.k, *next_key = b.key + (t + has_next) * s.k;
    for (int g = 0; g < groups; g++) out[g] = recalled[g] = lg_all8(0.0f);
    for (int64_t c = 0; c < s.k; c++)
        for (int g = 0; g < groups; g++) {
            float *cell = s.state + c * s.width + 8 * g;
            lg_f8 m = lg_fma8(lg_all8(key[c]), delta[g], lg_load8(cell, s.left));
            out[g] = lg_fma8(lg_all8(query[c]), m, out[g]);
            if (has_next) {
                m = m * lg_all8(decay[c]);
                recalled[g] = lg_fma8(lg_all8(next_key[c]), m, recalled[g]);
            }
            lg_store8(cell, m, s.left);
        }
}

/* Advance a strip by n tokens. Sums over k ascend by fma from +0, one chain per value column, so they
 * know nothing of chunks or of the columns beside them. */
LG_INLINE void advance(const lg_kda_args *a, int64_t head, int64_t first, int64_t n, kda_block b, int64_t v,
                       int groups) {
    const int64_t left = groups > 1 ? 8 : a->v - v; /* several groups are full */
    const kda_strip s = {a->state + head * a->k * a->v + v, a->k, a->v, left};
    lg_f8 recalled[8], delta[8], out[8];
    decay_and_recall(s, b.decay, b.key, recalled, groups);
    for (int64_t t = 0; t < n; t++) {
        const int64_t row = (first + t) * a->h + head;
        for (int g = 0; g < groups; g++) {
            const lg_f8 value = lg_load8(a->value + row * a->v + v + 8 * g, left);
            delta[g] = lg_all8(a->beta[row]) * (value - recalled[g]);
        }
        if (t + 1 < n)
            write_and_read(s, b, t, 1, delta, out, recalled, groups);
        else
            write_and_read(s, b, t, 0, delta, out, recalled, groups);
        for (int g = 0; g < groups; g++) lg_store8(a->out + row * a->v + v + 8 * g, out[g], left);
    }
}

void LG_NAME(lg_kda_scan_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_kda_args *a = context;
    const int64_t part = LG_KDA_BLOCK * a->k;
    float *scratch = a->scratch + (int64_t)worker * 3 * part;
    const kda_block b = {scratch, scratch + part, scratch + 2 * part};
    for (int64_t head = begin; head < end; head++)
        for (int64_t first = 0; first < a->tokens; first += LG_KDA_BLOCK) {
            int64_t n = a->tokens - first < LG_KDA_BLOCK ? a->tokens - first : LG_KDA_BLOCK;
            int64_t v = 0;
            prepare(a, head, first, n, b);
            for (; n == 1 && v + 64 <= a->v; v += 64) advance(a, head, first, n, b, v, 8);
            for (; v + 32 <= a->v; v += 32) advance(a, head, first, n, b, v, 4);
            for (; v < a->v; v += 8) advance(a, head, first, n, b, v, 1);
        }
}
