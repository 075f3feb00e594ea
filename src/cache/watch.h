/* watch.h - what a thread's slot points at while its calls must be seen: every one, or enough to sample.
 *
 * A watch begins like a cache whose magazines are all empty, so that each malloc takes the slow way, where it is
 * counted, and served from the cache behind. An exact one sees each free in the same way: its magazines for frees
 * are all full. A metered one has the cache in the same record, where frees look for their magazines, so that they
 * go as they always do, and a malloc that is counted takes ten instructions more than one that nobody sees.
 *
 *      thread's slot --> watch: magazine[53], behind, ...   | metered: the thread's cache, its magazines first
 *                                                           | exact: put[53], and the cache is elsewhere
 *                                                           ^ PLACES_FOR_FREES words on: the places of frees
 *                                                             (class_map_offset, place_of_sized_free)
 *
 * While nobody asks there is no watch, and neither counting nor sampling costs anything.
 *
 * W1  no magazine of a watch ever has a block or room
 * W2  allocated and deallocated of an exact watch are the usable bytes of all calls since it became one, after
 *     every call
 * W3  left[c] blocks of the class may pass before the thread asks its meter again; the meter has passed them. One
 *     array serves all watches of a metered thread
 * W4  peak is the most that allocated - deallocated has been, at any time since it was peak_base, before a block was
 *     given back last; both may be less than 0
 * W5  blocks of classes that the cache behind may not hold pass it by; while it shall hold none the watch is an
 *     exact one
 * A watch belongs to its thread. Once the program knows the addresses of the two totals it stays until the thread
 * ends.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_WATCH_H
#define PRAIRIE_CACHE_WATCH_H

#include "cache.h"
#include "meter.h"

enum { WATCH_WORDS_USED = 2 * CLASS_COUNT + 10 };

struct watch {
    struct magazine magazine[CLASS_COUNT]; /* W1 */
    void *nothing;                         /* a slot 0 for magazines without one */
    uint64_t allocated, deallocated;       /* W2: owner thread */
    struct meter *meter;                   /* constant; NULL: nobody samples */
    struct cache *behind;                  /* constant */
    uint16_t *left;                        /* constant; W3; zeros, if nobody samples */
    struct cache *large;                   /* as that of the cache behind; C4 */
    uint64_t peak, peak_base;              /* W4: owner thread */
    bool is_told; /* of an exact one: the program knows where the totals are */
    void *unused[PLACES_FOR_FREES - WATCH_WORDS_USED];
};

struct exact_watch {
    struct watch watch;
    struct magazine put[CLASS_COUNT]; /* W1 */
};

struct metered_watch {
    struct watch watch;
    struct cache cache;
    struct meter meter;
    uint16_t left[CLASS_COUNT]; /* W3: owner thread */
};

INLINE bool cache_is_watch(const struct cache *front)
{
    return !cache_is_plain(front) && !cache_is_constant(front);
}

INLINE bool cache_is_metered(const struct cache *front)
{
    return front->behind == &((const struct metered_watch *)front)->cache;
}

/* One that sees every call of a thread that points at `front`, which has a cache. NULL: no memory. */
struct watch *watch_begin_exact(const struct cache *front);

/* One with a new cache. NULL: no memory. */
struct metered_watch *watch_make_metered(void);
void watch_give_metered(struct metered_watch *metered);
/* The watch of a cache that was made so, for a thread that begins. */
struct watch *watch_begin_metered(struct cache *cache, bool sampled);
/* The one of a cache whose thread began so. */
struct watch *watch_metered_of(struct cache *cache);
/* Its thread ends, or no longer needs it. */
void watch_end(struct watch *watch);
/* Blocks that may still pass are taken back: the next one of each class asks. For a new period. */
void watch_pass_back(struct watch *watch);

/* Is the next block of the class, or one of that many bytes, to be sampled? It is asked for each block that is taken
 * the slow way, and a yes is not repeated. */
bool watch_block_is_due(struct watch *watch, unsigned class_index);
bool watch_large_is_due(struct watch *watch, size_t bytes);

/* A block of the class, counted. NULL: no memory. */
void *watch_take(struct watch *watch, unsigned class_index);
void watch_put(struct watch *watch, unsigned class_index, void *block);

/* left[c] for the place of c: both go by two bytes, or words. */
INLINE uint16_t *left_at(uint16_t *left, size_t place)
{
    return (uint16_t *)((char *)left + place);
}

/* The usual way of a metered thread, for the place of a class. NULL: another one must be taken, as by all other
 * threads. */
INLINE void *metered_take(struct cache *front, size_t place)
{
    uint16_t *left = ((struct watch *)front)->left;
    void *block;

    if (*left_at(left, place) == 0) return NULL;
    block = **(void ***)magazine_word(front, place + PLACES_FOR_FREES);
    if (unlikely(block == NULL)) return NULL;
    FORGET(place);
    --*left_at(left, place);
    --*(void ***)magazine_word(front, place + PLACES_FOR_FREES);
    return block;
}

/* For what does not come out of a cache. */
INLINE void watch_count_take(struct watch *watch, size_t bytes) { watch->allocated += bytes; }

/* W4: a thread holds most before it gives something back, so that taking need not look. */
INLINE void watch_look_at_peak(struct watch *watch)
{
    uint64_t held = watch->allocated - watch->deallocated;

    if ((int64_t)(held - watch->peak) > 0) watch->peak = held;
}

INLINE void watch_count_put(struct watch *watch, size_t bytes)
{
    watch_look_at_peak(watch);
    watch->deallocated += bytes;
}

/* The most bytes that the thread held since watch_forget_peak, beyond what it held then. */
INLINE uint64_t watch_peak(struct watch *watch)
{
    watch_look_at_peak(watch);
    return watch->peak - watch->peak_base;
}

INLINE void watch_forget_peak(struct watch *watch)
{
    watch->peak = watch->peak_base = watch->allocated - watch->deallocated;
}

/* The usual ends of a watched thread's calls. NULL, false: another way must be taken. */
INLINE void *watch_hit(struct cache *front, unsigned class_index)
{
    struct watch *watch = (struct watch *)front;
    void *block;

    if (likely(cache_is_metered(front))) return metered_take(front, place_of_class(class_index));
    if (unlikely(cache_is_constant(front)) || watch->meter != NULL) return NULL;
    block = magazine_take(&watch->behind->magazine[class_index]);
    if (likely(block != NULL)) watch_count_take(watch, class_bytes[class_index]);
    return block;
}

INLINE bool watch_put_hit(struct cache *front, unsigned class_index, void *block)
{
    struct watch *watch = (struct watch *)front;

    if (unlikely(cache_is_constant(front)) || class_index == 0) return false;
    if (!magazine_put(&watch->behind->magazine[class_index], block)) return false;
    watch_count_put(watch, class_bytes[class_index]);
    return true;
}

#endif
