/* watch.h - what a thread's slot points at while its calls must be seen: every one, or enough to sample.
 *
 * A watch begins like a cache. An exact one has magazines that are all empty and full at once, so that each
 * call takes the slow way; there it is counted, and served from the cache behind. A metered one has magazines
 * of its own, small ones, two for each class: malloc takes from one and frees go to the other, because a
 * block that is freed and taken again between two slow calls would be seen by nobody. So a filled magazine of
 * n blocks is n calls of malloc, and the one that is to be sampled is made to find the magazine empty.
 *
 *      thread's slot --> watch: magazine[53], behind, ...   | put[53]: at the places of frees
 *                          |                                  (class_map_offset, place_of_sized_free)
 *                          +--> the thread's cache
 *
 * While nobody asks there is no watch, and neither counting nor sampling costs anything.
 *
 * W1  no magazine of an exact watch ever has a block or room
 * W2  allocated and deallocated of an exact watch are the usable bytes of all calls since it became one, after
 *     every call
 * W3  the windows of a class in a metered watch are its two arrays: put ends in one, magazine lies in the other
 * A watch belongs to its thread, which may read the two totals at any time through their addresses.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_WATCH_H
#define PRAIRIE_CACHE_WATCH_H

#include "cache.h"
#include "meter.h"

struct watch {
    struct magazine magazine[CLASS_COUNT]; /* W1, W3 */
    void *nothing;                         /* a slot 0 for magazines without one */
    uint64_t allocated, deallocated;       /* W2: owner thread */
    struct meter *meter;                   /* constant; NULL: nobody samples */
    struct cache *behind;                  /* constant */
    bool exact;                            /* owner thread */
    bool sampling_off;                     /* owner thread: it is not to be sampled */
    uint32_t name; /* owner thread: number of its name in samples; 0: none */
    void *unused[PLACES_FOR_FREES - 2 * CLASS_COUNT - 6];
    struct magazine put[CLASS_COUNT]; /* W1, W3 */
};

INLINE bool cache_is_watch(const struct cache *front)
{
    return !cache_is_plain(front) && !cache_is_constant(front);
}

/* Called once, before any thread has a cache. */
void watches_start(void);
/* NULL: no memory. */
struct watch *watch_begin(struct cache *behind, bool metered);
/* Its blocks go to the cache behind. */
void watch_end(struct watch *watch);
void watch_make_exact(struct watch *watch);
/* Blocks that lie in its windows go to the cache behind. */
void watch_flush(struct watch *watch);

/* Blocks of the class that lie ready in its windows; its owner may be changing them. */
unsigned watch_held(const struct watch *watch, unsigned class_index);

/* Is the next block of the class, or one of that many bytes, to be sampled? It is asked once for each block
 * that is taken the slow way, and a yes is not repeated. */
bool watch_block_is_due(struct watch *watch, unsigned class_index);
bool watch_large_is_due(struct watch *watch, size_t bytes);

/* A block of the class, counted. NULL: no memory. */
void *watch_take(struct watch *watch, unsigned class_index);
void watch_put(struct watch *watch, unsigned class_index, void *block);
/* The window that malloc takes from is empty: if the other may take its place, the block that was freed last.
 * NULL: another way must be taken. */
void *watch_turn(struct watch *watch, unsigned class_index);

/* The usual ends of a watched thread's calls. NULL, false: another way must be taken. */
INLINE void *watch_hit(struct cache *front, unsigned class_index)
{
    struct watch *watch = (struct watch *)front;
    void *block;

    if (unlikely(cache_is_constant(front))) return NULL;
    if (!watch->exact) return watch_turn(watch, class_index);
    if (watch->meter != NULL) return NULL;
    block = magazine_take(&watch->behind->magazine[class_index]);
    if (likely(block != NULL)) watch->allocated += class_bytes[class_index];
    return block;
}

INLINE bool watch_put_hit(struct cache *front, unsigned class_index, void *block)
{
    struct watch *watch = (struct watch *)front;

    if (unlikely(cache_is_constant(front)) || class_index == 0) return false;
    if (!watch->exact) {
        if (watch->put[class_index].limit == &watch->nothing) return false;
        watch_put(watch, class_index, block);
        return true;
    }
    if (!magazine_put(&watch->behind->magazine[class_index], block)) return false;
    watch->deallocated += class_bytes[class_index];
    return true;
}

/* For what does not come out of a cache. */
INLINE void watch_count_take(struct watch *watch, size_t bytes) { watch->allocated += bytes; }
INLINE void watch_count_put(struct watch *watch, size_t bytes) { watch->deallocated += bytes; }

#endif
