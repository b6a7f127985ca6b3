/* Calls functions of the CPU library for a test that runs elsewhere: `runner ISA` reads calls from the standard
 * input and answers on the standard output, `runner` prints the best instruction set of this processor.
 *
 * A call is the name (32 bytes), its letters as in localglm/backends/cpu/library.py (32 bytes), then for each letter
 * 8 bytes: i and l an integer, f a double, p the size of a buffer, whose bytes follow; 0 is NULL. The answer is the
 * function's code (8 bytes), then every buffer. Numbers have the byte order of both machines, little endian.
 *
 * All functions are called through one type. Both calling conventions in use (AAPCS64, System V x86-64) pass
 * integers and floats apart, integers in 8-byte places, so that arguments a function does not have do no harm. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lg_isa.h"
#include "lg_pool.h"

enum { LETTERS = 32, PLACES = 16 };

typedef int (*any_fn)(void *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                      int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, float, float);

#define FUNCTIONS(_)                                                                                        \
    _(lg_embed) _(lg_matmul) _(lg_head_matmul) _(lg_quantise) _(lg_swiglu) _(lg_add) _(lg_sigmoid_all)      \
    _(lg_rms_norm) _(lg_layer_norm) _(lg_gated_norm) _(lg_store_half) _(lg_combine) _(lg_route)             \
    _(lg_hyper_pre) _(lg_hyper_post) _(lg_stream_mean) _(lg_short_conv) _(lg_kda_decay) _(lg_kda_scan)      \
    _(lg_pool_keys) _(lg_indexer_scores) _(lg_mla_attend)

#define DECLARE(name) extern int name();
#define NAME_AND_ADDRESS(name) {#name, (any_fn)name},

#pragma clang diagnostic ignored "-Wdeprecated-non-prototype"
#pragma clang diagnostic ignored "-Wstrict-prototypes"
#pragma clang diagnostic ignored "-Wcast-function-type"
FUNCTIONS(DECLARE)
static const struct {
    const char *name;
    any_fn call;
} table[] = {FUNCTIONS(NAME_AND_ADDRESS)};

typedef struct {
    char name[LETTERS], letters[LETTERS];
    int64_t place[PLACES], bytes[PLACES]; /* bytes of the buffers, 0 for other arguments */
    float f[2];
    int places, floats;
} call_request;

static void give_up(const char *why) {
    fprintf(stderr, "runner: %s\n", why);
    exit(2);
}

static void take(void *to, size_t bytes) {
    if (fread(to, 1, bytes, stdin) != bytes) give_up("the input ends inside a call");
}

static void put(const void *from, size_t bytes) {
    if (fwrite(from, 1, bytes, stdout) != bytes) give_up("the output cannot be written");
}

static void take_buffer(call_request *r, int64_t bytes) {
    void *memory = NULL;
    if (bytes > 0 && !(memory = malloc((size_t)bytes))) give_up("out of memory");
    if (bytes > 0) take(memory, (size_t)bytes);
    r->bytes[r->places] = bytes;
    r->place[r->places++] = (int64_t)(intptr_t)memory;
}

static void take_argument(call_request *r, char letter) {
    int64_t value;
    double number;
    if (r->places == PLACES - 1 || r->floats == 2) give_up("too many arguments");
    if (letter == 'f') {
        take(&number, 8);
        r->f[r->floats++] = (float)number;
        return;
    }
    take(&value, 8);
    if (letter == 'p') {
        take_buffer(r, value);
        return;
    }
    r->place[r->places++] = value;
}

static int64_t answer_of(const call_request *r, lg_pool *pool, int isa) {
    const int64_t *a = r->place;
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (strcmp(table[k].name, r->name) == 0)
            return table[k].call(pool, isa, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
                                 a[11], a[12], a[13], r->f[0], r->f[1]);
    give_up(r->name);
    return 0;
}

int main(int count, char **words) {
    if (count < 2) {
        printf("%d\n", lg_isa_best());
        return 0;
    }
    lg_pool *pool = lg_pool_create(2);
    static call_request r;
    if (!pool) give_up("no threads");
    while (fread(r.name, 1, LETTERS, stdin) == LETTERS) {
        take(r.letters, LETTERS);
        r.places = r.floats = 0;
        memset(r.bytes, 0, sizeof r.bytes);
        for (const char *letter = r.letters; *letter; letter++) take_argument(&r, *letter);
        int64_t code = answer_of(&r, pool, atoi(words[1]));
        put(&code, 8);
        for (int k = 0; k < r.places; k++) {
            if (r.bytes[k] == 0) continue;
            put((void *)(intptr_t)r.place[k], (size_t)r.bytes[k]);
            free((void *)(intptr_t)r.place[k]);
        }
    }
    lg_pool_destroy(pool);
    return 0;
}
