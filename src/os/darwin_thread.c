/* darwin_thread.c - the thread's word, its end, and the background thread on macOS.
 * SPDX-License-Identifier: MIT
 */
#include "os.h"
#include "thread_slot.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

/* ---- the thread's word ---- */

pthread_key_t slot_key;
static void (*end_hook)(void);

/* The system has cleared the word. Our hook wants to find it, and leaves another one there, for
 * which this is called again: a few times, then the word stays. */
static void slot_destructor(void *front)
{
    (void)pthread_setspecific(slot_key, front);
    if (RELAXED_LOAD(end_hook) != NULL) RELAXED_LOAD(end_hook)();
}

static bool make_slot_key(void)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    pthread_key_t key = 0;
    bool ready;

    (void)pthread_mutex_lock(&making);
    if (slot_key == 0 && pthread_key_create(&key, slot_destructor) == 0)
        __atomic_store_n(&slot_key, key, __ATOMIC_RELEASE);
    ready = slot_key != 0;
    (void)pthread_mutex_unlock(&making);
    return ready;
}

void thread_front_set(struct front *front)
{
    if (slot_key != 0 || make_slot_key()) (void)pthread_setspecific(slot_key, front);
}

bool os_thread_end_hook(void (*hook)(void))
{
    RELAXED_STORE(end_hook, hook); /* the same for all threads */
    return slot_key != 0;
}

/* ---- the background thread ---- */

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

    while (__atomic_load_n(&thread_alive, __ATOMIC_ACQUIRE) != 0 && os_now_ms() < end) {
        struct timespec moment = { 0, 1000000 };

        (void)nanosleep(&moment, NULL);
    }
}

void os_threads_forget(void) { thread_alive = 0; }

bool os_has_one_thread(void) { return pthread_is_threaded_np() == 0; }

/* ---- forks ---- */

/* The system's library takes the locks of every zone around a fork (darwin/zone.c). */
void os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    (void)before;
    (void)in_parent;
    (void)in_child;
}

void os_fork_begins(void) {}
void os_fork_ends_in_parent(void) {}
void os_fork_ends_in_child(void) {}

void (*os_next_symbol(const char *name))(void)
{
    union {
        void *object;
        void (*function)(void);
    } symbol = { dlsym(RTLD_NEXT, name) };

    return symbol.function;
}
