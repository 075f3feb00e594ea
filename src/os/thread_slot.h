/* thread_slot.h - the one word that each thread has for prairie, and the end of a thread.
 *
 * The word holds a cache, or a constant one that has nothing to give and room for nothing, so that
 * the first call of a thread needs no branch of its own: it finds an empty magazine. One pointer of
 * static thread-local storage is all prairie takes, so it can be loaded late.
 *
 * This is the one place where the kernel calls up: os_thread_end_hook is told when a thread ends.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_OS_THREAD_SLOT_H
#define PRAIRIE_OS_THREAD_SLOT_H

#include "../base/attrs.h"

struct cache;

extern PRIVATE const union cache_constant
    cache_empty; /* cache/cache.c: a thread that has none yet */

extern PRIVATE __thread struct cache *thread_slot __attribute__((tls_model("initial-exec")));

INLINE struct cache *thread_cache(void) { return thread_slot; }
INLINE void thread_cache_set(struct cache *cache) { thread_slot = cache; }

/* Arranges that `hook` runs when this thread ends. May allocate: the thread's cache is already in
 * its slot. False: it could not be arranged. */
bool os_thread_end_hook(void (*hook)(void));

#endif
