/* Routed experts: (token, rank) pairs are grouped by expert, so that an expert's rows are read once. */
#include <stdlib.h>

#include "lg_ops.h"
#include "lg_weights.h"

/* Pairs of the experts present, in the order of their experts. Group g holds places start[g] .. start[g + 1). */
typedef struct {
    int64_t groups, places;
    int64_t *expert; /* [groups] */
    int64_t *start;  /* [groups + 1] */
    int64_t *pair;   /* [pairs] place -> token * used + rank */
} pair_groups;

static void groups_free(pair_groups *g) {
    free(g->expert);
    free(g->start);
    free(g->pair);
}

static int groups_init(pair_groups *g, const int32_t *ids, int64_t pairs, int64_t experts,
                       const void *const *present) {
    for (int64_t i = 0; i < pairs; i++)
        if (ids[i] < 0 || ids[i] >= experts) return LG_BAD_INDEX;
    int64_t *next = calloc((size_t)experts + 1, sizeof *next);
    int64_t most = pairs < experts ? pairs : experts;
    g->groups = 0;
    g->expert = malloc((size_t)most * sizeof *g->expert);
    g->start = malloc((size_t)(most + 1) * sizeof *g->start);
    g->pair = malloc((size_t)pairs * sizeof *g->pair);
    if (!next || !g->expert || !g->start || !g->pair) {
        free(next);
        groups_free(g);
        return LG_NO_MEMORY;
    }
    for (int64_t i = 0; i < pairs; i++)
        if (present[ids[i]]) next[ids[i] + 1]++;
    for (int64_t e = 0; e < experts; e++) {
        if (next[e + 1] > 0) {
            g->expert[g->groups] = e;
            g->start[g->groups++] = next[e];
        }
        next[e + 1] += next[e];
    }
    g->places = next[experts];
    g->start[g->groups] = g->places;
    for (int64_t i = 0; i < pairs; i++)
        if (present[ids[i]]) g->pair[next[ids[i]]++] = i;
    free(next);
    return LG_OK;
}

/* One product of every group: rows of weight, which lies at data[expert], for x[places] into y[places]. */
typedef struct {
    const lg_weight *weight;
    const void *const *data;
    const lg_row *x;
    float **y;
} side;

typedef struct {
    const pair_groups *groups;
    side first, second; /* second.weight NULL in the down pass */
    lg_scratch scratch;
    int64_t rows, chunk, chunks;
    lg_task activate; /* SwiGLU of this instruction set */
    int has_limit;
    float limit;
} experts_task;

static lg_weight weight_of(const side *s, int64_t expert) {
    lg_weight weight = *s->weight;
    weight.data = s->data[expert];
    return weight;
}

static void expert_chunks(void *context, int64_t begin, int64_t end, int worker) {
    const experts_task *task = context;
    void *scratch = lg_scratch_of(&task->scratch, worker);
    for (int64_t item = begin; item < end; item++) {
        int64_t g = item / task->chunks, row = item % task->chunks * task->chunk;
        int64_t count = task->rows - row < task->chunk ? task->rows - row : task->chunk;
        int64_t place = task->groups->start[g], places = task->groups->start[g + 1] - place;
        int64_t expert = task->groups->expert[g];
        lg_weight weight = weight_of(&task->first, expert);
        float *const *y = task->first.y + place;
        lg_rows_times(&weight, row, count, task->first.x + place, places, y, row, scratch);
        if (!task->second.weight) continue;
        weight = weight_of(&task->second, expert);
        float *const *up = task->second.y + place;
        lg_rows_times(&weight, row, count, task->second.x + place, places, up, row, scratch);
        for (int64_t t = 0; t < places; t++) {
            lg_pair_args pair = {y[t] + row, up[t] + row, y[t] + row, task->limit, task->has_limit};
            task->activate(&pair, 0, count, worker);
        }
    }
}

/* Everything one call owns. */
typedef struct {
    lg_weight gate, up, down;
    pair_groups groups;
    lg_acts gate_acts, up_acts, down_acts;
    lg_row *gate_x, *up_x;
    float *hidden, **gate_y, **up_y, **down_y;
    lg_scratch scratch;
} ffn;

static void ffn_free(ffn *s) {
    groups_free(&s->groups);
    lg_acts_free(&s->gate_acts);
    lg_acts_free(&s->up_acts);
    lg_acts_free(&s->down_acts);
    free(s->gate_x);
    free(s->up_x);
    free(s->hidden);
    free(s->gate_y);
    free(s->up_y);
    free(s->down_y);
    lg_scratch_free(&s->scratch);
}

static int ffn_weights(ffn *s, const lg_kernel_set *set, int exact, const lg_experts *e) {
    int code = lg_weight_init(&s->gate, set, exact, e->gate_type, NULL, e->d);
    if (code == LG_OK) code = lg_weight_init(&s->up, set, exact, e->up_type, NULL, e->d);
    if (code == LG_OK) code = lg_weight_init(&s->down, set, exact, e->down_type, NULL, e->f);
    return code;
}

static int ffn_memory(ffn *s, const lg_experts *e, int64_t pairs, int threads) {
    int64_t bytes = 0;
    const lg_weight *sides[3] = {&s->gate, &s->up, &s->down};
    for (int i = 0; i < 3; i++) {
        int64_t needs = lg_scratch_bytes(sides[i], pairs); /* no expert meets more tokens than there are pairs */
        bytes = needs > bytes ? needs : bytes;
    }
    s->gate_x = malloc((size_t)pairs * sizeof *s->gate_x);
    s->up_x = malloc((size_t)pairs * sizeof *s->up_x);
    s->gate_y = malloc((size_t)pairs * sizeof *s->gate_y);
    s->up_y = malloc((size_t)pairs * sizeof *s->up_y);
    s->down_y = malloc((size_t)pairs * sizeof *s->down_y);
    s->hidden = malloc((size_t)(2 * pairs * e->f) * sizeof *s->hidden);
    int have = s->gate_x && s->up_x && s->gate_y && s->up_y && s->down_y && s->hidden;
    return have ? lg_scratch_init(&s->scratch, bytes, threads) : LG_NO_MEMORY;
}

/* Place p reads token pair / used and writes row pair of y. */
static void ffn_places(ffn *s, const lg_experts *e, int64_t used, float *y) {
    const lg_row *up_rows = s->up_acts.rows ? s->up_acts.rows : s->gate_acts.rows;
    for (int64_t p = 0; p < s->groups.places; p++) {
        int64_t pair = s->groups.pair[p];
        s->gate_x[p] = s->gate_acts.rows[pair / used];
        s->up_x[p] = up_rows[pair / used];
        s->gate_y[p] = s->hidden + p * e->f;
        s->up_y[p] = s->hidden + (s->groups.places + p) * e->f;
        s->down_y[p] = y + pair * e->d;
    }
}

static void run_pass(lg_pool *pool, experts_task task) {
    task.chunk = lg_chunk_rows(task.first.weight, task.rows, lg_pool_threads(pool));
    task.chunks = (task.rows + task.chunk - 1) / task.chunk;
    lg_pool_run(pool, expert_chunks, &task, task.groups->groups * task.chunks, 1);
}

static int ffn_run(ffn *s, lg_pool *pool, int isa, const lg_experts *e, const float *x, int64_t tokens,
                   int64_t used, float *y) {
    const lg_kernel_set *set = lg_kernels_of(isa);
    int64_t places = s->groups.places;
    int code = ffn_memory(s, e, places, lg_pool_threads(pool));
    if (code == LG_OK) code = lg_acts_init(&s->gate_acts, pool, set, s->gate.family, x, tokens, e->d);
    if (code == LG_OK && s->up.family != s->gate.family)
        code = lg_acts_init(&s->up_acts, pool, set, s->up.family, x, tokens, e->d);
    if (code != LG_OK) return code;
    ffn_places(s, e, used, y);
    experts_task task = {
        .groups = &s->groups,
        .first = {&s->gate, e->gate, s->gate_x, s->gate_y},
        .second = {&s->up, e->up, s->up_x, s->up_y},
        .scratch = s->scratch,
        .rows = e->f,
        .activate = LG_TASKS(lg_swiglu_task)[isa],
        .has_limit = e->has_limit,
        .limit = e->limit,
    };
    run_pass(pool, task);
    code = lg_acts_init(&s->down_acts, pool, set, s->down.family, s->hidden, places, e->f);
    if (code != LG_OK) return code;
    task.first = (side){&s->down, e->down, s->down_acts.rows, s->down_y};
    task.second = (side){NULL, NULL, NULL, NULL};
    task.rows = e->d;
    run_pass(pool, task);
    return LG_OK;
}

int lg_expert_ffn(lg_pool *pool, int isa, int exact, const lg_experts *experts, const float *x,
                  const int32_t *ids, int64_t tokens, int64_t used, float *y) {
    const lg_kernel_set *set = lg_kernels_of(isa);
    ffn state = {0};
    if (!set) return LG_BAD_ISA;
    if (tokens < 1 || used < 1 || experts->experts < 1) return LG_BAD_SHAPE;
    int code = ffn_weights(&state, set, exact, experts);
    if (code != LG_OK) return code;
    code = groups_init(&state.groups, ids, tokens * used, experts->experts, experts->gate);
    if (code != LG_OK) return code;
    if (state.groups.places > 0) code = ffn_run(&state, pool, isa, experts, x, tokens, used, y);
    ffn_free(&state);
    return code;
}
