/* quarantine.h - what a thread of a hardened process holds back: freed blocks before others may have
 * them, and free ones before the program may.
 *
 * A block that was freed takes the place of another one, chosen at random, which goes to the cache;
 * a block that is wanted is chosen at random among a few, and another one takes its place. So nobody
 * can tell which block comes next, and one that was just freed does not come back for a while.
 * Large runs, whose pages are guarded, leave in the order in which they came.
 *
 *      freed --> waiting[] --> the cache --> ready[] --> taken
 *
 * Q1  ready[] and waiting[] of a class hold blocks of it from hardened arenas that are not manual
 * Q2  run[] holds first pages of large runs whose record is marked as cached
 * Belongs to a cache, and is given up when that is drained. Written by the owner thread only.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_QUARANTINE_H
#define PRAIRIE_CACHE_QUARANTINE_H

#include "cache.h"

enum {
    READY_BLOCKS_MAX = 4, /* of each class: with 16 a program walks its lists a third slower */
    READY_BYTES_MAX = 8192,
    WAITING_BLOCKS_MAX = 64,
    WAITING_BYTES_MAX = 8192,
    HELD_BLOCKS_MIN = 2, /* but so many of either */
    WAITING_RUNS = 16
};
/* Of the runs of all threads: they count as used. */
#define WAITING_RUN_BYTES BY_WORD(64 * MiB, 8 * MiB)

struct held_class {
    uint16_t ready_count, waiting_count; /* atomic: the statistics read them */
    uint16_t ready_max, waiting_max;
    unsigned looked_at; /* of those that wait */
    void **slot; /* Q1: ready[ready_max], then waiting[waiting_max]; NULL: nothing came by yet */
};

struct quarantine {
    uint64_t random;
    struct held_class held[CLASS_COUNT];
    uint32_t run[WAITING_RUNS]; /* Q2; 0: none */
    uint32_t run_pages;         /* atomic: the sum of their lengths */
    uint32_t run_count;         /* atomic */
    unsigned oldest_run;
};

/* That of a cache; NULL: it has none. */
INLINE struct quarantine *quarantine_of(const struct cache *cache)
{
    return cache->front.quarantine != 0 ? meta_record(cache->front.quarantine) : NULL;
}

/* The block goes in at random, and another one comes out. */
INLINE void *quarantine_swap(struct quarantine *quarantine, void **slots, unsigned count,
                             void *block)
{
    uint64_t random = quarantine->random * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;
    void **place = &slots[(random >> 32) * count >> 32], *other = *place;

    quarantine->random = random;
    *place = block;
    return other;
}

/* A block of the class, chosen at random. NULL: no memory. */
void *quarantine_take(struct cache *cache, unsigned class_index);
/* The same; NULL: another one would have to be fetched first. */
INLINE void *quarantine_take_ready(struct cache *cache, unsigned class_index)
{
    struct quarantine *quarantine = quarantine_of(cache);
    const struct held_class *held;
    void *block;

    if (unlikely(quarantine == NULL)) return NULL;
    held = &quarantine->held[class_index];
    if (unlikely(held->ready_count == 0)) return NULL;
    block = magazine_take(&cache->front.magazine[class_index]);
    if (unlikely(block == NULL)) return NULL;
    __builtin_prefetch(block, 1); /* it is wiped, and looked at when it leaves */
    return quarantine_swap(quarantine, held->slot, held->ready_count, block);
}

/* Takes a block in, which is nobody's from then on. Returns the one that leaves for the cache; NULL:
 * none does. */
void *quarantine_fill(struct cache *cache, unsigned class_index, void *block);
/* The same; NULL: nothing happened, and the other one must be called. */
INLINE void *quarantine_exchange(struct cache *cache, unsigned class_index, void *block)
{
    struct quarantine *quarantine = quarantine_of(cache);
    const struct held_class *held;

    if (unlikely(quarantine == NULL)) return NULL;
    held = &quarantine->held[class_index];
    if (unlikely(held->waiting_count == 0) || unlikely(held->waiting_count != held->waiting_max))
        return NULL;
    return quarantine_swap(quarantine, &held->slot[held->ready_max], held->waiting_max, block);
}
/* One of those of the class that wait, another one each time. NULL: there is none. */
void *quarantine_look(struct cache *cache, unsigned class_index);
/* The same of a large run whose data pages are guarded. */
void quarantine_put_run(struct cache *cache, uint32_t page);
/* Returns such a run to its page heap at once. */
void quarantine_return_run(uint32_t page);
/* Everything goes on to where it was on the way to. */
void quarantine_drain(struct cache *cache);

#endif
