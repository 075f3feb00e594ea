/* sleepers.h - what threads hold that have fallen asleep goes back.
 *
 * Only its thread gives back what a cache holds, and one that sleeps does not. So the background
 * thread takes the whole cache from it, as if it had ended: the thread goes on, when it wakes, like
 * one before its first call.
 *
 *      1. it has made no slow call for a while, and holds much
 *      2. it sleeps in a system call                            os_nap_begin
 *      3. its word points at EMPTY_FRONT from here on
 *      4. nothing on its stack leads to a function of ours, or to its cache,
 *         and it has slept without a break since 2               os_nap_lasts
 *      5. else its word points at its front again
 *
 * A thread that was asleep from 2 to 4 is in the middle of no call, so that it reads its word anew
 * at the next one. One that woke up in between may be in the middle of one. What it knows of its
 * front stays true, for then nothing is taken, and reading its word it waits until that points at
 * its front again (thread_front). Its cache cannot go away meanwhile: a thread that ends waits for
 * threads_lock, under which all of this is.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_SLEEPERS_H
#define PRAIRIE_CACHE_SLEEPERS_H

#include "cache.h"

/* A thread that has fallen asleep keeps no more, in bytes. */
#define SLEEPER_BYTES_MAX (32 * KiB)

/* When the process starts. */
void sleepers_start(void);
/* The cache is the calling thread's; is its front what the word points at? */
void sleepers_note_owner(struct cache *cache, bool is_front);
/* In the child of a fork, whose thread has another number. `forgot_others`: the caches of all other
 * threads were. */
void sleepers_begin_in_child(bool forgot_others);
/* A magazine of the cache, which is the calling thread's, has become large: the background thread
 * is to be there when this one falls asleep. The caller holds no lock. */
void sleepers_expect(const struct cache *cache);
/* The calling thread makes a slow call. The caller holds no lock. */
NOINLINE void sleepers_note_awake(struct cache *cache);
INLINE void cache_is_awake(struct cache *cache)
{
    if (unlikely(RELAXED_LOAD(cache->owner.still) != 0)) sleepers_note_awake(cache);
}
/* One look, by the background thread, which comes again and again. True: some thread that holds
 * much was awake of late. */
bool sleepers_look(void);

#endif
