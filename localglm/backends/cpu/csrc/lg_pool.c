/* Worker threads over POSIX threads or the Windows primitives; the rest of the file is the same for both. */
#define _POSIX_C_SOURCE 200809L /* a clock that never goes back */
#include "lg_pool.h"

#include <stdatomic.h>
#include <stdlib.h>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
typedef HANDLE lg_thread;
typedef SRWLOCK lg_mutex;
typedef CONDITION_VARIABLE lg_condition;
#define LG_THREAD_RESULT DWORD WINAPI
static void mutex_init(lg_mutex *m) { InitializeSRWLock(m); }
static void mutex_free(lg_mutex *m) { (void)m; }
static void lock(lg_mutex *m) { AcquireSRWLockExclusive(m); }
static void unlock(lg_mutex *m) { ReleaseSRWLockExclusive(m); }
static void condition_init(lg_condition *c) { InitializeConditionVariable(c); }
static void condition_free(lg_condition *c) { (void)c; }
static void wait_on(lg_condition *c, lg_mutex *m) { SleepConditionVariableSRW(c, m, INFINITE, 0); }
static void wake_all(lg_condition *c) { WakeAllConditionVariable(c); }
static void thread_join(lg_thread t) {
    WaitForSingleObject(t, INFINITE);
    CloseHandle(t);
}
static void give_way(void) { SwitchToThread(); }
static int64_t microseconds(void) {
    LARGE_INTEGER ticks, rate;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&rate);
    return ticks.QuadPart / rate.QuadPart * 1000000 + ticks.QuadPart % rate.QuadPart * 1000000 / rate.QuadPart;
}
#else
#include <pthread.h>
#include <sched.h>
#include <time.h>
typedef pthread_t lg_thread;
typedef pthread_mutex_t lg_mutex;
typedef pthread_cond_t lg_condition;
#define LG_THREAD_RESULT void *
static void mutex_init(lg_mutex *m) { pthread_mutex_init(m, NULL); }
static void mutex_free(lg_mutex *m) { pthread_mutex_destroy(m); }
static void lock(lg_mutex *m) { pthread_mutex_lock(m); }
static void unlock(lg_mutex *m) { pthread_mutex_unlock(m); }
static void condition_init(lg_condition *c) { pthread_cond_init(c, NULL); }
static void condition_free(lg_condition *c) { pthread_cond_destroy(c); }
static void wait_on(lg_condition *c, lg_mutex *m) { pthread_cond_wait(c, m); }
static void wake_all(lg_condition *c) { pthread_cond_broadcast(c); }
static void thread_join(lg_thread t) { pthread_join(t, NULL); }
static void give_way(void) { sched_yield(); }
static int64_t microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
#endif

#if defined(__x86_64__)
#include <immintrin.h>
typedef unsigned int lg_float_mode;
static lg_float_mode float_mode(void) { return _mm_getcsr(); }
static void set_float_mode(lg_float_mode mode) { _mm_setcsr(mode); }
static void pause_briefly(void) { _mm_pause(); }
#define LG_IEEE_MODE 0x1f80u /* exceptions masked, nearest even, no flush to zero */
#elif defined(__aarch64__)
typedef uint64_t lg_float_mode;
static lg_float_mode float_mode(void) {
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}
static void set_float_mode(lg_float_mode mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode)); }
static void pause_briefly(void) { __asm__ volatile("yield"); }
#define LG_IEEE_MODE 0u
#else
#error "the float mode of this processor is not known"
#endif

/* A thread that waits stays awake so long: longer than the gaps between the ops of a token, of which there
 * are hundreds, and far too short to be seen in the idle use of a core. Waking a thread that sleeps costs tens
 * of microseconds. After every few pauses it offers its core to whoever is ready to run. */
enum { AWAKE_MICROSECONDS = 1000, PAUSES = 64 };

typedef struct {
    lg_pool *pool;
    int index;
} lg_worker;

struct lg_pool {
    lg_mutex callers; /* one run at a time */
    lg_mutex state;   /* guards everything below but next */
    lg_condition work, done;
    _Atomic uint64_t epoch; /* counts runs; written under state, polled without it */
    _Atomic int64_t next;   /* first item nobody has taken */
    _Atomic int active;     /* workers inside the current run; written under state */
    int open, stop, threads;
    lg_task task;
    void *context;
    int64_t count, grain;
    lg_worker *workers;
    lg_thread *handles;
};

/* Returns when is_over holds, or after AWAKE_MICROSECONDS. */
static void stay_awake(lg_pool *pool, int (*is_over)(lg_pool *, uint64_t), uint64_t seen) {
    int64_t end = 0;
    while (!is_over(pool, seen)) {
        for (int i = 0; i < PAUSES && !is_over(pool, seen); i++) pause_briefly();
        const int64_t now = microseconds();
        if (end == 0) end = now + AWAKE_MICROSECONDS;
        if (now >= end) return;
        give_way();
    }
}

static int has_new_run(lg_pool *pool, uint64_t seen) {
    return atomic_load_explicit(&pool->epoch, memory_order_relaxed) != seen;
}

static int is_left(lg_pool *pool, uint64_t seen) {
    (void)seen;
    return atomic_load(&pool->active) == 0;
}

static void take_pieces(lg_pool *pool, lg_task task, void *context, int64_t count, int64_t grain, int worker) {
    for (;;) {
        int64_t begin = atomic_fetch_add_explicit(&pool->next, grain, memory_order_relaxed);
        if (begin >= count) return;
        task(context, begin, count - begin < grain ? count : begin + grain, worker);
    }
}

/* Waits for a run after the one seen, or the end. A worker that wakes late finds the run closed and is
 * not waited for: a caller never pays for a thread the system has not scheduled. */
static LG_THREAD_RESULT work_until_stopped(void *argument) {
    lg_worker *self = argument;
    lg_pool *pool = self->pool;
    uint64_t seen = 0;
    set_float_mode(LG_IEEE_MODE);
    for (;;) {
        stay_awake(pool, has_new_run, seen);
        lock(&pool->state);
        while (!pool->stop && atomic_load(&pool->epoch) == seen) wait_on(&pool->work, &pool->state);
        if (pool->stop) break;
        seen = atomic_load(&pool->epoch);
        if (pool->open) {
            atomic_fetch_add(&pool->active, 1);
            lg_task task = pool->task;
            void *context = pool->context;
            int64_t count = pool->count, grain = pool->grain;
            unlock(&pool->state);
            take_pieces(pool, task, context, count, grain, self->index);
            lock(&pool->state);
            if (atomic_fetch_sub(&pool->active, 1) == 1) wake_all(&pool->done);
        }
        unlock(&pool->state);
    }
    unlock(&pool->state);
    return 0;
}

static int thread_start(lg_thread *thread, lg_worker *worker) {
#if defined(_WIN32)
    *thread = CreateThread(NULL, 0, work_until_stopped, worker, 0, NULL);
    return *thread != NULL;
#else
    return pthread_create(thread, NULL, work_until_stopped, worker) == 0;
#endif
}

lg_pool *lg_pool_create(int threads) {
    if (threads < 1) return NULL;
    lg_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    pool->workers = calloc((size_t)threads, sizeof *pool->workers);
    pool->handles = calloc((size_t)threads, sizeof *pool->handles);
    mutex_init(&pool->callers);
    mutex_init(&pool->state);
    condition_init(&pool->work);
    condition_init(&pool->done);
    pool->threads = 1;
    int started = pool->workers && pool->handles;
    for (int i = 1; started && i < threads; i++) {
        pool->workers[i] = (lg_worker){pool, i};
        started = thread_start(&pool->handles[i], &pool->workers[i]);
        if (started) pool->threads++;
    }
    if (started) return pool;
    lg_pool_destroy(pool);
    return NULL;
}

void lg_pool_destroy(lg_pool *pool) {
    if (!pool) return;
    lock(&pool->state);
    pool->stop = 1;
    atomic_fetch_add(&pool->epoch, 1); /* those awake look up */
    wake_all(&pool->work);
    unlock(&pool->state);
    for (int i = 1; i < pool->threads; i++) thread_join(pool->handles[i]);
    condition_free(&pool->done);
    condition_free(&pool->work);
    mutex_free(&pool->state);
    mutex_free(&pool->callers);
    free(pool->handles);
    free(pool->workers);
    free(pool);
}

int lg_pool_threads(const lg_pool *pool) { return pool->threads; }

static void open_run(lg_pool *pool, lg_task task, void *context, int64_t count, int64_t grain) {
    lock(&pool->state);
    pool->task = task;
    pool->context = context;
    pool->count = count;
    pool->grain = grain;
    atomic_store(&pool->next, 0);
    pool->open = 1;
    atomic_fetch_add(&pool->epoch, 1);
    wake_all(&pool->work);
    unlock(&pool->state);
}

static void close_run(lg_pool *pool) {
    lock(&pool->state);
    pool->open = 0;
    unlock(&pool->state);
    stay_awake(pool, is_left, 0);
    lock(&pool->state);
    while (atomic_load(&pool->active) != 0) wait_on(&pool->done, &pool->state);
    unlock(&pool->state);
}

void lg_pool_run(lg_pool *pool, lg_task task, void *context, int64_t count, int64_t grain) {
    if (count <= 0) return;
    if (grain < 1) grain = 1;
    lg_float_mode before = float_mode();
    set_float_mode(LG_IEEE_MODE);
    if (pool->threads == 1 || count <= grain) {
        for (int64_t begin = 0; begin < count; begin += grain)
            task(context, begin, count - begin < grain ? count : begin + grain, 0);
    } else {
        lock(&pool->callers);
        open_run(pool, task, context, count, grain);
        take_pieces(pool, task, context, count, grain, 0);
        close_run(pool);
        unlock(&pool->callers);
    }
    set_float_mode(before);
}
