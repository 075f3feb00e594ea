/* darwin_slot.c - the thread's word on macOS, and the end of the thread.
 * SPDX-License-Identifier: MIT
 */
#include "os.h"
#include "thread_slot.h"

#include <pthread.h>

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
