/* darwin_slot.h - the thread's word on macOS: a value of the thread library's.
 *
 * Thread-local variables are made there when they are first touched, by a call of malloc.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_OS_DARWIN_SLOT_H
#define PRAIRIE_OS_DARWIN_SLOT_H

#include "../base/attrs.h"

#include <pthread.h>

struct front;

extern PRIVATE const union front_constant front_empty; /* cache/cache.c */

extern PRIVATE pthread_key_t slot_key; /* 0 until the first thread has something to put there */

/* A thread that has put nothing there has the constant front. */
INLINE struct front *thread_word(void)
{
    struct front *front = slot_key != 0 ? pthread_getspecific(slot_key) : NULL;

    return front != NULL ? front : (struct front *)&front_empty;
}

INLINE struct front *thread_word_again(void) { return thread_word(); }
/* Without a key, the constant front stays: the call is served past all caches. */
void thread_front_set(struct front *front);

#endif
