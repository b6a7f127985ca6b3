/* Several products of the same activations in one run of the pool. */
#include <stdlib.h>

#include "lg_products.h"
#include "lg_weights.h"

enum { FORMS = LG_SUPER + 1 }; /* of activations, by family */

/* Pieces [first, first + pieces) of the run belong to this product. */
typedef struct {
    lg_weight weight;
    const lg_row *x;
    float **y; /* [tokens] */
    int64_t rows, chunk, first;
} one_product;

typedef struct {
    one_product *products;
    lg_acts forms[FORMS];
    float **y;
    lg_scratch scratch;
    int64_t count, tokens, pieces;
} many;

static void many_pieces(void *context, int64_t begin, int64_t end, int worker) {
    const many *s = context;
    void *scratch = lg_scratch_of(&s->scratch, worker);
    int64_t at = 0;
    for (int64_t piece = begin; piece < end; piece++) {
        while (at + 1 < s->count && s->products[at + 1].first <= piece) at++;
        const one_product *p = &s->products[at];
        const int64_t row = (piece - p->first) * p->chunk, left = p->rows - row;
        lg_rows_times(&p->weight, row, left < p->chunk ? left : p->chunk, p->x, s->tokens, p->y, row, scratch);
    }
}

static void many_free(many *s) {
    for (int i = 0; i < FORMS; i++)
        if (s->forms[i].rows) lg_acts_free(&s->forms[i]);
    lg_scratch_free(&s->scratch);
    free(s->products);
    free(s->y);
}

/* Resolve the weights, and lay out the pieces in the order of the products. */
static int plan(many *s, const lg_kernel_set *set, int exact, const lg_product *products, int64_t cols,
                int threads) {
    int64_t bytes = 0;
    for (int64_t i = 0; i < s->count; i++) {
        one_product *p = &s->products[i];
        if (products[i].rows < 1) return LG_BAD_SHAPE;
        const int code = lg_weight_init(&p->weight, set, exact, products[i].type, products[i].w, cols);
        if (code != LG_OK) return code;
        p->rows = products[i].rows;
        p->chunk = lg_chunk_rows(&p->weight, p->rows, threads);
        p->first = s->pieces;
        p->y = s->y + i * s->tokens;
        for (int64_t t = 0; t < s->tokens; t++) p->y[t] = products[i].y + t * p->rows;
        s->pieces += (p->rows + p->chunk - 1) / p->chunk;
        const int64_t needs = lg_scratch_bytes(&p->weight, s->tokens);
        bytes = needs > bytes ? needs : bytes;
    }
    return lg_scratch_init(&s->scratch, bytes, threads);
}

/* Prepare the activations in every form that a weight wants. */
static int prepare(many *s, lg_pool *pool, const lg_kernel_set *set, const float *x, int64_t cols) {
    for (int64_t i = 0; i < s->count; i++) {
        const int family = s->products[i].weight.family;
        lg_acts *form = &s->forms[family];
        if (!form->rows) {
            const int code = lg_acts_init(form, pool, set, family, x, s->tokens, cols);
            if (code != LG_OK) return code;
        }
        s->products[i].x = form->rows;
    }
    return LG_OK;
}

int lg_matmuls(lg_pool *pool, int isa, int exact, const lg_product *products, int64_t count, int64_t cols,
               const float *x, int64_t tokens) {
    const lg_kernel_set *set = lg_kernels_of(isa);
    if (!set) return LG_BAD_ISA;
    if (count < 1 || tokens < 1) return LG_BAD_SHAPE;
    many s = {.count = count, .tokens = tokens};
    s.products = calloc((size_t)count, sizeof *s.products);
    s.y = malloc((size_t)(count * tokens) * sizeof *s.y);
    int code = s.products && s.y ? plan(&s, set, exact, products, cols, lg_pool_threads(pool)) : LG_NO_MEMORY;
    if (code == LG_OK) code = prepare(&s, pool, set, x, cols);
    if (code == LG_OK) lg_pool_run(pool, many_pieces, &s, s.pieces, 1);
    many_free(&s);
    return code;
}
