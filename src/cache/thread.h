/* thread.h - the caches of all threads: how a thread gets one, and how it leaves it.
 *
 * Owns the list of caches in use, the ones waiting for a new thread, and the cache that threads share
 * when they are past their end: thread-local destructors may still allocate and free after ours ran.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_THREAD_H
#define PRAIRIE_CACHE_THREAD_H

#include "cache.h"

/* Called once, before any thread has a cache. */
void threads_start(void);
/* Gives the calling thread a cache. NULL: no memory. */
struct cache *thread_attach(void);

INLINE bool cache_is_gone(const struct cache *cache)
{
    return cache == (const struct cache *)&cache_gone;
}
INLINE bool cache_is_constant(const struct cache *cache)
{
    return cache == (const struct cache *)&cache_empty || cache_is_gone(cache);
}

/* A block for a thread past its end, and the way back; slow, and never cached. */
void *stray_take(unsigned class_index);
void stray_put(unsigned class_index, void *block);

/* Gives back what the calling thread's magazines hold. */
void thread_flush(void);

/* For fork and for walks. */
void threads_each_lock(void (*visit)(struct lock *lock));
/* In the child of a fork, where the other threads are not. */
void threads_forget_others(void);

/* Calls `visit` for each cache, under the list's lock. Owners may be changing them. */
void threads_visit(void (*visit)(const struct cache *cache, void *context), void *context);

#endif
