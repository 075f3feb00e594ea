/* quarantine.h - what a thread of a hardened process holds back: freed blocks before others may
 * have them.
 *
 * A block that was freed takes the place of another one, which goes to the cache. Groups of four
 * places are taken one after the other, but chance draws in which order those of a group are, and
 * where there are many of them leaves every fifth out or so. So nobody can tell when a block comes
 * back, and neighbours that were freed together come back together, where the processor expects
 * them. When the cache fetched blocks, they are shuffled in groups of four.
 * Large runs leave in the order in which they came: for one that comes when all places are taken,
 * or when all threads' runs would be too much. Closed ones are guarded and have no pages; open ones
 * are wiped and keep theirs, and may be taken again from here by who wants just as many, but for
 * the one that came last.
 *
 *      freed --> waiting[] --> the cache --> taken
 *
 * Q1  waiting[] of a class holds blocks of it from hardened arenas that are not manual, each once,
 *     waiting_count of them; else NULL
 * Q2  run[] holds first pages of large runs whose record is marked as cached, each once, run_count
 *     of them; run_pages is the sum of their lengths
 * Q3  open_pages[] has the lengths of those that are open, else 0; all_open_pages is their sum. The
 *     data of an open run read as zero; if its last page is guarded, the record of that says so
 * Belongs to a cache, and is given up when that is drained. Written by the owner thread only.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_QUARANTINE_H
#define PRAIRIE_CACHE_QUARANTINE_H

#include "cache.h"

/* In bin.previous of the record of a hardened large run's last page, and while it waits: nobody may
 * touch that page. */
enum { RUN_GUARDED = 1 << 8 };

enum { PAGE_BYTES_MIN = 4096 }; /* of any kernel */

/* How many blocks of a class wait: 512 bytes' worth, but 8 to 32 blocks; of larger blocks at most
 * 8 KiB's worth, but at least 2. Rounded down to a power of two. With more, what a program makes in
 * a row comes to lie in ever more places (docs/decisions/0035). */
enum {
    WAITING_BYTES_WANTED = 512,
    WAITING_BLOCKS_MAX = 32,
    WAITING_BLOCKS_WANTED = 8,
    WAITING_BYTES_MAX = 8192,
    WAITING_BLOCKS_MIN = 2,
    WAITING_RUNS = 16
};
/* Of the runs of all threads, which count as used; and at most this part of a hard limit, for who is
 * refused can empty no other thread's quarantine. */
#define WAITING_RUN_BYTES BY_WORD(64 * MiB, 8 * MiB)
#define WAITING_LIMIT_SHARE 8u
/* Of those of one thread that keep their pages. */
#define OPEN_RUNS_BYTES_MAX BY_WORD(2 * MiB, 256 * KiB)
/* What the kernel does to close pages, and to bring others in their place, takes a part of the
 * time: so many pages of the process at once, and so many in each millisecond. A call counts as
 * some. */
#define CLOSED_PAGES_AT_ONCE 2560u
#define CLOSED_PAGES_PER_MS 8u
#define CLOSED_PAGES_OF_CHILD 16u
#define CLOSING_COSTS_PAGES 10u

struct held_class {
    void **waiting;         /* Q1: so many places; NULL: nothing came by yet */
    uint64_t order;         /* the next places counted from 1, a byte each; 0: chance must draw */
    uint16_t waiting_max;   /* a power of two */
    uint16_t waiting_count; /* atomic: the statistics read it */
    uint16_t place;         /* where the next order begins */
    uint16_t looked_at;
};

struct quarantine {
    uint64_t random;
    struct held_class held[CLASS_COUNT];
    uint32_t run[WAITING_RUNS];        /* Q2; 0: none */
    uint32_t open_pages[WAITING_RUNS]; /* Q3 */
    uint32_t run_pages;                /* Q2; atomic: the statistics read it */
    uint32_t run_count;                /* Q2; atomic */
    uint32_t all_open_pages;           /* Q3; atomic: the statistics read it */
    unsigned oldest_run;
};

/* That of a cache; NULL: it has none. */
INLINE struct quarantine *quarantine_of(const struct cache *cache)
{
    uint32_t number = RELAXED_LOAD(cache->front.quarantine);

    return number != 0 ? meta_record(number) : NULL;
}

/* A block that is about to be taken: its pages are there when it is looked at. Long enough before,
 * for a processor waits where it reads more at once than what it wrote a moment ago. */
INLINE void quarantine_touch(char *block, size_t class_size)
{
    touch(block + class_size - sizeof(uint64_t));
    if (unlikely(class_size >= PAGE_BYTES_MIN)) touch(block);
}

/* A block of the class, and what the cache fetches for it is shuffled. NULL: no memory. */
void *quarantine_take(struct cache *cache, unsigned class_index);

/* Where blocks of the class wait; NULL: quarantine_fill must be called. */
INLINE struct held_class *quarantine_held(const struct cache *cache, unsigned class_index)
{
    struct quarantine *quarantine = quarantine_of(cache);

    if (unlikely(quarantine == NULL) || unlikely(quarantine->held[class_index].order == 0))
        return NULL;
    return &quarantine->held[class_index];
}

/* Takes a block in, which is nobody's from then on. Returns the one that leaves for the cache;
 * NULL: none does. */
INLINE void *quarantine_exchange(struct held_class *held, void *block)
{
    void **place = &held->waiting[(held->order & 0xff) - 1], *other = *place;

    held->order >>= 8;
    *place = block;
    if (unlikely(other == NULL))
        RELAXED_STORE(held->waiting_count, (uint16_t)(held->waiting_count + 1));
    return other;
}
/* The same, after chance has drawn the place. */
void *quarantine_fill(struct cache *cache, unsigned class_index, void *block);
/* One of those of the class that wait, another one each time. NULL: there is none. */
void *quarantine_look(struct cache *cache, unsigned class_index);

/* Takes in a large run whose data pages are guarded; the one that came first may leave for it. */
void quarantine_put_closed(struct cache *cache, uint32_t page);
/* Returns such a run to its page heap at once. */
void quarantine_return_closed(uint32_t page);
/* Takes in a large run that reads as zero, perhaps but for its last page. */
void quarantine_put_open(struct cache *cache, uint32_t page);
/* One of those, of just that length; NULL: there is none. */
void *quarantine_take_open(struct cache *cache, size_t pages);
/* Everything goes on to where it was on the way to. */
void quarantine_drain(struct cache *cache);
/* Aborts on a broken invariant, and where an open run was written to. */
void quarantine_check(const struct cache *cache);

/* May that many pages be closed? Then they are counted, more or less: other threads may count,
 * too. */
bool quarantine_may_close(size_t pages);
/* In the child of a fork: not all that the parent could have closed at once, for there may be many
 * children that do not live for long. */
void quarantine_close_less(void);
/* In it: what other threads' wait for counts no more. `mine`: this one's cache, or NULL. */
void quarantines_forget_others(const struct cache *mine);
extern PRIVATE uint32_t closing_left; /* atomic: pages that may still be closed at once, */
extern PRIVATE uint64_t closing_ms;   /* atomic: when that was reckoned; 0: not yet */

#endif
