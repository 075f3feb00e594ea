/* kept.h - the runs of pages that a thread keeps for its next large blocks.
 *
 * Programs read into a buffer of 64 KiB, cut it or free it, and take the next one. Leasing and returning its
 * run each time is two locks and, as a rule, a merge and a split. So a thread keeps the last run that it freed
 * of each length, and its next block of just that many pages takes no lock and changes no map.
 *
 * For the keeper of runs a kept run is a large block; a mark in its record tells the doors that the program
 * does not hold it.
 *
 * E1  run[n] is no block, or a run of n pages in state PAGE_LARGE whose record is marked
 * E2  room_pages is what the sum of their lengths leaves of KEPT_BYTES_MAX
 * Written by the owner thread only. The statistics read it without a lock and allow for being a moment late.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_KEPT_H
#define PRAIRIE_CACHE_KEPT_H

#include "cache.h"

/* A thread that asks now and then only keeps none: it has asked for this many blocks first. */
enum { KEPT_AFTER = 8 };

struct kept_run {
    char *block; /* NULL: there is none */
    uint32_t page;
};

struct kept {
    struct kept_run run[KEPT_LENGTH_MAX + 1]; /* E1: by length */
    uint32_t room_pages;                      /* E2 */
    uint64_t takes;                           /* statistics: large blocks that came from here */
};

/* Counts a block that was asked for, and begins to keep runs after enough of them. */
void kept_begin_soon(struct cache *cache);

/* A large block of this length; NULL: none is kept. */
INLINE void *kept_take(struct cache *cache, size_t pages)
{
    struct kept *kept = cache->kept;
    void *block;

    if (pages > KEPT_LENGTH_MAX) return NULL;
    if (unlikely(kept == NULL)) {
        kept_begin_soon(cache);
        return NULL;
    }
    block = kept->run[pages].block;
    if (block == NULL) return NULL;
    RELAXED_STORE(kept->run[pages].block, NULL);
    RELAXED_STORE(kept->room_pages, kept->room_pages + (uint32_t)pages);
    RELAXED_STORE(kept->takes, kept->takes + 1);
    page_unmark_kept(page_record(kept->run[pages].page));
    return block;
}

/* There is none of its length, and room. */
INLINE void kept_store(struct kept *kept, uint32_t page, char *block, uint32_t pages)
{
    page_mark_kept(page_record(page));
    kept->run[pages].page = page;
    RELAXED_STORE(kept->run[pages].block, block);
    RELAXED_STORE(kept->room_pages, kept->room_pages - pages);
}

/* When one of its length is there already, or that would be too much; the rest of kept_put. */
uint32_t kept_replace(struct kept *kept, uint32_t page, char *block, uint32_t pages);

/* Takes in the run of a large block. Returns the run that goes back to the keeper for it, perhaps itself; 0: none. */
INLINE uint32_t kept_put(struct cache *cache, uint32_t page, void *block)
{
    struct kept *kept = cache->kept;
    uint32_t pages = page_record(page)->run_pages;

    if (pages > KEPT_LENGTH_MAX || kept == NULL) return page;
    if (unlikely(kept->run[pages].block != NULL) || unlikely(pages > kept->room_pages))
        return kept_replace(kept, page, block, pages);
    kept_store(kept, page, block, pages);
    return 0;
}

/* Gives all back. */
void kept_drain(struct cache *cache);
/* Takes of threads that gave all back since. */
uint64_t kept_takes_drained(void);

/* What large blocks and their pages are counted too many by. */
struct kept_numbers {
    size_t pages, count;
    uint64_t takes;
};
/* Adds those of one cache, of a moment ago. */
void kept_add_numbers(const struct cache *cache, struct kept_numbers *sum);

void kept_check(const struct cache *cache);

#endif
