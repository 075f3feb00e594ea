/* large_cache.c - when a thread begins to keep runs, and when it lets go of them.
 * SPDX-License-Identifier: MIT
 */
#include "large_cache.h"

uint64_t large_cache_takes_drained;

static uint32_t room_pages_max(void)
{
    return (uint32_t)(LARGE_CACHE_BYTES_MAX >> space.page_shift);
}

void large_cache_begin_soon(struct cache *cache)
{
    struct large_cache *large_cache;

    if (++cache->large_takes % LARGE_CACHE_AFTER != 0) return;
    if (!cache_may_hold(cache, CLASS_COUNT - 1)) return;
    large_cache = meta_take(sizeof *large_cache);
    if (large_cache == NULL) return;
    large_cache->room_pages = room_pages_max();
    RELAXED_STORE(cache->large_cache, large_cache);
}

/* All lengths: what is full of one phase's lengths makes room for the next one's. */
static void give_all_back(struct large_cache *large_cache)
{
    uint32_t runs[LARGE_CACHE_PAGES_MAX];
    unsigned count = 0;

    for (unsigned pages = 1; pages <= LARGE_CACHE_PAGES_MAX; pages++) {
        if (large_cache->run[pages].block == NULL) continue;
        page_unmark_cached(page_record(large_cache->run[pages].page));
        runs[count++] = large_cache->run[pages].page;
        RELAXED_STORE(large_cache->run[pages].block, NULL);
    }
    RELAXED_STORE(large_cache->room_pages, room_pages_max());
    if (count != 0) run_return_batch(runs, count);
}

/* Of two runs of one length the one that was freed last stays: it is warm. When there is none of
 * its length, all others go. */
uint32_t large_cache_replace(struct large_cache *large_cache, uint32_t page, char *block,
                             uint32_t pages)
{
    uint32_t older = 0;

    if (pages > room_pages_max()) return page;
    if (large_cache->run[pages].block == NULL) {
        give_all_back(large_cache);
    } else {
        older = large_cache->run[pages].page;
        page_unmark_cached(page_record(older));
        RELAXED_STORE(large_cache->room_pages, large_cache->room_pages + pages);
    }
    large_cache_store(large_cache, page, block, pages);
    return older;
}

void large_cache_drain(struct large_cache *large_cache)
{
    give_all_back(large_cache);
    (void)__atomic_fetch_add(&large_cache_takes_drained, large_cache->takes, __ATOMIC_RELAXED);
    RELAXED_STORE(large_cache->takes, 0);
}

READS_UNLOCKED void large_cache_add_numbers(const struct cache *cache,
                                            struct large_cache_numbers *sum)
{
    const struct large_cache *large_cache = RELAXED_LOAD(cache->large_cache);

    if (large_cache == NULL) return;
    sum->pages += room_pages_max() - RELAXED_LOAD(large_cache->room_pages);
    sum->takes += RELAXED_LOAD(large_cache->takes);
    for (unsigned pages = 1; pages <= LARGE_CACHE_PAGES_MAX; pages++)
        sum->count += RELAXED_LOAD(large_cache->run[pages].block) != NULL;
}

void large_cache_check(const struct cache *cache)
{
    const struct large_cache *large_cache = cache->large_cache;
    size_t sum = 0;

    if (large_cache == NULL) return;
    for (unsigned pages = 1; pages <= LARGE_CACHE_PAGES_MAX; pages++) {
        const struct page *record = page_record(large_cache->run[pages].page);

        if (large_cache->run[pages].block == NULL) continue;
        require(page_is_cached(record) && record->run_pages == pages); /* L1 */
        require(page_address(large_cache->run[pages].page)
                == large_cache->run[pages].block); /* L1 */
        sum += pages;
    }
    require(large_cache->room_pages + sum == room_pages_max()); /* L2 */
}
