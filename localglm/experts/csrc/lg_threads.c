#define _GNU_SOURCE
#include "lg_threads.h"

#if defined(_WIN32)

void lg_mutex_init(lg_mutex *mutex) { InitializeSRWLock(mutex); }
void lg_mutex_free(lg_mutex *mutex) { (void)mutex; }
void lg_lock(lg_mutex *mutex) { AcquireSRWLockExclusive(mutex); }
void lg_unlock(lg_mutex *mutex) { ReleaseSRWLockExclusive(mutex); }

void lg_condition_init(lg_condition *condition) { InitializeConditionVariable(condition); }
void lg_condition_free(lg_condition *condition) { (void)condition; }
void lg_wake_all(lg_condition *condition) { WakeAllConditionVariable(condition); }
void lg_sleep_on(lg_condition *condition, lg_mutex *mutex) {
    SleepConditionVariableSRW(condition, mutex, INFINITE, 0);
}

void lg_sleep_until(lg_condition *condition, lg_mutex *mutex, int64_t until) {
    int64_t left = until - lg_clock();
    if (left <= 0) return;
    SleepConditionVariableSRW(condition, mutex, (DWORD)(left / 1000000 + 1), 0);
}

int64_t lg_clock(void) {
    LARGE_INTEGER ticks, rate;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&rate);
    int64_t whole = ticks.QuadPart / rate.QuadPart, rest = ticks.QuadPart % rate.QuadPart;
    return whole * 1000000000 + rest * 1000000000 / rate.QuadPart;
}

int lg_thread_start(lg_thread *thread, lg_thread_body body, void *context) {
    *thread = CreateThread(NULL, 0, body, context, 0, NULL);
    return *thread != NULL;
}

void lg_thread_join(lg_thread thread) {
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
}

void lg_thread_detach(lg_thread thread) { CloseHandle(thread); }

#else

#include <signal.h>
#include <time.h>

void lg_mutex_init(lg_mutex *mutex) { pthread_mutex_init(mutex, NULL); }
void lg_mutex_free(lg_mutex *mutex) { pthread_mutex_destroy(mutex); }
void lg_lock(lg_mutex *mutex) { pthread_mutex_lock(mutex); }
void lg_unlock(lg_mutex *mutex) { pthread_mutex_unlock(mutex); }

void lg_condition_init(lg_condition *condition) {
#if defined(__APPLE__)
    pthread_cond_init(condition, NULL);
#else
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
#endif
}

void lg_condition_free(lg_condition *condition) { pthread_cond_destroy(condition); }
void lg_wake_all(lg_condition *condition) { pthread_cond_broadcast(condition); }
void lg_sleep_on(lg_condition *condition, lg_mutex *mutex) { pthread_cond_wait(condition, mutex); }

void lg_sleep_until(lg_condition *condition, lg_mutex *mutex, int64_t until) {
#if defined(__APPLE__)
    int64_t left = until - lg_clock();
    if (left <= 0) return;
    struct timespec span = {left / 1000000000, left % 1000000000};
    pthread_cond_timedwait_relative_np(condition, mutex, &span);
#else
    struct timespec moment = {until / 1000000000, until % 1000000000};
    pthread_cond_timedwait(condition, mutex, &moment);
#endif
}

int64_t lg_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int lg_thread_start(lg_thread *thread, lg_thread_body body, void *context) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int refused = pthread_create(thread, NULL, body, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return refused == 0;
}

void lg_thread_join(lg_thread thread) { pthread_join(thread, NULL); }
void lg_thread_detach(lg_thread thread) { pthread_detach(thread); }

#endif
