#include "lg_products.h"

#include <stdlib.h>

#include "lg_weights.h"

typedef struct {
    const uint8_t *data;
    const int64_t *ids;
    lg_decode_fn decode;
    int64_t cols, row_bytes;
    float *y;
} embed_task;

static void embed_rows(void *context, int64_t begin, int64_t end, int worker) {
    const embed_task *task = context;
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        task->decode(task->data + task->ids[i] * task->row_bytes, task->cols, task->y + i * task->cols);
}

int lg_embed(lg_pool *pool, int isa, int type, const void *w, int64_t rows, int64_t cols, const int64_t *ids,
             int64_t count, float *y) {
    const lg_kernel_set *set = lg_kernels_of(isa);
    if (!set) return LG_BAD_ISA;
    if (!lg_layout_of(type) || !set->types[type].decode) return LG_BAD_TYPE;
    int64_t row_bytes = lg_row_bytes(type, cols);
    if (row_bytes == 0 || rows < 1 || count < 1) return LG_BAD_SHAPE;
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= rows) return LG_BAD_INDEX;
    embed_task task = {w, ids, set->types[type].decode, cols, row_bytes, y};
    lg_pool_run(pool, embed_rows, &task, count, 4);
    return LG_OK;
}

/* heads matrices of rows each; activation row t * heads + h belongs to head h. */
typedef struct {
    const lg_weight *weight;
    const lg_row *x; /* [heads, tokens] */
    float **y;       /* [heads, tokens] */
    lg_scratch scratch;
    int64_t rows, tokens, chunk, chunks;
} matmul_task;

static void matmul_chunks(void *context, int64_t begin, int64_t end, int worker) {
    const matmul_task *task = context;
    void *scratch = lg_scratch_of(&task->scratch, worker);
    for (int64_t item = begin; item < end; item++) {
        int64_t head = item / task->chunks, row = item % task->chunks * task->chunk;
        int64_t count = task->rows - row < task->chunk ? task->rows - row : task->chunk;
        lg_rows_times(task->weight, head * task->rows + row, count, task->x + head * task->tokens,
                      task->tokens, task->y + head * task->tokens, row, scratch);
    }
}

/* Rows of x and y regrouped by head, so that a head's tokens lie next to each other. */
static int run_heads(lg_pool *pool, const lg_weight *weight, const lg_acts *acts, int64_t heads, int64_t rows,
                     int64_t tokens, float *y) {
    int threads = lg_pool_threads(pool);
    lg_scratch scratch = {NULL, NULL, 0};
    lg_row *x = malloc((size_t)(heads * tokens) * sizeof *x);
    float **out = malloc((size_t)(heads * tokens) * sizeof *out);
    int code = x && out ? lg_scratch_init(&scratch, lg_scratch_bytes(weight, tokens), threads) : LG_NO_MEMORY;
    if (code == LG_OK) {
        for (int64_t h = 0; h < heads; h++)
            for (int64_t t = 0; t < tokens; t++) {
                x[h * tokens + t] = acts->rows[t * heads + h];
                out[h * tokens + t] = y + (t * heads + h) * rows;
            }
        int64_t chunk = lg_chunk_rows(weight, rows, threads), chunks = (rows + chunk - 1) / chunk;
        matmul_task task = {weight, x, out, scratch, rows, tokens, chunk, chunks};
        lg_pool_run(pool, matmul_chunks, &task, heads * chunks, 1);
    }
    lg_scratch_free(&scratch);
    free(out);
    free(x);
    return code;
}

int lg_head_matmul(lg_pool *pool, int isa, int exact, int type, const void *w, int64_t heads, int64_t rows,
                   int64_t cols, const float *x, int64_t tokens, float *y) {
    const lg_kernel_set *set = lg_kernels_of(isa);
    lg_weight weight;
    lg_acts acts;
    if (!set) return LG_BAD_ISA;
    if (heads < 1 || rows < 1 || tokens < 1) return LG_BAD_SHAPE;
    int code = lg_weight_init(&weight, set, exact, type, w, cols);
    if (code != LG_OK) return code;
    code = lg_acts_init(&acts, pool, set, weight.family, x, tokens * heads, cols);
    if (code != LG_OK) return code;
    code = run_heads(pool, &weight, &acts, heads, rows, tokens, y);
    lg_acts_free(&acts);
    return code;
}

int lg_matmul(lg_pool *pool, int isa, int exact, int type, const void *w, int64_t rows, int64_t cols,
              const float *x, int64_t tokens, float *y) {
    return lg_head_matmul(pool, isa, exact, type, w, 1, rows, cols, x, tokens, y);
}

int lg_quantise(lg_pool *pool, int isa, int run, const float *x, int64_t tokens, int64_t cols, int8_t *q,
                float *d) {
    const lg_kernel_set *set = lg_kernels_of(isa);
    lg_acts acts;
    if (!set) return LG_BAD_ISA;
    if (tokens < 1 || cols < 1 || (run != 32 && run != 256)) return LG_BAD_SHAPE;
    int code = lg_acts_init(&acts, pool, set, run == 32 ? LG_RUN32 : LG_SUPER, x, tokens, cols);
    if (code != LG_OK) return code;
    int64_t runs = (cols + run - 1) / run;
    for (int64_t t = 0; t < tokens; t++) {
        memcpy(q + t * cols, acts.rows[t].q, (size_t)cols);
        memcpy(d + t * runs, acts.rows[t].d, (size_t)runs * sizeof *d);
    }
    lg_acts_free(&acts);
    return LG_OK;
}
