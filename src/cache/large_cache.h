/* large_cache.h - the runs of pages that a thread keeps for its next large blocks.
 *
 * A thread keeps the last run that it freed of each length, so that its next block of just that
 * many pages takes no lock and changes no map. Of a length whose runs it gave back and wanted again
 * it keeps more, below the last one, linked through their records. For the page heap a cached run
 * is a large block; a mark in its record tells the doors that the program does not hold it.
 *
 * L1  run[n] is no block, or a run of n pages in state PAGE_LARGE whose record is marked; the same
 *     holds for the below[n].count runs below it
 * L2  room_pages is what the sum of their lengths leaves of LARGE_CACHE_BYTES_MAX
 * Written by the owner thread only. The statistics read it without a lock and allow for being a
 * moment late.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_LARGE_CACHE_H
#define PRAIRIE_CACHE_LARGE_CACHE_H

#include "cache.h"

/* A thread that asks now and then only keeps none: it has asked for this many blocks first. */
enum { LARGE_CACHE_AFTER = 8 };

struct cached_run {
    char *block; /* NULL: there is none */
    uint32_t page;
    uint32_t below; /* the first page of the next one below; 0: there is none */
};

/* How many runs of a length are kept below the last one. */
struct runs_below {
    uint8_t count, max;
    uint8_t given; /* of this length, back to the page heap since one was wanted last */
};

struct large_cache {
    struct cached_run run[LARGE_CACHE_PAGES_MAX + 1]; /* L1: by length */
    struct runs_below below[LARGE_CACHE_PAGES_MAX + 1];
    uint32_t room_pages; /* L2 */
    uint64_t takes;      /* statistics: large blocks that came from here */
};

/* How many runs for blocks of that size may be kept at once. */
size_t large_cache_runs_max(size_t bytes);

/* Of the runs that are kept. */
INLINE size_t large_cache_bytes(const struct large_cache *large_cache)
{
    size_t most = LARGE_CACHE_BYTES_MAX / page_bytes();

    return (most - large_cache->room_pages) * page_bytes();
}

/* Counts a block that was asked for, and begins to keep runs after enough of them. */
void large_cache_begin_soon(struct cache *cache);

/* A large block of this length; NULL: none is kept. */
INLINE void *large_cache_take(struct cache *cache, size_t pages)
{
    struct large_cache *large_cache = cache->large_cache;
    void *block;

    if (pages > LARGE_CACHE_PAGES_MAX || unlikely(large_cache == NULL)) return NULL;
    block = large_cache->run[pages].block;
    if (block == NULL) return NULL;
    RELAXED_STORE(large_cache->run[pages].block, NULL);
    RELAXED_STORE(large_cache->room_pages, large_cache->room_pages + (uint32_t)pages);
    RELAXED_STORE(large_cache->takes, large_cache->takes + 1);
    page_unmark_cached(page_record(large_cache->run[pages].page));
    return block;
}

/* The same when the last one freed of that length is taken; NULL: there is none below it either. */
void *large_cache_take_below(struct large_cache *large_cache, size_t pages);

/* There is none of its length, and room. */
INLINE void large_cache_store(struct large_cache *large_cache, uint32_t page, char *block,
                              uint32_t pages)
{
    page_mark_cached(page_record(page));
    large_cache->run[pages].page = page;
    RELAXED_STORE(large_cache->run[pages].block, block);
    RELAXED_STORE(large_cache->room_pages, large_cache->room_pages - pages);
}

/* When one of its length is there already, or that would be too much; the rest of
 * large_cache_put. The older one goes below, where there is room for it. */
uint32_t large_cache_replace(struct cache *cache, uint32_t page, char *block, uint32_t pages);

/* Takes in the run of a large block. Returns the run that goes back to the page heap for it,
 * perhaps itself; 0: none. */
INLINE uint32_t large_cache_put(struct cache *cache, uint32_t page, void *block)
{
    struct large_cache *large_cache = cache->large_cache;
    uint32_t pages = page_record(page)->run_pages;

    if (pages > LARGE_CACHE_PAGES_MAX || large_cache == NULL) return page;
    if (unlikely(large_cache->run[pages].block != NULL)
        || unlikely(pages > large_cache->room_pages))
        return large_cache_replace(cache, page, block, pages);
    large_cache_store(large_cache, page, block, pages);
    return 0;
}

/* Gives all back. */
void large_cache_drain(struct large_cache *large_cache);
/* Takes of large caches that no thread has any more. */
extern PRIVATE uint64_t large_cache_takes_before; /* atomic, written under threads_lock */
/* Its takes are among those from now on. Under threads_lock, under which both are counted. */
void large_cache_pass_takes_on(struct large_cache *large_cache);
/* Staggered blocks (heap/large.c) that were taken, less those given, by threads that have no cache,
 * or had another one; atomic. */
extern PRIVATE uint32_t large_staggered_before;

/* So many more blocks are staggered; UINT32_MAX: one less. NULL: of a thread that has no cache. */
void large_cache_count_staggered(struct cache *cache, uint32_t more);

/* Large blocks, and their pages, that are free but still counted. */
struct large_cache_numbers {
    size_t pages, count;
    uint32_t staggered;
    uint64_t takes;
};
/* Adds those of one cache, of a moment ago. */
void large_cache_add_numbers(const struct cache *cache, struct large_cache_numbers *sum);

void large_cache_check(const struct cache *cache);

#endif
