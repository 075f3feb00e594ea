/* large_cache.c - when a thread begins to keep runs, and when it lets go of them.
 * SPDX-License-Identifier: MIT
 */
#include "large_cache.h"

#include "../arenas/decay.h"

uint64_t large_cache_takes_before;
uint32_t large_staggered_before;

/* More are not kept of a kind. */
enum { CACHED_RUNS_MAX = 32 };

static uint32_t room_pages_max(void)
{
    return (uint32_t)(LARGE_CACHE_BYTES_MAX >> space.page_shift);
}

size_t large_cache_runs_max(size_t bytes)
{
    size_t pages = round_up(bytes, page_bytes()) >> space.page_shift;

    if (pages > LARGE_CACHE_PAGES_MAX) return 0;
    return min_size(room_pages_max() / pages, CACHED_RUNS_MAX);
}

void large_cache_begin_soon(struct cache *cache)
{
    struct large_cache *large_cache;

    if (++cache->large_takes % LARGE_CACHE_AFTER != 0) return;
    if (!cache_may_hold(cache, CLASS_COUNT - 1)) return;
    large_cache = meta_take(sizeof *large_cache);
    if (large_cache == NULL) return;
    large_cache->room_pages = room_pages_max();
    for (unsigned kind = 0; kind < LARGE_KINDS; kind++)
        large_cache->list[kind].max = kind / 2 <= room_pages_max();
    __atomic_store_n(&cache->large_cache, large_cache, __ATOMIC_RELEASE);
}

/* The block of that kind that was freed last; there is one. Its run's first page. */
static uint32_t pop(struct cache *cache, size_t kind)
{
    struct cached_runs *list = &cache->large_cache->list[kind];
    uint32_t page = page_at(list->first);
    struct page *record = page_record(page);

    large_cache_unlink(cache->large_cache, list, record, kind / 2);
    page_unmark_cached(record);
    RELAXED_STORE(cache->staggered, cache->staggered - (uint32_t)(kind % 2));
    return page;
}

/* Of the same length. */
static size_t other_kind(size_t kind) { return kind ^ 1; }

/* All kinds: what is full of one phase's lengths makes room for the next one's. */
void large_cache_drain(struct cache *cache)
{
    const struct cached_runs *list = cache->large_cache->list;
    uint32_t runs[LARGE_CACHE_BYTES_MAX / (4 * KiB)]; /* L2 */
    size_t pages = room_pages_max() - cache->large_cache->room_pages;
    unsigned count = 0;

    for (size_t kind = 0; pages != 0; kind++) {
        for (; list[kind].first != NULL; pages -= kind / 2) runs[count++] = pop(cache, kind);
    }
    if (count != 0) run_return_batch(runs, count);
}

/* Runs of a kind that were given back since one was wanted are kept from now on. */
static void keep_more(struct cached_runs *list)
{
    list->max = (uint8_t)min_size((size_t)list->max + list->given, CACHED_RUNS_MAX);
    list->given = 0;
}

char *large_cache_take_run(struct cache *cache, size_t pages, bool is_staggered)
{
    struct large_cache *large_cache = cache->large_cache;
    size_t kind = large_kind(pages, is_staggered);

    if (large_cache->list[kind].first == NULL) {
        keep_more(&large_cache->list[kind]);
        kind = other_kind(kind);
        if (large_cache->list[kind].first == NULL) return NULL;
    }
    RELAXED_STORE(large_cache->takes, large_cache->takes + 1);
    return page_address(pop(cache, kind));
}

/* What is full of other kinds makes room. Nothing is left for the caller to return, so the look at
 * the purge budget is here: a program whose lengths take turns would come by no other. */
static void drain_and_put(struct cache *cache, struct page *record, char *block)
{
    large_cache_drain(cache);
    (void)large_cache_put(cache->large_cache, record, block);
    if (unlikely(decay_after_return())) cache_drain_all(cache);
}

/* Of the runs of one length the one that was freed last stays: it is warm. When there is none of its
 * length, all others go. */
uint32_t large_cache_replace(struct cache *cache, uint32_t page, char *block)
{
    struct page *record = page_record(page);
    size_t kind = large_kind(record->run_pages, page_is_staggered(record));
    struct cached_runs *list = &cache->large_cache->list[kind];
    uint32_t older;

    if (list->max == 0) {
        (void)large_end_stagger(cache, record, block);
        return page;
    }
    if (list->first != NULL) {
        if (list->given < CACHED_RUNS_MAX) list->given++;
    } else {
        kind = other_kind(kind);
        if (cache->large_cache->list[kind].first == NULL) {
            drain_and_put(cache, record, block);
            return 0;
        }
    }
    older = pop(cache, kind);
    (void)large_cache_put(cache->large_cache, record, block);
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
    for (unsigned kind = 0; kind < LARGE_KINDS; kind++) {
        uint8_t count = RELAXED_LOAD(large_cache->list[kind].count);

        sum->count += count;
        if (kind % 2 != 0) sum->staggered -= count;
    }
}

void large_cache_check(const struct cache *cache)
{
    const struct large_cache *large_cache = cache->large_cache;
    size_t sum = 0;

    if (large_cache == NULL) return;
    for (unsigned kind = 0; kind < LARGE_KINDS; kind++) {
        const struct cached_runs *list = &large_cache->list[kind];
        const struct page *record;
        unsigned count = 0;

        for (const char *block = list->first; block != NULL; block = record->cached_next) {
            record = page_record(page_at(block));
            require(page_is_cached(record) && large_begin(page_at(block)) == block
                    && large_kind(record->run_pages, page_is_staggered(record)) == kind); /* L1 */
            count++;
        }
        require(count == list->count && count <= list->max); /* L1 */
        sum += (size_t)count * (kind / 2);
    }
    require(large_cache->room_pages + sum == room_pages_max()); /* L2 */
}
