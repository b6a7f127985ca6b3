/* Worker threads of one device. The calling thread takes part; workers sleep when idle. */
#ifndef LG_POOL_H
#define LG_POOL_H

#include <stdint.h>

#include "lg_isa.h"

typedef struct lg_pool lg_pool;

/* Work on items [begin, end); worker is 0 for the caller, 1.. for the others (index of scratch memory). */
typedef void (*lg_task)(void *context, int64_t begin, int64_t end, int worker);

/* threads >= 1 counts the caller; NULL when the system refuses. */
LG_EXPORT lg_pool *lg_pool_create(int threads);
LG_EXPORT void lg_pool_destroy(lg_pool *pool);
LG_EXPORT int lg_pool_threads(const lg_pool *pool);

/* Run task over [0, count) in pieces of at most grain items, handed out as workers become free.
 * Returns when all is done. Results must not depend on the cutting. Callers take turns; a task must not
 * call this itself. Tasks compute in IEEE mode: nearest even, subnormals kept; the caller's mode returns. */
LG_EXPORT void lg_pool_run(lg_pool *pool, lg_task task, void *context, int64_t count, int64_t grain);

#endif
