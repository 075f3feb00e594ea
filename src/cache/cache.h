/* cache.h - what one thread holds: two magazines for each class, and a small first one in offset.
 *
 * A cache is one page of metadata, or most of the record of a sampled thread (counting.h):
 *
 *      magazine[53]        top and limit of the loaded magazine of each class: all that the hot
 * path reads spare magazine[53]            the second magazine, and how large both are first_slots
 * the first magazine of each class, in offset, so that a small thread needs nothing else: 7 blocks
 * up to 1 KiB, 2 blocks beyond; 15 of 8 bytes, where class 0 has none
 *
 * A class starts with its first magazine, grows to a middle one and then to a pair of full-size
 * ones, as its traffic asks; only full-size ones are traded at depots.
 *
 * C1  the loaded magazine's slot 0 is magazine[c].limit - spare magazine[c].capacity; a class that
 *     is unused has capacity 0 and the slot `nothing`
 * C2  spare magazine[c].spare is NULL unless capacity is magazine_capacity(c)
 * C3  behind is the cache itself, left[0..] are zeros
 * C4  large is the cache that keeps runs for the thread's large blocks: itself; NULL when they come
 *     from an arena that owns them (cache_large_arena), or the thread shall hold no blocks, and
 *     then it keeps none. A thread that was bound to an automatic arena before another thread gave
 *     that hooks notices when it is bound again
 * C5  one that is off has no magazines
 * All of it is written by the owner thread only, except the links, which the thread list's lock
 * guards.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_CACHE_H
#define PRAIRIE_CACHE_CACHE_H

#include "../arenas/arena.h"
#include "../os/thread_slot.h"

enum { FIRST_CAPACITY = 7, FIRST_CAPACITY_BEYOND_1024 = 2, MIDDLE_CAPACITY = 31 };
enum {
    FIRST_SLOTS = (FIRST_CAPACITY + 1) * (CLASS_OF_1024 + 1)
                + (FIRST_CAPACITY_BEYOND_1024 + 1) * (CLASS_COUNT - CLASS_OF_1024 - 1)
};

struct spare {
    void **slots; /* C2 */
    uint16_t count;
    uint16_t capacity; /* of the loaded one, and of spare; C1 */
    uint16_t pressure; /* refills and overflows at this capacity */
    int16_t running;   /* refills since the last overflow, or less than 0: overflows since the last
                                 refill; stops counting at a few */
};

struct cache {
    struct magazine magazine[CLASS_COUNT]; /* first: offsets count words from here */
    void *nothing;                         /* a slot 0 for classes that have no magazine */
    struct arena *arena;                   /* the last one filled from */
    struct cache *next, *previous;         /* under LOCK_THREADS */
    struct cache *behind;                  /* C3; see union cache_constant */
    const uint16_t *left;                  /* C3 */
    struct cache *large;                   /* C4 */
    uint8_t fixed;                         /* why it fills from no arena it likes; see below */
    bool is_off;                           /* its thread shall hold no blocks */
    bool is_busy;      /* a named one (explicit_cache.h): in the middle of a call */
    uint8_t class_max; /* a thread's: it holds blocks of no class beyond */
    union {
        uint32_t large_takes; /* a thread's: of large blocks, before it keeps runs */
        uint32_t arena_ends;  /* a named one's: `ends` of its arena, when it was bound to it */
    };
    struct large_cache *large_cache; /* runs for large blocks (large_cache.h); NULL: none yet */
    uint64_t refills, overflows;     /* statistics */
    struct spare spare[CLASS_COUNT];
    void *first_slots[FIRST_SLOTS];
};

/* Bits of `fixed`. Bound: to its arena, by the program. Away: hooks run that its thread waits for,
 * which may take blocks themselves; those come from an arena without hooks. */
enum { CACHE_BOUND = 1, CACHE_AWAY = 2 };

/* What a thread's slot points at begins like a cache; the word `behind` tells what it is. Before
 * the thread's first call and after its end it is a constant one, with no blocks, no room, nothing
 * left and nothing behind it: two that overlap, for all their magazines are alike. While somebody
 * must see the thread's calls, or it shall hold no blocks, it is a counting front
 * (cache/counting.h), and the cache is behind. */
union cache_constant {
    struct {
        struct magazine magazine[CLASS_COUNT + 2];
        struct {
            struct cache *behind;
            const uint16_t *left;
        } end[3]; /* of each of the two; and `large`, which follows */
    };
    /* Magazines at offsets for frees: all NULL, which is full. */
    void *whole[OFFSET_FOR_FREES + 2 * CLASS_COUNT + 2];
    struct cache *just_for_the_type;
};

#define CACHE_EMPTY ((struct cache *)&cache_empty)
#define CACHE_GONE ((struct cache *)&cache_empty.magazine[1])

/* The usual case: the blocks are where the slot points. */
INLINE bool cache_is_plain(const struct cache *cache) { return cache->behind == cache; }
INLINE bool cache_is_constant(const struct cache *cache) { return cache->behind == NULL; }

/* The two hot moves: magazine_take and magazine_put for the magazine at a offset. Between its
 * accesses the compiler is made to forget what the offset was, so that each access carries its own
 * address and moving `top` is one instruction on memory: 3 instructions fewer than keeping the
 * address in a register, in the same time (docs/decisions/0002). The forgetting itself costs
 * nothing. */
#define FORGET(value) __asm__("" : "+r"(value))

INLINE void **magazine_word(struct cache *cache, size_t offset) { return (void **)cache + offset; }

INLINE void *cache_take(struct cache *cache, size_t offset)
{
    void *block = **(void ***)magazine_word(cache, offset);

    if (likely(block != NULL)) {
        FORGET(offset);
        --*(void ***)magazine_word(cache, offset);
    }
    return block;
}

INLINE bool cache_put(struct cache *cache, size_t offset, void *block)
{
    void **top = *magazine_word(cache, offset);

    FORGET(offset);
    if (unlikely(top == *magazine_word(cache, offset + 1))) return false;
    top[1] = block;
    FORGET(offset);
    ++*(void ***)magazine_word(cache, offset);
    return true;
}

/* Of threads that begin: they hold blocks of classes up to this one. */
extern PRIVATE unsigned cached_class_max; /* under LOCK_THREADS, before main */

/* Blocks of other classes pass it by. One that is plain is not off. */
INLINE bool cache_may_hold(const struct cache *cache, unsigned class_index)
{
    return class_index <= cache->class_max && !cache->is_off;
}

void cache_init(struct cache *cache);
/* A new one. NULL: no memory. */
struct cache *cache_make(void);
/* Gives back one that was made so and is drained. */
void cache_give(struct cache *cache);
/* Gets blocks into an empty magazine. False: no memory. */
bool cache_refill(struct cache *cache, unsigned class_index);
/* One block from the slabs that the cache fills from. NULL: no memory. */
void *cache_take_one(struct cache *cache, unsigned class_index);
/* Puts a block whose magazine is full: makes room first. Never fails. */
void cache_overflow(struct cache *cache, unsigned class_index, void *block);
/* Gives every block and every magazine back; the cache is as after cache_init. */
void cache_drain_all(struct cache *cache);

/* Fills from this arena alone from now on; what it holds goes home when one of the two is
 * manual. */
void cache_bind(struct cache *cache, struct arena *arena);
/* C4, after something about that has changed. */
void cache_aim(struct cache *cache);
/* The arena that large blocks come from; NULL: from the page heap, as most do. */
struct arena *cache_large_arena(const struct cache *cache);

/* Asks the arena's hooks for more, when it has any, on behalf of the calling thread. False: there
 * is none, or they themselves are asking. */
bool thread_grow(struct arena *arena, size_t pages, size_t align_pages);

void cache_check(struct cache *cache);

#endif
