/* Threads, locks, timed waits and a steady clock over POSIX or the Windows primitives. */
#ifndef LG_THREADS_H
#define LG_THREADS_H

#include <stdint.h>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#define LG_EXPORT __declspec(dllexport)
typedef HANDLE lg_thread;
typedef SRWLOCK lg_mutex;
typedef CONDITION_VARIABLE lg_condition;
typedef DWORD lg_thread_result;
#define LG_THREAD_CALL WINAPI
#else
#include <pthread.h>
#define LG_EXPORT __attribute__((visibility("default")))
typedef pthread_t lg_thread;
typedef pthread_mutex_t lg_mutex;
typedef pthread_cond_t lg_condition;
typedef void *lg_thread_result;
#define LG_THREAD_CALL
#endif

typedef lg_thread_result(LG_THREAD_CALL *lg_thread_body)(void *context);

void lg_mutex_init(lg_mutex *mutex);
void lg_mutex_free(lg_mutex *mutex);
void lg_lock(lg_mutex *mutex);
void lg_unlock(lg_mutex *mutex);

void lg_condition_init(lg_condition *condition);
void lg_condition_free(lg_condition *condition);
void lg_wake_all(lg_condition *condition);
void lg_sleep_on(lg_condition *condition, lg_mutex *mutex);

/* Sleep until woken or until the clock shows `until`; it may wake early. */
void lg_sleep_until(lg_condition *condition, lg_mutex *mutex, int64_t until);

/* Nanoseconds of a clock that is never set back. */
int64_t lg_clock(void);

/* Start a thread that receives no signals; 0 when the system refuses. */
int lg_thread_start(lg_thread *thread, lg_thread_body body, void *context);
void lg_thread_join(lg_thread thread);
void lg_thread_detach(lg_thread thread);

#endif
