/* thread.h - how a thread gets a cache (cache_list.h), how it leaves it, and which kind of front it
 * has meanwhile. A thread past its end has no cache and is served block by block.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_THREAD_H
#define PRAIRIE_CACHE_THREAD_H

#include "counting.h"

/* Gives the calling thread a cache; `off`: which shall hold no blocks. NULL: no memory. */
struct front *thread_attach(bool off);

/* It holds no blocks. */
INLINE bool thread_cache_is_off(void) { return thread_front()->kind <= FRONT_OFF; }

/* From now on the calling thread, if it has a cache, holds no blocks; and it may again. It keeps
 * its arena, totals and sampler. False: no memory; or its cache waits to be filled by hooks. */
bool thread_cache_off(void);
void thread_cache_on(void);

/* The arena that the calling thread fills from; NULL: no memory. The thread has a cache. */
struct arena *thread_arena(void);
/* From now on it fills from that one alone. */
void thread_bind(struct arena *arena);
/* The calling thread's arena may have got hooks: its large blocks come from there then. */
void thread_follow_hooks(void);
/* From now on every call of the calling thread is seen and counted, until it ends; the totals begin
 * with the first time. NULL: no memory, or the thread has no cache. */
struct counting_front *thread_count_calls(void);

/* From now on enough of every thread's calls is seen to sample them. False: the calling thread is
 * not the only one with a cache, or no memory. */
bool threads_sample(void);
/* Whether threads that are made from now on are sampled; they may change their minds. */
void threads_sampling_init(bool sampled);
bool threads_sampling_at_birth(void);

/* From now on every call of every thread is seen, by fronts of kind FRONT_HARDENED, and their
 * blocks come from hardened arenas. Before main. False: the calling thread is not the only one with
 * a cache, or no memory. */
bool threads_harden(void);

/* All threads hold blocks of classes up to this one from now on, and those that begin; the calling
 * one gives back what it holds beyond. Before main. */
void threads_hold_up_to(unsigned class_index);
/* The calling thread does, which has a cache; beyond that it holds none. */
void thread_hold_up_to(unsigned class_index);

#endif
