#define _GNU_SOURCE
#include "lg_reader.h"

#include <stdlib.h>
#include <string.h>

enum { STANDSTILLS = 4 }; /* reads that bring nothing new before the file counts as ended */

typedef struct lg_request lg_request;

struct lg_request {
    lg_request *next;
    int64_t id, begun; /* begun: bytes of the current span that were handed out */
    int count, span, urgent, outstanding;
    int32_t code, fault, wrong;
    lg_span spans[LG_SPANS];
};

typedef struct {
    lg_request *request;
    int span;
    lg_span part;
} lg_piece;

struct lg_reader {
    lg_mutex state; /* guards all below */
    lg_condition work, ended, left;
    lg_read read;
    int64_t piece, align;
    lg_request *queue, *done, **done_end; /* queue: oldest first, until nothing of it is outstanding */
    lg_account sum;
    int64_t counted; /* when the sums were last brought up to date */
    int stop, abandoned, threads, alive;
    int64_t *reading; /* file each thread reads from, or -1 */
    lg_thread *handles;
};

typedef struct {
    lg_reader *reader;
    int index;
    void *scratch; /* a piece that is read to be thrown away */
} lg_member;

static void free_reader(lg_reader *reader) {
    lg_request *lists[2] = {reader->queue, reader->done};
    for (int i = 0; i < 2; i++)
        while (lists[i]) {
            lg_request *next = lists[i]->next;
            free(lists[i]);
            lists[i] = next;
        }
    lg_condition_free(&reader->work);
    lg_condition_free(&reader->ended);
    lg_condition_free(&reader->left);
    lg_mutex_free(&reader->state);
    free(reader->reading);
    free(reader->handles);
    free(reader);
}

/* Bring the sums up to date before the number of outstanding reads changes. */
static void count_time(lg_reader *reader) {
    int64_t now = lg_clock();
    if (reader->sum.outstanding > 0) {
        reader->sum.busy += now - reader->counted;
        reader->sum.flight += (now - reader->counted) * reader->sum.outstanding;
    }
    reader->counted = now;
}

static int is_handed_out(const lg_request *request) { return request->span == request->count; }

static void hand_out_nothing_more(lg_request *request) { request->span = request->count; }

static lg_request *next_request(lg_reader *reader) {
    lg_request *guess = NULL;
    for (lg_request *one = reader->queue; one; one = one->next) {
        if (is_handed_out(one)) continue;
        if (one->urgent) return one;
        if (!guess) guess = one;
    }
    return guess;
}

static int take_piece(lg_reader *reader, lg_piece *piece) {
    lg_request *request = next_request(reader);
    if (!request) return 0;
    lg_span *whole = &request->spans[request->span];
    int64_t begun = request->begun, left = whole->bytes - begun;
    int64_t bytes = left < reader->piece ? left : reader->piece;
    int64_t needed = whole->needed - begun < bytes ? whole->needed - begun : bytes;
    void *to = whole->to ? (char *)whole->to + begun : NULL;
    *piece = (lg_piece){request, request->span, {whole->file, whole->offset + begun, bytes, needed, to}};
    request->outstanding++;
    request->begun += bytes;
    if (request->begun == whole->bytes) {
        request->begun = 0;
        request->span++;
    }
    return 1;
}

/* A direct read can only go on from an aligned place, so the rest of a short one is read again. */
static int read_piece(lg_read read, int64_t align, const lg_span *part, int64_t *got, int32_t *fault) {
    int still = 0;
    *got = 0;
    while (*got < part->needed) {
        int64_t from = *got / align * align;
        int64_t n = read(part->file, (char *)part->to + from, part->bytes - from, part->offset + from, fault);
        if (n < 0 && lg_is_interruption(*fault)) continue;
        if (n < 0) return LG_READ_FAULT;
        if (from + n > *got) {
            *got = from + n;
            still = 0;
        } else if (++still == STANDSTILLS) {
            return LG_READ_END;
        }
    }
    return LG_READ_DONE;
}

static void end_request(lg_reader *reader, lg_request *request) {
    lg_request **at = &reader->queue;
    while (*at != request) at = &(*at)->next;
    *at = request->next;
    request->next = NULL;
    *reader->done_end = request;
    reader->done_end = &request->next;
    reader->sum.requests--;
    lg_wake_all(&reader->ended);
}

static void finish_piece(lg_reader *reader, const lg_piece *piece, int code, int32_t fault, int64_t got) {
    lg_request *request = piece->request;
    count_time(reader);
    reader->sum.outstanding--;
    reader->sum.reads++;
    reader->sum.bytes += got;
    request->outstanding--;
    if (code != LG_READ_DONE && request->code != LG_READ_FAULT && request->code != LG_READ_END) {
        request->code = code;
        request->fault = fault;
        request->wrong = piece->span;
        hand_out_nothing_more(request);
    }
    if (is_handed_out(request) && request->outstanding == 0) end_request(reader, request);
}

static void read_next(lg_reader *reader, int index, lg_piece *piece, void *scratch) {
    count_time(reader);
    reader->sum.outstanding++;
    reader->reading[index] = piece->part.file;
    lg_unlock(&reader->state);
    int32_t fault = 0;
    int64_t got = 0;
    if (!piece->part.to) piece->part.to = scratch;
    int code = read_piece(reader->read, reader->align, &piece->part, &got, &fault);
    lg_lock(&reader->state);
    reader->reading[index] = -1;
    finish_piece(reader, piece, code, fault, got);
}

static lg_thread_result LG_THREAD_CALL read_until_stopped(void *context) {
    lg_member member = *(lg_member *)context;
    lg_reader *reader = member.reader;
    int64_t room = reader->piece;
    lg_piece piece;
    free(context);
    lg_lock(&reader->state);
    while (!reader->stop) {
        if (take_piece(reader, &piece))
            read_next(reader, member.index, &piece, member.scratch);
        else
            lg_sleep_on(&reader->work, &reader->state);
    }
    int is_last = --reader->alive == 0 && reader->abandoned;
    lg_wake_all(&reader->left);
    lg_unlock(&reader->state);
    lg_memory_give(member.scratch, room);
    if (is_last) free_reader(reader);
    return 0;
}

static int start_member(lg_reader *reader) {
    lg_member *member = malloc(sizeof *member);
    void *scratch = lg_memory_take(reader->piece);
    if (!member || !scratch) {
        if (scratch) lg_memory_give(scratch, reader->piece);
        free(member);
        return 0;
    }
    *member = (lg_member){reader, reader->threads, scratch};
    lg_lock(&reader->state);
    int started = lg_thread_start(&reader->handles[reader->threads], read_until_stopped, member);
    reader->threads += started;
    reader->alive += started;
    lg_unlock(&reader->state);
    if (!started) {
        lg_memory_give(scratch, reader->piece);
        free(member);
    }
    return started;
}

lg_reader *lg_reader_create(int threads, int64_t piece, int64_t align, lg_read read) {
    if (threads < 1 || piece < 1 || align < 1 || piece % align) return NULL;
    lg_reader *reader = calloc(1, sizeof *reader);
    if (!reader) return NULL;
    lg_mutex_init(&reader->state);
    lg_condition_init(&reader->work);
    lg_condition_init(&reader->ended);
    lg_condition_init(&reader->left);
    reader->read = read ? read : lg_file_read;
    reader->piece = piece;
    reader->align = align;
    reader->done_end = &reader->done;
    reader->handles = calloc((size_t)threads, sizeof *reader->handles);
    reader->reading = malloc((size_t)threads * sizeof *reader->reading);
    int started = reader->handles && reader->reading;
    for (int i = 0; started && i < threads; i++) {
        reader->reading[i] = -1;
        started = start_member(reader);
    }
    if (started) return reader;
    lg_reader_close(reader, INT64_MAX / 2);
    return NULL;
}

int lg_reader_submit(lg_reader *reader, int64_t id, const lg_span *spans, int count, int urgent) {
    if (count < 1 || count > LG_SPANS) return 0;
    for (int i = 0; i < count; i++)
        if (spans[i].needed < 1 || spans[i].needed > spans[i].bytes) return 0;
    lg_request *request = calloc(1, sizeof *request);
    if (!request) return 0;
    request->id = id;
    request->count = count;
    request->urgent = urgent;
    memcpy(request->spans, spans, (size_t)count * sizeof *spans);
    lg_lock(&reader->state);
    lg_request **at = &reader->queue;
    while (*at) at = &(*at)->next;
    *at = request;
    reader->sum.requests++;
    lg_wake_all(&reader->work);
    lg_unlock(&reader->state);
    return 1;
}

static lg_request *outstanding(lg_reader *reader, int64_t id) {
    lg_request *one = reader->queue;
    while (one && one->id != id) one = one->next;
    return one;
}

void lg_reader_promote(lg_reader *reader, int64_t id) {
    lg_lock(&reader->state);
    lg_request *request = outstanding(reader, id);
    if (request) request->urgent = 1;
    lg_unlock(&reader->state);
}

void lg_reader_withdraw(lg_reader *reader, int64_t id) {
    lg_lock(&reader->state);
    lg_request *request = outstanding(reader, id);
    if (request && !is_handed_out(request)) {
        request->code = LG_READ_WITHDRAWN;
        hand_out_nothing_more(request);
        if (request->outstanding == 0) end_request(reader, request);
    }
    lg_unlock(&reader->state);
}

int lg_reader_wait(lg_reader *reader, int64_t limit, lg_ended *ended, int room) {
    int count = 0;
    lg_lock(&reader->state);
    int64_t until = lg_clock() + limit;
    while (!reader->done && lg_clock() < until) lg_sleep_until(&reader->ended, &reader->state, until);
    while (reader->done && count < room) {
        lg_request *request = reader->done;
        ended[count++] = (lg_ended){request->id, request->code, request->fault, request->wrong, 0};
        reader->done = request->next;
        if (!reader->done) reader->done_end = &reader->done;
        free(request);
    }
    lg_unlock(&reader->state);
    return count;
}

void lg_reader_sum(lg_reader *reader, lg_account *account) {
    lg_lock(&reader->state);
    count_time(reader);
    *account = reader->sum;
    lg_unlock(&reader->state);
}

static void wait_for_members(lg_reader *reader, int64_t limit) {
    int64_t until = lg_clock() + limit;
    while (reader->alive > 0 && lg_clock() < until) lg_sleep_until(&reader->left, &reader->state, until);
}

int lg_reader_close(lg_reader *reader, int64_t limit) {
    lg_lock(&reader->state);
    reader->stop = 1;
    lg_wake_all(&reader->work);
    wait_for_members(reader, limit);
    if (reader->alive > 0) {
        for (int i = 0; i < reader->threads; i++)
            if (reader->reading[i] >= 0) lg_file_cancel(reader->reading[i]);
        wait_for_members(reader, limit);
    }
    int stuck = reader->alive;
    reader->abandoned = stuck > 0;
    for (int i = 0; stuck && i < reader->threads; i++) lg_thread_detach(reader->handles[i]);
    lg_unlock(&reader->state);
    if (stuck) return stuck;
    for (int i = 0; i < reader->threads; i++) lg_thread_join(reader->handles[i]);
    free_reader(reader);
    return 0;
}
