/* cache_list.h - the caches of all threads, by what becomes of them when their threads end.
 *
 *      in use --> abandoned, with its blocks (abandoned.h) --> in use by the next thread
 *      in use or abandoned --> drained, and in no list ------> the same
 *      in use by a thread that sleeps (sleepers.h) --> drained --> the same
 *      drained, and no thread needed it for a while ---------> given back
 *
 * The list, which `first_cache` begins, has those in use and abandoned ones. A thread that begins
 * takes the one that was abandoned last, else one that was drained, else a new one.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_CACHE_LIST_H
#define PRAIRIE_CACHE_CACHE_LIST_H

#include "large_cache.h"

extern PRIVATE struct lock threads_lock;
extern PRIVATE struct cache *first_cache; /* under threads_lock */

/* When the process starts. */
void cache_list_start(void);

/* One that is there for the calling thread: its own that it had already, when it is the first of
 * all, else one that another thread left. NULL: a new one must be made. */
struct cache *cache_list_take(void);
/* A new one is the calling thread's. Under threads_lock. */
void cache_list_add(struct cache *cache);
/* Is the calling thread the first of all? That one keeps its cache as long as the process lives, if
 * need be. */
bool thread_is_first(void);

/* How often this process began as a child. A thread that ends may fork in a signal handler: in the
 * child the number is another one, and neither list nor count knows of the cache. */
extern PRIVATE unsigned forks_to_child; /* atomic */
INLINE bool cache_list_forgot(unsigned forks) { return forks != RELAXED_LOAD(forks_to_child); }

/* The thread of a cache ends, and `forks` is what forks_to_child was when it began to. The cache is
 * abandoned with its blocks; false: it has too many, or enough caches were abandoned. */
bool cache_list_abandon(struct cache *cache, unsigned forks);
/* The same of one that is drained. */
void cache_list_leave(struct cache *cache, unsigned forks);
/* Drains those that abandoned_take_to_drain names, and gives those back that are drained and in no
 * list. False: there were none to drain. */
bool cache_list_drain_abandoned(enum clear_what what);
/* The latter alone, but for a few. CLEAR_UNNEEDED: as many as no thread came down to since the last
 * time. Their pages go to the kernel. No lock is waited for under another. False: there were none.
 */
bool cache_list_give_unneeded(enum clear_what what);
/* Drains one that was taken from its thread. Under threads_lock, which is given meanwhile. Returns
 * the next one in the list. */
struct cache *cache_list_drain_used(struct cache *cache);

/* Has the list no other one? NULL: none at all. Under threads_lock. */
INLINE bool cache_list_is_only(const struct cache *cache)
{
    return first_cache == cache && (cache == NULL || cache->next == NULL);
}
/* The only one makes way for a new one, and those that are drained are given back. Under
 * threads_lock. */
void cache_list_replace_only(const struct cache *old, struct cache *fresh);

/* Calls `visit` for each cache with blocks, under the list's lock. Owners may be changing them.
 * Returns the numbers that no thread has any more, as of the same moment. */
struct large_cache_numbers cache_list_visit(void (*visit)(const struct cache *cache, void *context),
                                            void *context);
/* Of the pointer to the first cache, for readers of another process. */
const void *cache_list_address(void);
/* In the child of a fork, where the other threads are not. */
void cache_list_forget_others(void);

#endif
