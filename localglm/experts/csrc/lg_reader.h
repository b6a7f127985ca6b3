/* Threads that read ranges of files into memory: what is certain before what is guessed. */
#ifndef LG_READER_H
#define LG_READER_H

#include "lg_file.h"

enum { LG_SPANS = 3 };

/* `bytes` at `offset` of `file` go to `to`, of which the first `needed` must be there. Without `to`
 * the bytes are read and thrown away, so that the system's cache holds them. */
typedef struct {
    int64_t file, offset, bytes, needed;
    void *to;
} lg_span;

/* A request that ended: LG_READ_*, the system's error, and the span it concerns. */
typedef struct {
    int64_t id;
    int32_t code, fault, span, reserved;
} lg_ended;

/* Sums since the reader was made; `busy` is time with a read outstanding, `flight` its integral. */
typedef struct {
    int64_t bytes, reads, busy, flight;
    int32_t outstanding, requests;
} lg_account;

typedef struct lg_reader lg_reader;

/* Reads are cut into pieces of `piece` bytes; `align` divides what a short read may go on from. A
 * `read` other than NULL takes the place of the system's. NULL when the system refuses. */
LG_EXPORT lg_reader *lg_reader_create(int threads, int64_t piece, int64_t align, lg_read read);

/* Queue a request of at most LG_SPANS spans under an id that no other outstanding one has; 0 when there
 * is no memory for it. */
LG_EXPORT int lg_reader_submit(lg_reader *reader, int64_t id, const lg_span *spans, int count, int urgent);

/* Make a guess certain. Withdraw: read nothing more of it; it ends with LG_READ_WITHDRAWN. */
LG_EXPORT void lg_reader_promote(lg_reader *reader, int64_t id);
LG_EXPORT void lg_reader_withdraw(lg_reader *reader, int64_t id);

/* Wait up to `limit` nanoseconds until a request has ended; returns how many were written to `ended`. */
LG_EXPORT int lg_reader_wait(lg_reader *reader, int64_t limit, lg_ended *ended, int room);
LG_EXPORT void lg_reader_sum(lg_reader *reader, lg_account *account);

/* Drop what is queued and stop. Threads that do not come back within `limit` nanoseconds are counted
 * and left behind with everything they touch; 0 means that all is freed. */
LG_EXPORT int lg_reader_close(lg_reader *reader, int64_t limit);

#endif
