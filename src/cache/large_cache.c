/* large_cache.c - when a thread begins to keep runs, and when it lets go of them.
 * SPDX-License-Identifier: MIT
 */
#include "large_cache.h"

#include "../arenas/decay.h"

uint64_t large_cache_takes_before;
uint32_t large_staggered_before;

/* More are not kept below the last one of a length. */
enum { RUNS_BELOW_MAX = 31 };

static uint32_t room_pages_max(void)
{
    return (uint32_t)(LARGE_CACHE_BYTES_MAX >> space.page_shift);
}

size_t large_cache_runs_max(size_t bytes)
{
    size_t pages = round_up(bytes, page_bytes()) >> space.page_shift;

    if (pages > LARGE_CACHE_PAGES_MAX) return 0;
    return min_size(room_pages_max() / pages, 1 + RUNS_BELOW_MAX);
}

void large_cache_begin_soon(struct cache *cache)
{
    struct large_cache *large_cache;

    if (++cache->large_takes % LARGE_CACHE_AFTER != 0) return;
    if (!cache_may_hold(cache, CLASS_COUNT - 1)) return;
    large_cache = meta_take(sizeof *large_cache);
    if (large_cache == NULL) return;
    large_cache->room_pages = room_pages_max();
    __atomic_store_n(&cache->large_cache, large_cache, __ATOMIC_RELEASE);
}

/* All lengths: what is full of one phase's lengths makes room for the next one's. */
void large_cache_drain(struct large_cache *large_cache)
{
    uint32_t runs[LARGE_CACHE_BYTES_MAX / (4 * KiB)]; /* L2 */
    unsigned count = 0;

    for (unsigned pages = 1; pages <= LARGE_CACHE_PAGES_MAX; pages++) {
        struct cached_run *run = &large_cache->run[pages];

        if (run->block != NULL) runs[count++] = run->page;
        RELAXED_STORE(run->block, NULL);
        for (uint32_t page = run->below; page != 0; page = page_record(page)->cached.below)
            runs[count++] = page;
        run->below = 0;
        RELAXED_STORE(large_cache->below[pages].count, 0);
    }
    for (unsigned i = 0; i < count; i++) page_unmark_cached(page_record(runs[i]));
    RELAXED_STORE(large_cache->room_pages, room_pages_max());
    if (count != 0) run_return_batch(runs, count);
}

void *large_cache_take_below(struct large_cache *large_cache, size_t pages)
{
    struct runs_below *below;
    uint32_t page;

    if (pages > LARGE_CACHE_PAGES_MAX) return NULL;
    below = &large_cache->below[pages];
    page = large_cache->run[pages].below;
    if (page == 0) {
        below->max = (uint8_t)min_size((size_t)below->max + below->given, RUNS_BELOW_MAX);
        below->given = 0;
        return NULL;
    }
    large_cache->run[pages].below = page_record(page)->cached.below;
    RELAXED_STORE(below->count, (uint8_t)(below->count - 1));
    RELAXED_STORE(large_cache->room_pages, large_cache->room_pages + (uint32_t)pages);
    RELAXED_STORE(large_cache->takes, large_cache->takes + 1);
    page_unmark_cached(page_record(page));
    return page_address(page);
}

/* The one that was freed last goes below. */
static void push_below(struct large_cache *large_cache, uint32_t pages)
{
    struct cached_run *run = &large_cache->run[pages];

    page_record(run->page)->cached.below = run->below;
    run->below = run->page;
    RELAXED_STORE(large_cache->below[pages].count, (uint8_t)(large_cache->below[pages].count + 1));
}

/* What is full of other lengths makes room. Nothing may be left for the caller to return, so the
 * look at the purge budget is here: a program whose lengths take turns would come by no other. */
static void drain_and_store(struct cache *cache, uint32_t page, char *block, uint32_t pages)
{
    large_cache_drain(cache->large_cache);
    large_cache_store(cache->large_cache, page, block, pages);
    if (unlikely(decay_after_return())) cache_drain_all(cache);
}

/* Of two runs of one length the one that was freed last stays: it is warm. The other one stays
 * below it when as many were given back before and wanted again. When there is none of its length,
 * all others go. */
uint32_t large_cache_replace(struct cache *cache, uint32_t page, char *block, uint32_t pages)
{
    struct large_cache *large_cache = cache->large_cache;
    struct runs_below *below = &large_cache->below[pages];
    uint32_t older = 0;

    if (pages > room_pages_max()) return page;
    if (large_cache->run[pages].block == NULL) {
        drain_and_store(cache, page, block, pages);
        return 0;
    }
    if (below->count < below->max && pages <= large_cache->room_pages) {
        push_below(large_cache, pages);
    } else {
        if (below->given < RUNS_BELOW_MAX) below->given++;
        older = large_cache->run[pages].page;
        page_unmark_cached(page_record(older));
        RELAXED_STORE(large_cache->room_pages, large_cache->room_pages + pages);
    }
    large_cache_store(large_cache, page, block, pages);
    return older;
}

void large_cache_pass_takes_on(struct large_cache *large_cache)
{
    RELAXED_STORE(large_cache_takes_before, large_cache_takes_before + large_cache->takes);
    RELAXED_STORE(large_cache->takes, 0);
}

void large_cache_count_staggered(struct cache *cache, uint32_t more)
{
    if (likely(cache != NULL)) RELAXED_STORE(cache->staggered, cache->staggered + more);
    else (void)__atomic_fetch_add(&large_staggered_before, more, __ATOMIC_RELAXED);
}

READS_UNLOCKED void large_cache_add_numbers(const struct cache *cache,
                                            struct large_cache_numbers *sum)
{
    const struct large_cache *large_cache = __atomic_load_n(&cache->large_cache, __ATOMIC_ACQUIRE);

    sum->staggered += RELAXED_LOAD(cache->staggered);
    if (large_cache == NULL) return;
    sum->pages += room_pages_max() - RELAXED_LOAD(large_cache->room_pages);
    sum->takes += RELAXED_LOAD(large_cache->takes);
    for (unsigned pages = 1; pages <= LARGE_CACHE_PAGES_MAX; pages++)
        sum->count += (size_t)(RELAXED_LOAD(large_cache->run[pages].block) != NULL)
                    + RELAXED_LOAD(large_cache->below[pages].count);
}

/* L1. Returns its pages. */
static size_t check_cached_run(uint32_t page, size_t pages)
{
    const struct page *record = page_record(page);

    require(page_is_cached(record) && record->run_pages == pages && record->slab == 0);
    return pages;
}

void large_cache_check(const struct cache *cache)
{
    const struct large_cache *large_cache = cache->large_cache;
    size_t sum = 0;

    if (large_cache == NULL) return;
    for (unsigned pages = 1; pages <= LARGE_CACHE_PAGES_MAX; pages++) {
        const struct cached_run *run = &large_cache->run[pages];
        unsigned count = 0;

        for (uint32_t page = run->below; page != 0; page = page_record(page)->cached.below) {
            sum += check_cached_run(page, pages);
            count++;
        }
        require(count == large_cache->below[pages].count); /* L1 */
        if (run->block == NULL) continue;
        sum += check_cached_run(run->page, pages);
        require(page_address(run->page) == run->block); /* L1 */
    }
    require(large_cache->room_pages + sum == room_pages_max()); /* L2 */
}
