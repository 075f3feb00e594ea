/* large_cache.h - the runs of pages that a thread keeps for its next large blocks.
 *
 * A thread keeps the last run that it freed of each kind, so that its next block of just that many
 * pages takes no lock and changes no map. Of a kind whose runs it gave back and wanted again it keeps
 * more. For the page heap a cached run is a large block; a mark in its record tells the doors that
 * the program does not hold it. A staggered one (heap/large.c) is of another kind than one of as many
 * pages that is not, and stays staggered: the next block of its kind begins where it did.
 *
 * L1  list[kind] links list[kind].count runs of that kind in state PAGE_LARGE, which are marked
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

/* Large blocks of one kind are equally long: so many pages, staggered or not. */
enum { LARGE_KINDS = 2 * (LARGE_CACHE_PAGES_MAX + 1) };
INLINE size_t large_kind(size_t pages, bool is_staggered) { return 2 * pages + is_staggered; }

/* The runs of one kind. */
struct cached_runs {
    char *first; /* the block that was freed last; NULL: there is none */
    uint8_t count, max;
    uint8_t given; /* of this kind, back to the page heap since one was wanted last */
};

struct large_cache {
    struct cached_runs list[LARGE_KINDS]; /* L1 */
    uint32_t room_pages;                  /* L2 */
    uint64_t takes;                       /* statistics: large blocks that came from here */
};

/* How many runs for blocks of that size may be kept at once. */
size_t large_cache_runs_max(size_t bytes);

/* Of the runs that are kept. */
INLINE size_t large_cache_bytes(const struct large_cache *large_cache)
{
    size_t most = LARGE_CACHE_BYTES_MAX / page_bytes();

    return (most - large_cache->room_pages) * page_bytes();
}

/* Staggered blocks (heap/large.c) that were taken, less those given back to the page heap, by threads
 * that have no cache, or had another one; atomic. */
extern PRIVATE uint32_t large_staggered_before;

/* So many more blocks are staggered; UINT32_MAX: one less. NULL: of a thread that has no cache. */
void large_cache_count_staggered(struct cache *cache, uint32_t more);

/* What the program held, and no arena owns, is to go back, staggered or not. `cache`: the thread's;
 * NULL: it has none. Returns its first page's address. */
INLINE char *large_end_stagger(struct cache *cache, struct page *record, char *block)
{
    char *run = block - page_begin_offset(record);

    if (!page_is_staggered(record)) return block;
    page_unmark_staggered(record);
    large_cache_count_staggered(cache, UINT32_MAX);
    return run;
}

/* Counts a block that was asked for, and begins to keep runs after enough of them. */
void large_cache_begin_soon(struct cache *cache);

/* The first one is no longer kept. Its record is still marked. */
INLINE void large_cache_unlink(struct large_cache *large_cache, struct cached_runs *list,
                               struct page *record, size_t pages)
{
    list->first = record->cached_next;
    record->cached_next = NULL; /* R3 */
    RELAXED_STORE(list->count, (uint8_t)(list->count - 1));
    RELAXED_STORE(large_cache->room_pages, large_cache->room_pages + (uint32_t)pages);
}

/* The block of this kind that was freed last, in the first region; NULL: none is kept, or it is not
 * there. */
INLINE void *large_cache_take(struct large_cache *large_cache, size_t pages, bool is_staggered)
{
    struct cached_runs *list = &large_cache->list[large_kind(pages, is_staggered)];
    char *block = list->first;
    struct page *record;

    if (unlikely(!is_in_first_region(block))) return NULL;
    record = page_record(page_of_first(block));
    large_cache_unlink(large_cache, list, record, pages);
    RELAXED_STORE(large_cache->takes, large_cache->takes + 1);
    page_end_cached(record);
    return block;
}

/* The run of a block of so many pages of either kind, better of that of a staggered one; not
 * staggered any more. NULL: none is kept. */
char *large_cache_take_run(struct cache *cache, size_t pages, bool is_staggered);

/* Takes in a large block that has no fence, not longer than LARGE_CACHE_PAGES_MAX. False: as many of
 * its kind are there already, or that would be too much. */
INLINE bool large_cache_put(struct large_cache *large_cache, struct page *record, char *block)
{
    uint32_t pages = record->run_pages;
    struct cached_runs *list = &large_cache->list[large_kind(pages, page_is_staggered(record))];

    if (unlikely(list->count >= list->max) || unlikely(pages > large_cache->room_pages))
        return false;
    record->cached_next = list->first;
    list->first = block;
    RELAXED_STORE(list->count, (uint8_t)(list->count + 1));
    RELAXED_STORE(large_cache->room_pages, large_cache->room_pages - pages);
    page_begin_cached(record);
    return true;
}

/* The same of one that it does not take: room is made for it, or not. Returns the run that goes back
 * to the page heap, perhaps its own, not staggered any more; 0: none. */
uint32_t large_cache_replace(struct cache *cache, uint32_t page, char *block);

/* Gives all back. */
void large_cache_drain(struct cache *cache);
/* Takes of large caches that no thread has any more. */
extern PRIVATE uint64_t large_cache_takes_before; /* atomic, written under threads_lock */
/* Its takes are among those from now on. Under threads_lock, under which both are counted. */
void large_cache_pass_takes_on(struct large_cache *large_cache);
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
