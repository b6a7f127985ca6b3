#include "lg_weights.h"

#include <stdlib.h>

#include "lg_isa.h"
#include "lg_products.h"

const lg_kernel_set *lg_kernels_of(int isa) {
    if (!lg_isa_supported(isa)) return NULL;
    switch (isa) {
#if defined(__x86_64__)
    case LG_ISA_AVX2: return &lg_kernels_avx2;
    case LG_ISA_AVX512: return &lg_kernels_avx512;
#elif defined(__aarch64__)
    case LG_ISA_NEON: return &lg_kernels_neon;
#endif
    default: return &lg_kernels_portable;
    }
}

int lg_weight_init(lg_weight *weight, const lg_kernel_set *set, int exact, int type, const void *data,
                   int64_t cols) {
    const lg_layout *layout = lg_layout_of(type);
    if (!layout || !set->types[type].one) return LG_BAD_TYPE;
    int64_t row_bytes = lg_row_bytes(type, cols);
    if (row_bytes == 0) return LG_BAD_SHAPE;
    int decodes = exact && layout->family != LG_FLOAT;
    *weight = (lg_weight){
        .data = data,
        .kernel = &set->types[decodes ? LG_F32 : type],
        .decode = decodes ? set->types[type].decode : NULL,
        .cols = cols,
        .row_bytes = row_bytes,
        .family = decodes ? LG_FLOAT : layout->family,
    };
    return LG_OK;
}

typedef struct {
    lg_quantise_fn quantise;
    lg_weave_fn weave; /* or NULL */
    const lg_row *rows;
    int64_t cols;
} quantise_task;

static void quantise_rows(void *context, int64_t begin, int64_t end, int worker) {
    const quantise_task *task = context;
    (void)worker;
    for (int64_t t = begin; t < end; t++) {
        const lg_row *row = &task->rows[t];
        task->quantise(row->x, task->cols, (int8_t *)row->q, (float *)row->d, (int16_t *)row->sum);
        if (task->weave)
            task->weave(row->q, row->sum, (task->cols + 255) / 256, (int8_t *)row->woven, (int16_t *)row->woven_sum);
    }
}

/* Whole cache lines for the kernels. */
static int8_t *next_line(const void *p) { return (int8_t *)(((uintptr_t)p + 63) / 64 * 64); }

int lg_acts_init(lg_acts *acts, lg_pool *pool, const lg_kernel_set *set, int family, const float *x,
                 int64_t count, int64_t cols) {
    int64_t padded = (cols + 255) / 256 * 256;
    int64_t scales = family == LG_RUN32 ? padded / 32 : padded / 256;
    int64_t sums = family == LG_RUN32 ? padded / 32 : padded / 16;
    int quantised = family != LG_FLOAT;
    acts->rows = malloc((size_t)count * sizeof *acts->rows);
    int64_t woven = family == LG_SUPER && set->weave ? (padded + 511) / 512 * 512 : 0;
    size_t bytes = (size_t)count * (size_t)(padded + 4 * scales + 2 * sums + woven + woven / 8) + 128;
    acts->memory = quantised ? malloc(bytes) : NULL;
    if (!acts->rows || (quantised && !acts->memory)) {
        lg_acts_free(acts);
        return LG_NO_MEMORY;
    }
    if (!quantised) {
        for (int64_t t = 0; t < count; t++) acts->rows[t] = (lg_row){.x = x + t * cols};
        return LG_OK;
    }
    int8_t *q = next_line(acts->memory);
    float *d = (float *)(q + count * padded);
    int16_t *sum = (int16_t *)(d + count * scales);
    int8_t *other = next_line(sum + count * sums);
    int16_t *other_sum = (int16_t *)(other + count * woven);
    for (int64_t t = 0; t < count; t++)
        acts->rows[t] = (lg_row){x + t * cols,   q + t * padded,    d + t * scales,
                                 sum + t * sums, other + t * woven, other_sum + t * (woven / 16)};
    quantise_task task = {family == LG_RUN32 ? set->run32 : set->super, woven ? set->weave : NULL, acts->rows, cols};
    lg_pool_run(pool, quantise_rows, &task, count, 1 + 16384 / padded);
    return LG_OK;
}

void lg_acts_free(lg_acts *acts) {
    free(acts->rows);
    free(acts->memory);
    *acts = (lg_acts){NULL, NULL};
}

static int takes_panels(const lg_weight *weight, int64_t tokens) {
    return !weight->decode && weight->kernel->panel && tokens >= weight->kernel->panel_from;
}

int64_t lg_scratch_bytes(const lg_weight *weight, int64_t tokens) {
    if (weight->decode) return weight->cols * (int64_t)sizeof(float);
    if (!takes_panels(weight, tokens)) return 0;
    int bytes = weight->kernel->panel_bytes;
    return bytes ? bytes : lg_panel_bytes(weight->cols);
}

int lg_scratch_init(lg_scratch *scratch, int64_t bytes, int threads) {
    *scratch = (lg_scratch){NULL, NULL, (bytes + 63) / 64 * 64};
    if (bytes == 0) return LG_OK;
    scratch->memory = malloc((size_t)scratch->bytes * (size_t)threads + 64);
    scratch->first = (uint8_t *)(((uintptr_t)scratch->memory + 63) / 64 * 64);
    return scratch->memory ? LG_OK : LG_NO_MEMORY;
}

void lg_scratch_free(lg_scratch *scratch) {
    free(scratch->memory);
    *scratch = (lg_scratch){NULL, NULL, 0};
}

void *lg_scratch_of(const lg_scratch *scratch, int worker) {
    return scratch->bytes ? scratch->first + scratch->bytes * worker : NULL;
}

/* How many of the tokens left one pass takes, and with which kernel; a pass may have fewer than it serves. */
typedef struct {
    lg_dot_fn dot;
    int serves, takes;
} token_pass;

static token_pass next_pass(const lg_kernel *kernel, int64_t left) {
    if (left == 2 && kernel->two) return (token_pass){kernel->two, 2, 2};
    if (left >= 8) return (token_pass){kernel->eight, 8, 8};
    if (left == 1) return (token_pass){kernel->one, 1, 1};
    return (token_pass){kernel->four, 4, left < 4 ? (int)left : 4};
}

/* A pass goes over all rows before the next one, so that its activations stay in cache. Places it has to
 * spare repeat its last token. */
static void stored_rows_times(const lg_kernel *kernel, const uint8_t *row, int64_t row_bytes, int64_t cols,
                              int64_t count, const lg_row *x, int64_t tokens, float *const *y, int64_t at) {
    for (int64_t t = 0; t < tokens;) {
        token_pass pass = next_pass(kernel, tokens - t);
        lg_row places[LG_TILE];
        float out[LG_TILE];
        for (int k = 0; k < pass.serves; k++) places[k] = x[t + (k < pass.takes ? k : pass.takes - 1)];
        for (int64_t r = 0; r < count; r++) {
            pass.dot(row + r * row_bytes, cols, places, out);
            for (int k = 0; k < pass.takes; k++) y[t + k][at + r] = out[k];
        }
        t += pass.takes;
    }
}

void lg_rows_times(const lg_weight *weight, int64_t first, int64_t count, const lg_row *x, int64_t tokens,
                   float *const *y, int64_t at, void *scratch) {
    const uint8_t *row = weight->data + first * weight->row_bytes;
    if (takes_panels(weight, tokens)) {
        weight->kernel->panel(row, weight->row_bytes, count, weight->cols, x, tokens, y, at, scratch);
        return;
    }
    if (!weight->decode) {
        stored_rows_times(weight->kernel, row, weight->row_bytes, weight->cols, count, x, tokens, y, at);
        return;
    }
    for (int64_t r = 0; r < count; r++) {
        weight->decode(row + r * weight->row_bytes, weight->cols, scratch);
        stored_rows_times(weight->kernel, (const uint8_t *)scratch, 0, weight->cols, 1, x, tokens, y, at + r);
    }
}

enum { PANEL_ROWS = 16 }; /* a multiple of the rows of every panel */

int64_t lg_chunk_rows(const lg_weight *weight, int64_t rows, int threads) {
    int64_t by_bytes = 262144 / weight->row_bytes, by_threads = rows / (4 * (int64_t)threads);
    int64_t chunk = by_bytes < by_threads ? by_bytes : by_threads;
    if (weight->kernel->panel) chunk = (chunk + PANEL_ROWS / 2) / PANEL_ROWS * PANEL_ROWS;
    if (chunk < 1) chunk = weight->kernel->panel ? PANEL_ROWS : 1;
    return chunk;
}
