/* elf_slot.c - the thread's word as a thread-local variable, and the end of the thread.
 * SPDX-License-Identifier: MIT
 */
#include "os.h"
#include "thread_slot.h"

#include <pthread.h>

__thread struct front *thread_slot __attribute__((tls_model("initial-exec"))) =
    (struct front *)&front_empty;
SLOT_SEEN_INLINE(prairie_front_v1);

/* Atomic, and one more than the key; 0: not made yet. */
static uint64_t end_key_next;
static void (*end_hook)(void) SEALED;

static void end_key_destructor(void *unused)
{
    (void)unused;
    RELAXED_LOAD(end_hook)();
}

/* Two threads may make one at once; the later one is given up. pthread_once would wake the waiters
 * that it never has by a system call. */
static bool make_end_key(void)
{
    uint64_t none = 0;
    pthread_key_t key;

    if (pthread_key_create(&key, end_key_destructor) != 0) return false;
    if (!__atomic_compare_exchange_n(&end_key_next, &none, (uint64_t)key + 1, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        (void)pthread_key_delete(key);
    return true;
}

bool os_thread_end_hook(void (*hook)(void))
{
    if (RELAXED_LOAD(end_hook) != hook)
        RELAXED_STORE(end_hook, hook); /* the same for all threads */
    if (RELAXED_LOAD(end_key_next) == 0 && !make_end_key()) return false;
    return pthread_setspecific((pthread_key_t)(RELAXED_LOAD(end_key_next) - 1), (void *)1) == 0;
}
