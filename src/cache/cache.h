/* cache.h - what one thread holds: two magazines for each class, and a small first one in place.
 *
 * A cache is one page of metadata, or most of the record of a sampled thread (counting.h):
 *
 *      front          top and limit of each loaded magazine: all that the hot path reads
 *      spare[53]      the spare magazine of each class, and how large both are
 *      first_slots    the first magazine of each class: 7 blocks up to 1 KiB, 2 blocks beyond;
 *                     14 of 8 bytes, where class 0 has none
 *
 * A class grows from its first magazine to larger ones, as its traffic asks (growth.h); only those
 * of full size are traded at depots. The first one keeps its room closed: `limit` stands where
 * `top` was when a block was taken that was not ready, and each slot beyond it is opened by a block
 * that was looked at. So who takes one block and gives two back, in a thread that does little with
 * the class, is told at the second.
 *
 *      loaded   slot 0    1     2     3     4    ...   capacity
 *             | NULL  | block | block | open | closed  ...     |
 *                               ^top   ^limit
 *
 * C1  the loaded magazine's slot 0 is front.magazine[c].limit + spare[c].closed -
 *     spare[c].capacity; a class that is unused has capacity 0 and the slot `front.nothing`
 * C2  spare[c].slots is NULL unless capacity is magazine_capacity(c); a capacity beyond that is a
 *     wide magazine's
 * C3  front.cache is the cache itself, front.kind FRONT_CACHE
 * C4  front.keeps_runs is true unless the thread's large blocks come from an arena that owns them
 *     (cache_large_arena), or it shall hold no blocks, and then there are none. Hooks that another
 *     thread gave its arena count from when it is bound again
 * C5  one that is off has no magazines
 * C6  spare[c].closed is 0 unless the loaded magazine is the first one
 * C7  what wide magazines can hold beyond two of full size is at most CACHE_WIDE_BYTES_MAX
 * C8  an abandoned one is no thread's, and has no wide magazine and no runs unless it is drained
 * All of it is written by the owner thread only, except the links, an abandoned one's `fixed`, an
 * ended one's `staggered` and, before main, `class_max`: those are under threads_lock. From
 * a thread that sleeps it may be taken as a whole (sleepers.h).
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_CACHE_H
#define PRAIRIE_CACHE_CACHE_H

#include "../arenas/arena.h"
#include "front.h"

enum { FIRST_CAPACITY = 7, FIRST_CAPACITY_BEYOND_1024 = 2, MIDDLE_CAPACITY = 31 };
enum {
    FIRST_SLOTS = (FIRST_CAPACITY + 1) * (CLASS_OF_1024 + 1) - 1
                + (FIRST_CAPACITY_BEYOND_1024 + 1) * (CLASS_COUNT - CLASS_OF_1024 - 1)
};

struct spare {
    void **slots; /* C2 */
    uint16_t count;
    uint16_t capacity; /* of the loaded one, and of spare; C1 */
    union {
        uint16_t pressure; /* refills and overflows at this capacity */
        uint16_t given; /* with a spare or a wide one: blocks given away since the last refill, as
                           far as they are counted */
    };
    union {
        int8_t streak; /* with a spare: refills in a row without an overflow; negative: overflows
                          in a row without a refill; stops at STREAK_BEFORE_TWO */
        int8_t low;    /* of a wide one: the fewest blocks seen in it since it was last narrowed or
                          overflowed */
    };
    uint8_t closed; /* slots of the loaded one that nothing can be put into yet; C6 */
};

/* What is known of the thread, in the place of class 0, which has no magazines. */
struct owner {
    struct front **word; /* which points at the front; NULL: not at this one, or of no thread;
                            atomic, published with release after `thread` */
    uint16_t unused;
    uint16_t capacity;    /* 0, as of a class that is unused */
    uint16_t wide_wishes; /* of all classes, that had no room */
    uint8_t still;        /* looks of the background thread since the last slow call; atomic */
};
_Static_assert(sizeof(struct owner) <= sizeof(struct spare), "it takes the place of one");
_Static_assert(offsetof(struct owner, capacity) == offsetof(struct spare, capacity),
               "class 0 is unused");

struct cache {
    struct front front;            /* C1, C3, C4 */
    struct arena *arena;           /* the last one filled from */
    struct cache *next, *previous; /* under LOCK_THREADS */
    uint8_t fixed;                 /* why it fills from no arena it likes; see below */
    bool is_off;                   /* its thread shall hold no blocks: cache_may_hold */
    uint8_t class_max;             /* a thread's: it holds blocks of no class beyond */
    bool is_busy;                  /* in the middle of a call */
    union {
        uint32_t large_takes;     /* a thread's: of large blocks, before it keeps runs */
        uint32_t times_destroyed; /* an explicit one's: of its arena, when it was bound to it */
    };
    uint32_t staggered; /* statistics: large blocks taken that are, less such given back to the page
                           heap: perhaps less than 0 */
    uint32_t thread;    /* the number of the owner, as the system tells it; 0: it does not */
    struct large_cache *large_cache; /* runs for large blocks (large_cache.h); NULL: none yet;
                                        atomic, published with release for the statistics */
    uint64_t refills, overflows;     /* statistics; guarded blocks are due by refills */
    union {
        struct spare spare[CLASS_COUNT];
        struct owner owner;
    };
    void *first_slots[FIRST_SLOTS];
};

/* Bits of `fixed`. Bound: to its arena, by the program. Away: hooks run that its thread waits for,
 * which may take blocks themselves; those come from an arena without hooks. Abandoned: by a thread
 * that has ended, with its blocks (abandoned.h). */
enum { CACHE_BOUND = 1, CACHE_AWAY = 2, CACHE_ABANDONED = 4 };

/* NULL: of a thread that has no cache. */
INLINE bool cache_is_away(const struct cache *cache)
{
    return cache != NULL && (cache->fixed & CACHE_AWAY) != 0;
}

INLINE bool cache_is_bound(const struct cache *cache) { return (cache->fixed & CACHE_BOUND) != 0; }
INLINE bool cache_is_bound_to_manual(const struct cache *cache)
{
    return cache_is_bound(cache) && cache->arena->is_manual;
}

/* It is in the list of caches, and no thread's. */
INLINE bool cache_is_abandoned(const struct cache *cache)
{
    return (RELAXED_LOAD(cache->fixed) & CACHE_ABANDONED) != 0;
}

/* Of threads that begin: they hold blocks of classes up to this one. */
extern PRIVATE unsigned cached_class_max; /* under LOCK_THREADS, before main */

/* Does a thread's cache keep blocks of the class? Others pass it by. NULL: of a thread that has no
 * cache. */
INLINE bool cache_may_hold(const struct cache *cache, unsigned class_index)
{
    return cache != NULL && class_index <= cache->class_max && !cache->is_off;
}

/* guarded_from of caches that are made; atomic. */
extern PRIVATE uint16_t cached_guarded_from;
/* That, and of this one. NULL: there is none yet. */
void cache_guard_from(struct cache *cache, uint16_t from);
/* While there are to be none, the next guarded block is so many refills away, again and again. */
enum { GUARDED_NEVER = INT16_MAX };

void cache_init(struct cache *cache);
/* Slot 0 of the loaded magazine. C1 */
INLINE void **cache_loaded(const struct cache *cache, unsigned class_index)
{
    const struct spare *spare = &cache->spare[class_index];

    return cache->front.magazine[class_index].limit + spare->closed - spare->capacity;
}
/* Around what moves blocks in several steps; inside of one another when hooks run in between. A
 * signal handler of the same thread looks, and so does the child of a fork. */
INLINE bool cache_begin_call(struct cache *cache)
{
    bool was_busy = cache->is_busy;

    cache->is_busy = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return was_busy;
}
INLINE void cache_end_call(struct cache *cache, bool was_busy)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    cache->is_busy = was_busy;
}

/* A new one. NULL: no memory. */
struct cache *cache_make(void);
/* Gives back one that was made so and is drained. */
void cache_give(struct cache *cache);
/* A block of the class, and the way back, which never fails. NULL: no memory. */
void *cache_take(struct cache *cache, unsigned class_index);
void cache_put(struct cache *cache, unsigned class_index, void *block);
/* One block past the cache: from the slabs of this arena, else of the one that the cache fills
 * from. NULL, both: of any. Returns NULL: no memory. */
void *cache_take_one(struct cache *cache, struct arena *arena, unsigned class_index);
/* Gives every block and every magazine back; the cache is as after cache_init. */
void cache_drain_all(struct cache *cache);

/* Aborts when a magazine has what cannot be given out: a block twice, one that is free in its slab,
 * or none. Takes no lock and changes nothing. One that is in the middle of a call is left alone. */
void cache_expect_blocks(const struct cache *cache);
/* As for a magazine that is traded: aborts when one has a block twice, or what is none of its
 * class. */
void cache_expect_once(const struct cache *cache);

/* Fills from this arena alone from now on; what it holds goes home when either is manual. */
void cache_bind(struct cache *cache, struct arena *arena);
/* What keeps_runs says, after something about that has changed (C4). Who calls this sees to it that
 * none are kept where none may be. */
void cache_update_keeps_runs(struct cache *cache);
/* The page heap that the thread leases from: its arena's. A thread that has filled from none yet,
 * or whose page heap somebody is at, moves to the arena of its core, as it does where an arena is
 * held. */
struct page_heap *cache_change_arena(struct cache *cache);
INLINE struct page_heap *cache_page_heap(void)
{
    struct cache *cache = PAGE_HEAPS == 1 ? NULL : thread_word()->cache;

    if (unlikely(cache == NULL)) return page_heap;
    if (unlikely(cache->arena == NULL) || unlikely(page_heap_is_held(cache->arena->page_heap)))
        return cache_change_arena(cache);
    return cache->arena->page_heap;
}
/* The arena that large blocks come from; NULL: from the page heap, as most do. */
struct arena *cache_large_arena(const struct cache *cache);

/* Gives back what the calling thread's cache holds. */
void thread_flush(void);

/* What was done already to make another attempt at a run of pages succeed. */
struct attempts {
    unsigned growths;
    bool gave_back;
};

/* Asks the arena's hooks for more, then gives back what the calling thread's cache holds and what
 * nobody holds, then asks once more. Hooks may take and give blocks, and bind the thread: nothing
 * is known of the cache after this. False: nothing is left to try. */
bool thread_may_try_again(struct arena *arena, size_t pages, size_t align_pages,
                          struct attempts *attempts);

void cache_check(struct cache *cache);

#endif
