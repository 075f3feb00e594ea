/* counting.h - what a thread's slot points at while its calls must be seen: every one, or enough to
 * sample.
 *
 * A counting front begins like a cache whose magazines are all empty, so that each malloc takes the
 * slow way, where it is counted, and served from the cache behind. An exact one sees each free in
 * the same way: its magazines for frees are all full. A sampled one has the cache in the same
 * record, where frees look for their magazines, so that they go as they always do, and a malloc
 * that is counted takes ten instructions more than one that nobody sees.
 *
 *      thread's slot --> front: magazine[53], behind, ...   | sampled: the thread's cache, its
 * magazines first | exact: put[53], and the cache is elsewhere ^ OFFSET_FOR_FREES words on: the
 * offsets of frees (class_map_offset, offset_of_sized_free)
 *
 * While nobody asks there is no counting front, and neither counting nor sampling costs anything.
 *
 * W1  no magazine of a counting front ever has a block or room
 * W2  allocated and deallocated of an exact front are the usable bytes of all calls since it became
 *     one, after every call
 * W3  left[c] blocks of the class may pass before the thread asks its sampler again; the sampler
 *     has passed them. One array serves all counting fronts of a sampled thread
 * W4  peak is the most that allocated - deallocated has been, at any time since it was peak_base,
 *     before a block was given back last; both may be less than 0
 * W5  blocks of classes that the cache behind may not hold pass it by; while it shall hold none the
 *     counting front is an exact one
 * A counting front belongs to its thread. Once the program knows the addresses of the two totals it
 * stays until the thread ends.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_COUNTING_H
#define PRAIRIE_CACHE_COUNTING_H

#include "cache.h"
#include "sampler.h"

enum { COUNTING_WORDS_USED = 2 * CLASS_COUNT + 10 };

struct counting_front {
    struct magazine magazine[CLASS_COUNT]; /* W1 */
    void *nothing;                         /* a slot 0 for magazines without one */
    uint64_t allocated, deallocated;       /* W2: owner thread */
    struct sampler *sampler;               /* constant; NULL: nobody samples */
    struct cache *behind;                  /* constant */
    uint16_t *left;                        /* constant; W3; zeros, if nobody samples */
    struct cache *large;                   /* as that of the cache behind; C4 */
    uint64_t peak, peak_base;              /* W4: owner thread */
    bool is_told; /* of an exact one: the program knows where the totals are */
    void *unused[OFFSET_FOR_FREES - COUNTING_WORDS_USED];
};

struct exact_front {
    struct counting_front counting;
    struct magazine put[CLASS_COUNT]; /* W1 */
};

struct sampled_front {
    struct counting_front counting;
    struct cache cache;
    struct sampler sampler;
    uint16_t left[CLASS_COUNT]; /* W3: owner thread */
};

INLINE bool cache_is_counting(const struct cache *front)
{
    return !cache_is_plain(front) && !cache_is_constant(front);
}

INLINE bool cache_is_sampled(const struct cache *front)
{
    return front->behind == &((const struct sampled_front *)front)->cache;
}

/* One that sees every call of a thread that points at `front`, which has a cache. NULL: no
 * memory. */
struct counting_front *counting_begin_exact(const struct cache *front);

/* One with a new cache. NULL: no memory. */
struct sampled_front *counting_make_sampled(void);
void counting_give_sampled(struct sampled_front *sampled_fronts);
/* The counting front of a cache that was made so, for a thread that begins. */
struct counting_front *counting_begin_sampled(struct cache *cache, bool sampled);
/* The one of a cache whose thread began so. */
struct counting_front *counting_sampled_of(struct cache *cache);
/* Its thread ends, or no longer needs it. */
void counting_end(struct counting_front *counting);
/* Blocks that may still pass are taken back: the next one of each class asks. For a new period. */
void counting_pass_back(struct counting_front *counting);

/* Is the next block of the class, or one of that many bytes, to be sampled? It is asked for each
 * block that is taken the slow way, and a yes is not repeated. */
bool counting_block_is_due(struct counting_front *counting, unsigned class_index);
bool counting_large_is_due(struct counting_front *counting, size_t bytes);

/* A block of the class, counted. NULL: no memory. */
void *counting_take(struct counting_front *counting, unsigned class_index);
void counting_put(struct counting_front *counting, unsigned class_index, void *block);

/* left[c] for the offset of c: both go by two bytes, or words. */
INLINE uint16_t *left_at(uint16_t *left, size_t offset)
{
    return (uint16_t *)((char *)left + offset);
}

/* The usual way of a sampled thread, for the offset of a class. NULL: another one must be taken, as
 * by all other threads. */
INLINE void *sampled_front_take(struct cache *front, size_t offset)
{
    uint16_t *left = ((struct counting_front *)front)->left;
    void *block;

    if (*left_at(left, offset) == 0) return NULL;
    block = **(void ***)magazine_word(front, offset + OFFSET_FOR_FREES);
    if (unlikely(block == NULL)) return NULL;
    FORGET(offset);
    --*left_at(left, offset);
    --*(void ***)magazine_word(front, offset + OFFSET_FOR_FREES);
    return block;
}

/* For what does not come out of a cache. */
INLINE void counting_add_taken(struct counting_front *counting, size_t bytes)
{
    counting->allocated += bytes;
}

/* W4: a thread holds most before it gives something back, so that taking need not look. */
INLINE void counting_look_at_peak(struct counting_front *counting)
{
    uint64_t held = counting->allocated - counting->deallocated;

    if ((int64_t)(held - counting->peak) > 0) counting->peak = held;
}

INLINE void counting_add_given(struct counting_front *counting, size_t bytes)
{
    counting_look_at_peak(counting);
    counting->deallocated += bytes;
}

/* The most bytes that the thread held since counting_forget_peak, beyond what it held then. */
INLINE uint64_t counting_peak(struct counting_front *counting)
{
    counting_look_at_peak(counting);
    return counting->peak - counting->peak_base;
}

INLINE void counting_forget_peak(struct counting_front *counting)
{
    counting->peak = counting->peak_base = counting->allocated - counting->deallocated;
}

/* The usual ends of a counted thread's calls. NULL, false: another way must be taken. */
INLINE void *counting_hit(struct cache *front, unsigned class_index)
{
    struct counting_front *counting = (struct counting_front *)front;
    void *block;

    if (likely(cache_is_sampled(front)))
        return sampled_front_take(front, offset_of_class(class_index));
    if (unlikely(cache_is_constant(front)) || counting->sampler != NULL) return NULL;
    block = magazine_take(&counting->behind->magazine[class_index]);
    if (likely(block != NULL)) counting_add_taken(counting, class_bytes[class_index]);
    return block;
}

INLINE bool counting_put_hit(struct cache *front, unsigned class_index, void *block)
{
    struct counting_front *counting = (struct counting_front *)front;

    if (unlikely(cache_is_constant(front)) || class_index == 0) return false;
    if (!magazine_put(&counting->behind->magazine[class_index], block)) return false;
    counting_add_given(counting, class_bytes[class_index]);
    return true;
}

#endif
