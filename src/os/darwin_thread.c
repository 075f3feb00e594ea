/* darwin_thread.c - the background thread on macOS.
 * SPDX-License-Identifier: MIT
 */
#include "os.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

static uint32_t thread_alive;
static void *(*thread_body)(void *);

static void *run_thread(void *unused)
{
    (void)thread_body(unused);
    __atomic_store_n(&thread_alive, 0, __ATOMIC_RELEASE);
    return NULL;
}

/* The system's library makes a thread without a block of malloc's: its stack is a mapping. */
bool os_thread_start(void *(*body)(void *))
{
    sigset_t all, before;
    pthread_t thread;
    bool started;
    int saved_errno = errno;

    if (__atomic_load_n(&thread_alive, __ATOMIC_ACQUIRE) != 0) return false;
    thread_body = body;
    RELAXED_STORE(thread_alive, 1u);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&thread, NULL, run_thread, NULL) == 0 && pthread_detach(thread) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!started) RELAXED_STORE(thread_alive, 0u);
    errno = saved_errno;
    return started;
}

void os_thread_wait(uint64_t most_ms)
{
    uint64_t end = os_now_ms() + most_ms;

    while (__atomic_load_n(&thread_alive, __ATOMIC_ACQUIRE) != 0 && os_now_ms() < end)
        os_sleep(&thread_alive, 1, 1);
}

void os_threads_forget(void) { thread_alive = 0; }
uint32_t os_thread_id(void) { return 0; }

bool os_has_one_thread(void) { return pthread_is_threaded_np() == 0; }
