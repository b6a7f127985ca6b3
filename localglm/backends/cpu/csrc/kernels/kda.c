/* Linear attention: short convolution, decay, and the gated delta rule. */
#include "../lg_lanes.h"
#include "../lg_ops.h"
#include "../lg_wide.h"

/* Some channels of a convolution: rows of `channels` values, of which those from first on count. */
typedef struct {
    const float *raw;
    float *window;
    const float *filter; /* [taps, width] */
    int64_t channels, taps, first, width;
} conv_strip;

/* Row t of the chunk; rows before it lie in the window. */
LG_INLINE const float *conv_row(conv_strip s, int64_t t) {
    return (t < 0 ? s.window + (t + s.taps - 1) * s.channels : s.raw + t * s.channels) + s.first;
}

LG_INLINE void turn(const float *filters, float *out, int64_t width, int64_t taps) {
    for (int64_t c = 0; c < width; c++)
        for (int64_t tap = 0; tap < taps; tap++) out[tap * width + c] = filters[c * taps + tap];
}

/* out [taps, width] = filters [width, taps] transposed. */
static void turn_filters(const float *filters, float *out, int64_t width, int64_t taps) {
    if (taps == 4)
        turn(filters, out, width, 4);
    else
        turn(filters, out, width, taps);
}

/* Row by row, so that memory is read in order. out rows are step apart. */
static void convolve(conv_strip s, int64_t first, int64_t n, float *out, int64_t step) {
    for (int64_t t = 0; t < n; t++) {
        const float *rows[LG_MAX_TAPS];
        for (int64_t tap = 0; tap < s.taps; tap++) rows[tap] = conv_row(s, first + t - s.taps + 1 + tap);
        for (int64_t c = 0; c < s.width; c += 8) {
            const int64_t left = s.width - c;
            lg_f8 sum = lg_all8(0.0f);
            for (int64_t tap = 0; tap < s.taps; tap++)
                sum = lg_fma8(lg_load8(s.filter + tap * s.width + c, left), lg_load8(rows[tap] + c, left), sum);
            lg_store8(out + t * step + c, lg_silu8(sum), left);
        }
    }
}

/* Ascending, so that a chunk shorter than the window reads rows not yet overwritten. */
static void keep_window(conv_strip s, int64_t tokens) {
    for (int64_t i = 0; i < s.taps - 1; i++) {
        const float *row = conv_row(s, tokens - s.taps + 1 + i);
        memmove(s.window + i * s.channels + s.first, row, (size_t)s.width * sizeof *row);
    }
}

void LG_NAME(lg_short_conv_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_conv_args *a = context;
    (void)worker;
    for (int64_t first = begin * LG_CONV_BLOCK; first < a->channels && first < end * LG_CONV_BLOCK;
         first += LG_CONV_BLOCK) {
        float filter[LG_MAX_TAPS * LG_CONV_BLOCK];
        const int64_t left = a->channels - first, width = left < LG_CONV_BLOCK ? left : LG_CONV_BLOCK;
        const conv_strip s = {a->raw, a->window, filter, a->channels, a->taps, first, width};
        turn_filters(a->filters + first * a->taps, filter, width, a->taps);
        convolve(s, 0, a->tokens, a->out + first, a->channels);
        keep_window(s, a->tokens);
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

/* Query, key and value of one head from the first token of a block on; rows of each are a step apart. */
typedef struct {
    const float *query, *key, *value;
    int64_t k_step, v_step;
} head_rows;

typedef struct {
    float *query, *key, *decay; /* [LG_KDA_BLOCK, k] of one head */
    float *strip;               /* [k, 4 * WIDE] */
} kda_block;

static void prepare(const lg_kda_args *a, int64_t head, int64_t first, int64_t n, head_rows r, kda_block b) {
    const int64_t k = a->k;
    const float width = 1.0f / lg_sqrt((float)k);
    for (int64_t t = 0; t < n; t++) {
        const float *query = r.query + t * r.k_step, *key = r.key + t * r.k_step;
        const float *decay = a->decay + ((first + t) * a->h + head) * k;
        lg_f8 q_inverse = lg_all8(1.0f / lg_sqrt(lg_dot32(query, query, k) + 1e-6f));
        lg_f8 k_inverse = lg_all8(1.0f / lg_sqrt(lg_dot32(key, key, k) + 1e-6f));
        for (int64_t c = 0; c < k; c += 8) {
            int64_t left = k - c;
            lg_store8(b.query + t * k + c, (lg_load8(query + c, left) * q_inverse) * lg_all8(width), left);
            lg_store8(b.key + t * k + c, lg_load8(key + c, left) * k_inverse, left);
            lg_store8(b.decay + t * k + c, lg_exp8(lg_load8(decay + c, left)), left);
        }
    }
}

/* A strip of WIDE * groups value columns, the first of them v, of one head. */
typedef struct {
    float *state;
    int64_t k, width, left;
} kda_strip;

/* m = m * decay; recalled = sum over k of key and m. */
LG_INLINE void decay_and_recall(kda_strip s, const float *decay, const float *key, lg_wide *recalled,
                                int groups) {
    for (int g = 0; g < groups; g++) recalled[g] = wide_all(0.0f);
    for (int64_t c = 0; c < s.k; c++)
        for (int g = 0; g < groups; g++) {
            float *cell = s.state + c * s.width + WIDE * g;
            const lg_wide m = wide_times(wide_load(cell, s.left), wide_all(decay[c]));
            wide_store(cell, m, s.left);
            recalled[g] = wide_fma(wide_all(key[c]), m, recalled[g]);
        }
}

/* m = m + key delta; out = sum over k of query and m. With a next token, its decay_and_recall follows on
 * each m while it is in a register. */
LG_INLINE void write_and_read(kda_strip s, kda_block b, int64_t t, int has_next, const lg_wide *delta,
                              lg_wide *out, lg_wide *recalled, int groups) {
    const float *query = b.query + t * s.k, *key = b.key + t * s.k;
    const float *decay = b.decay + (t + has_next) * s.k, *next_key = b.key + (t + has_next) * s.k;
    for (int g = 0; g < groups; g++) out[g] = recalled[g] = wide_all(0.0f);
    for (int64_t c = 0; c < s.k; c++)
        for (int g = 0; g < groups; g++) {
            float *cell = s.state + c * s.width + WIDE * g;
            lg_wide m = wide_fma(wide_all(key[c]), delta[g], wide_load(cell, s.left));
            out[g] = wide_fma(wide_all(query[c]), m, out[g]);
            if (has_next) {
                m = wide_times(m, wide_all(decay[c]));
                recalled[g] = wide_fma(wide_all(next_key[c]), m, recalled[g]);
            }
            wide_store(cell, m, s.left);
        }
}

/* Advance a strip by n tokens. Sums over k ascend by fma from +0, one chain per value column, so they
 * know nothing of chunks or of the columns beside them. */
LG_INLINE void advance(const lg_kda_args *a, int64_t head, int64_t first, int64_t n, head_rows r, kda_block b,
                       kda_strip s, int64_t v, int groups) {
    const int64_t left = s.left;
    lg_wide recalled[8], delta[8], out[8];
    decay_and_recall(s, b.decay, b.key, recalled, groups);
    for (int64_t t = 0; t < n; t++) {
        const int64_t row = (first + t) * a->h + head;
        for (int g = 0; g < groups; g++) {
            const lg_wide value = wide_load(r.value + t * r.v_step + v + WIDE * g, left);
            delta[g] = wide_times(wide_all(a->beta[row]), wide_minus(value, recalled[g]));
        }
        if (t + 1 < n)
            write_and_read(s, b, t, 1, delta, out, recalled, groups);
        else
            write_and_read(s, b, t, 0, delta, out, recalled, groups);
        for (int g = 0; g < groups; g++) wide_store(a->out + row * a->v + v + WIDE * g, out[g], left);
    }
}

enum { STRIP = 4 * WIDE };

static void move_strip(const float *from, int64_t from_step, float *to, int64_t to_step, int64_t k) {
    for (int64_t c = 0; c < k; c++)
        for (int g = 0; g < STRIP; g += WIDE)
            wide_store(to + c * to_step + g, wide_load(from + c * from_step + g, WIDE), WIDE);
}

/* Rows of a strip lie a power of two apart and crowd into a few sets of the cache; for several tokens they are
 * brought together first. */
static void advance_head(const lg_kda_args *a, int64_t head, int64_t first, int64_t n, head_rows r, kda_block b) {
    float *state = a->state + head * a->k * a->v;
    int64_t v = 0;
    prepare(a, head, first, n, r, b);
    for (; n == 1 && v + 2 * STRIP <= a->v; v += 2 * STRIP) {
        const kda_strip s = {state + v, a->k, a->v, WIDE};
        advance(a, head, first, n, r, b, s, v, 8);
    }
    for (; v + STRIP <= a->v; v += STRIP) {
        const kda_strip s = {b.strip, a->k, STRIP, WIDE};
        move_strip(state + v, a->v, b.strip, STRIP, a->k);
        advance(a, head, first, n, r, b, s, v, 4);
        move_strip(b.strip, STRIP, state + v, a->v, a->k);
    }
    for (; v < a->v; v += WIDE) {
        const kda_strip s = {state + v, a->k, a->v, a->v - v};
        advance(a, head, first, n, r, b, s, v, 1);
    }
}

LG_INLINE int64_t block_tokens(int64_t left) { return left < LG_KDA_BLOCK ? left : LG_KDA_BLOCK; }

void LG_NAME(lg_kda_scan_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_kda_args *a = context;
    const int64_t part = LG_KDA_BLOCK * a->k;
    float *scratch = a->scratch + (int64_t)worker * LG_KDA_SCRATCH * a->k;
    const kda_block b = {scratch, scratch + part, scratch + 2 * part, scratch + 3 * part};
    for (int64_t head = begin; head < end; head++)
        for (int64_t first = 0; first < a->tokens; first += LG_KDA_BLOCK) {
            const int64_t at = first * a->h + head;
            const head_rows r = {a->query + at * a->k, a->key + at * a->k, a->value + at * a->v, a->h * a->k,
                                 a->h * a->v};
            advance_head(a, head, first, block_tokens(a->tokens - first), r, b);
        }
}

/* What the convolutions of a block give lies in scratch and is used at once. */
void LG_NAME(lg_conv_scan_task)(void *context, int64_t begin, int64_t end, int worker) {
    const lg_conv_scan_args *a = context;
    const lg_kda_args *scan = &a->scan;
    const int64_t k = scan->k, v = scan->v, part = LG_KDA_BLOCK * k, width[3] = {k, k, v};
    float *scratch = scan->scratch + (int64_t)worker * a->scratch_stride;
    const kda_block b = {scratch, scratch + part, scratch + 2 * part, scratch + 3 * part};
    float *rest = scratch + LG_KDA_SCRATCH * k, *rows[3] = {rest, rest + part, rest + 2 * part};
    float *filter = rows[2] + LG_KDA_BLOCK * v;
    float *filters[3] = {filter, filter + a->taps * k, filter + 2 * a->taps * k};
    const head_rows r = {rows[0], rows[1], rows[2], k, v};
    for (int64_t head = begin; head < end; head++) {
        conv_strip s[3];
        for (int i = 0; i < 3; i++) {
            s[i] = (conv_strip){a->raw[i], a->window[i], filters[i], scan->h * width[i], a->taps, head * width[i],
                                width[i]};
            turn_filters(a->filters[i] + head * width[i] * a->taps, filters[i], width[i], a->taps);
        }
        for (int64_t first = 0; first < scan->tokens; first += LG_KDA_BLOCK) {
            const int64_t n = block_tokens(scan->tokens - first);
            for (int i = 0; i < 3; i++) convolve(s[i], first, n, rows[i], width[i]);
            advance_head(scan, head, first, n, r, b);
        }
        for (int i = 0; i < 3; i++) keep_window(s[i], scan->tokens);
    }
}
