/* counting.h - fronts of threads whose calls must be seen: every one, or enough to sample.
 *
 * A counting front has no block (F1), so each malloc takes the slow way, is counted there, and
 * served from the cache behind. An exact one, of any other kind than FRONT_SAMPLED, sees each free
 * in the same way: its magazines for frees are full. A sampled one has the cache in the same
 * record, where frees find their magazines, and go as they always do.
 *
 *      thread's word --> front: magazine[53], cache, kind | sampled: the thread's cache
 *                                                         | exact: put[53]; the cache is elsewhere
 *                        OFFSET_FOR_FREES words further --^
 *
 * W1  no magazine of an exact front ever has a block or room
 * W2  allocated and deallocated of an exact front are the usable bytes of all calls since the
 *     program was told of them, after every call; before that they are anything
 * W3  left[c] blocks of the class may pass before the thread asks its sampler again; the sampler
 *     has passed them. One array serves all counting fronts of a sampled thread
 * W4  peak is the most that allocated - deallocated has been, at any time since it was peak_base,
 *     before a block was given back last; both may be less than 0. As W2
 * A counting front belongs to its thread. Once the program knows the addresses of the two totals it
 * stays until the thread ends.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_COUNTING_H
#define PRAIRIE_CACHE_COUNTING_H

#include "cache.h"
#include "sampler.h"

struct counting_front {
    struct front front;
    uint64_t allocated, deallocated; /* W2: owner thread */
    struct sampler *sampler;         /* constant; NULL: nobody samples */
    uint64_t peak, peak_base;        /* W4: owner thread */
    bool is_told;                    /* of an exact one: the program knows where the totals are */
};

struct exact_front {
    union {
        struct counting_front counting;
        void *before_frees[OFFSET_FOR_FREES];
    };
    struct magazine put[CLASS_COUNT]; /* W1 */
};

struct sampled_front {
    union {
        struct counting_front counting;
        void *before_frees[OFFSET_FOR_FREES];
    };
    struct cache cache;
    struct sampler sampler;
    uint16_t left[CLASS_COUNT]; /* W3: owner thread */
};

/* The thread's counting front; NULL: its calls are not counted. */
INLINE struct counting_front *counting_of(struct front *front)
{
    return front_is_counting(front) ? (struct counting_front *)front : NULL;
}

/* One that sees every call of a thread that has this front, and a cache. NULL: no memory. */
struct counting_front *counting_begin_exact(struct front *front, enum front_kind kind);

/* A new cache in the record of a sampled front, and the way back. NULL: no memory. */
struct cache *counting_make_sampled(void);
void counting_give_sampled(struct cache *cache);
/* The front of a cache that was made so, for a thread that begins. */
struct front *counting_begin_sampled(struct cache *cache, bool is_sampled);
/* The one of a cache whose thread began so. */
struct front *counting_sampled_of(struct cache *cache);
/* Its thread ends, or no longer needs it. */
void counting_end(struct counting_front *counting);
/* Blocks that may still pass are taken back: the next one of each class asks. For a new period. */
void counting_pass_back(struct counting_front *counting);

/* Is the next block of the class, or one of that many bytes, to be sampled? It is asked for each
 * block that is taken the slow way, and a yes is not repeated. */
bool counting_block_is_due(struct counting_front *counting, unsigned class_index);
bool counting_large_is_due(struct counting_front *counting, size_t bytes);

/* W2, W4: from now on. */
INLINE void counting_tell(struct counting_front *counting)
{
    if (counting->is_told) return;
    counting->allocated = counting->deallocated = 0;
    counting->peak = counting->peak_base = 0;
    counting->is_told = true;
}

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

#endif
