/* growth.h - how many blocks the magazines of a cache hold, class by class.
 *
 *      unused --> first --> middle --> full size --> two of full size <--> one wide
 *
 * Each step follows the traffic of the class, and needs memory; without any, the class keeps what
 * it has. Calls for the owner of the cache; locks are taken inside.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_GROWTH_H
#define PRAIRIE_CACHE_GROWTH_H

#include "cache.h"

/* The blocks in the loaded magazine, NULLs among them (M3). */
INLINE unsigned loaded_count(const struct cache *cache, unsigned class_index)
{
    return (unsigned)(cache->front.magazine[class_index].top - cache_loaded(cache, class_index));
}

/* The one with these slots, of the class's capacity, is the loaded one from now on. */
INLINE void load_magazine(struct cache *cache, unsigned class_index, void **slots, unsigned count)
{
    cache->spare[class_index].closed = 0;
    cache->front.magazine[class_index] =
        (struct magazine){ slots + count, slots + cache->spare[class_index].capacity };
}

/* It is the class's first magazine. */
INLINE bool is_in_place(const struct cache *cache, void *const *slots)
{
    return (uintptr_t)slots - (uintptr_t)cache < sizeof *cache;
}

/* Magazines in place are never traded, even when their class needs no larger ones. */
INLINE bool is_full_size(const struct cache *cache, unsigned class_index)
{
    return cache->spare[class_index].capacity == magazine_capacity(class_index)
        && !is_in_place(cache, cache_loaded(cache, class_index));
}

/* One that is larger than what is traded. */
INLINE bool is_wide(const struct cache *cache, unsigned class_index)
{
    return cache->spare[class_index].capacity > magazine_capacity(class_index);
}

/* How many blocks an empty loaded magazine is filled with from slabs. */
unsigned cache_fill_count(const struct cache *cache, unsigned class_index);
/* How many go into a wide one or out of it at a time. */
INLINE unsigned cache_wide_part(const struct cache *cache, unsigned class_index)
{
    unsigned quarter = cache->spare[class_index].capacity / 4u;

    return (unsigned)max_size(quarter, magazine_capacity(class_index));
}
/* So many of the oldest blocks leave the loaded one. */
void cache_drain_first(struct cache *cache, unsigned class_index, unsigned count);

/* A class that is unused gets its first magazine, empty. */
void cache_use_first(struct cache *cache, unsigned class_index);
/* After a refill or an overflow: after enough of them the loaded magazine is a larger one with the
 * same blocks in it. */
void cache_enlarge_if_pressed(struct cache *cache, unsigned class_index);

/* Of a class with two magazines, or a wide one: so many blocks were given away. */
INLINE void cache_note_given(struct spare *spare, unsigned count)
{
    if (spare->given <= WIDE_BLOCKS_MAX) spare->given += (uint16_t)count;
}
/* Both magazines of the class are empty, or its wide one is, and it wants back what it gave away:
 * it gets a wide one with room for that, or a wider one, as the budgets allow. */
void cache_widen(struct cache *cache, unsigned class_index);
/* What wide magazines of all caches can hold beyond two of full size each; C7. Atomic. In the child
 * of a fork in the middle of a call it may miss some. */
extern PRIVATE ptrdiff_t cached_wide_bytes;
/* Of this cache alone. */
size_t cache_wide_bytes(const struct cache *cache);
/* All magazines are about to be given back: their share of the budgets is free. */
void cache_forget_wide(const struct cache *cache);
/* In the child of a fork: its thread's magazines count, and no others. NULL: it has no cache. */
void cache_forget_wide_of_others(const struct cache *mine);
/* Those of this cache count, too. */
void cache_count_wide(const struct cache *cache);

#endif
