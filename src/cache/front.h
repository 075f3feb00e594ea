/* front.h - what a thread's word points at: the magazines that doors see, and a kind.
 *
 * Doors look at magazines only. What has neither block nor room there goes to the slow door
 * (heap/slow.h), which asks for the kind:
 *
 *      kind             blocks are taken            blocks are given back      the cache is
 *      FRONT_EMPTY      nowhere yet: it attaches    as after that              none
 *      FRONT_GONE       one at a time, from slabs   one at a time, to slabs    none
 *      FRONT_OFF        as FRONT_GONE, counted      the same, counted          behind, empty
 *      FRONT_HARDENED   behind, marked              behind, checked            behind
 *      FRONT_COUNTED    behind, counted             behind, counted            behind
 *      FRONT_SAMPLED    behind, some of them seen   as to the cache itself     in the same record
 *      FRONT_CACHE      here                        here                       this
 *
 * The four in the middle are counting fronts (counting.h). A kind changes in thread.c, and
 * nowhere else.
 *
 * F1  a front that is not of kind FRONT_CACHE has no block in its magazines, and no room
 * F2  `left` is all zeros but for one of kind FRONT_SAMPLED
 * F3  keeps_runs is false unless the kind is FRONT_CACHE: what is counted goes to the slow door
 * All of it is written by the owner thread only.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_FRONT_H
#define PRAIRIE_CACHE_FRONT_H

#include "../arenas/magazine.h"
#include "../os/thread_slot.h"
#include "../slabs/size_class.h"

enum front_kind {
    FRONT_EMPTY, /* 0: see front_constant */
    FRONT_GONE,
    FRONT_OFF,
    FRONT_HARDENED,
    FRONT_COUNTED,
    FRONT_SAMPLED, /* frees need not be seen */
    FRONT_CACHE
};

struct front {
    struct magazine magazine[CLASS_COUNT]; /* first: offsets count words from here; F1 */
    const uint16_t *left;  /* constant: blocks of each class that may pass unseen; F2 */
    void *nothing;         /* NULL: a slot 0 for classes that have no magazine */
    struct cache *cache;   /* constant; NULL: none */
    uint8_t kind;          /* enum front_kind */
    bool keeps_runs;       /* runs for large blocks may be taken unseen (C4); F3 */
    uint16_t guarded_from; /* of a cache: its refills, from which on a guarded block is due */
    uint32_t quarantine;   /* of a cache: its quarantine's record; 0: none. Atomic */
};

/* The front of a thread before its first call; one word further begins that of a thread past its
 * end. They overlap: read as either, each word is NULL or points at zeros. */
union front_constant {
    struct {
        const void *nothing[2 * CLASS_COUNT + 2];
        const void *none[2]; /* no cache, FRONT_EMPTY; and no cache for the other */
        uint8_t kind;        /* FRONT_GONE */
    };
    /* Magazines at offsets for frees: all NULL, which is full. */
    const void *whole[OFFSET_FOR_FREES + 2 * CLASS_COUNT + 1];
};

#define EMPTY_FRONT ((struct front *)&front_empty)
#define GONE_FRONT ((struct front *)&front_empty.whole[1])

/* The calling thread's front. It waits while the background thread finds out whether this one
 * sleeps, for which its word points at EMPTY_FRONT (sleepers.h). Doors read the word itself: who
 * finds neither a block nor room there comes here. */
NOINLINE struct front *thread_front_settled(void);
INLINE struct front *thread_front(void)
{
    struct front *front = thread_word();

    return unlikely(front == EMPTY_FRONT) ? thread_front_settled() : front;
}

/* Without a block and without room. */
void front_clear(struct front *front, enum front_kind kind);

/* Its calls are counted, or enough of them to sample. */
INLINE bool front_is_counting(const struct front *front)
{
    return front->kind >= FRONT_OFF && front->kind <= FRONT_SAMPLED;
}

/* The two hot moves: magazine_take and magazine_put for the magazine at an offset. The compiler is
 * made to forget the offset between accesses, so that each carries its own address and moving `top`
 * is one instruction on memory: 3 fewer than with the address in a register
 * (docs/decisions/0002). */
INLINE void **magazine_word(struct front *front, size_t offset) { return (void **)front + offset; }

INLINE void *front_take(struct front *front, size_t offset)
{
    void *block = **(void ***)magazine_word(front, offset);

    if (likely(block != NULL)) {
        FORGET(offset);
        --*(void ***)magazine_word(front, offset);
    }
    return block;
}

INLINE bool front_put(struct front *front, size_t offset, void *block)
{
    void **top = *magazine_word(front, offset);

    FORGET(offset);
    if (unlikely(top == *magazine_word(front, offset + 1))) return false;
    top[1] = block;
    FORGET(offset);
    ++*(void ***)magazine_word(front, offset);
    return true;
}

/* left[c] for the offset of c: both go by two bytes, or words. */
INLINE uint16_t *left_at(const uint16_t *left, size_t offset)
{
    return (uint16_t *)((char *)left + offset);
}

/* The usual way of a sampled thread: a block that may pass unseen, out of the magazine that frees
 * go to. NULL: another way must be taken, as by all other threads. */
INLINE void *front_take_unseen(struct front *front, size_t offset)
{
    const uint16_t *left = front->left;
    void *block;

    if (*left_at(left, offset) == 0) return NULL;
    block = **(void ***)magazine_word(front, offset + OFFSET_FOR_FREES);
    if (unlikely(block == NULL)) return NULL;
    FORGET(offset);
    --*left_at(left, offset);
    --*(void ***)magazine_word(front, offset + OFFSET_FOR_FREES);
    return block;
}

#endif
