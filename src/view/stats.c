/* stats.c - sums up what the floors counted.
 * SPDX-License-Identifier: MIT
 */
#include "stats.h"

#include "../space/commit.h"
#include "../arenas/choose.h"
#include "../arenas/manual.h"
#include "../cache/large_cache.h"
#include "../cache/explicit_cache.h"
#include "../heap/notify.h"
#include "../policy/purge.h"
#include "../policy/reserve.h"

static void add_lock(struct prairie_stats *stats, const struct lock *lock)
{
    struct lock_numbers numbers = lock_numbers(lock);

    stats->lock_acquired += numbers.taken;
    stats->lock_contended += numbers.contended;
    stats->lock_waits += numbers.waits;
}

struct sums {
    struct prairie_stats *stats;
    struct large_cache_numbers cached_large;
};

/* The owner goes on meanwhile: the counts are of a moment that is just past. */
static READS_UNLOCKED void add_cache(const struct cache *cache, void *context)
{
    struct sums *sums = context;
    struct prairie_stats *stats = sums->stats;

    large_cache_add_numbers(cache, &sums->cached_large);
    stats->threads++;
    stats->refills += RELAXED_LOAD(cache->refills);
    stats->overflows += RELAXED_LOAD(cache->overflows);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        void **top = RELAXED_LOAD(cache->magazine[class_index].top);
        void **limit = RELAXED_LOAD(cache->magazine[class_index].limit);
        size_t capacity = RELAXED_LOAD(cache->spare[class_index].capacity);
        size_t blocks = RELAXED_LOAD(cache->spare[class_index].count);

        if (top <= limit && (size_t)(limit - top) <= capacity)
            blocks += capacity - (size_t)(limit - top);
        stats->cached += blocks * class_bytes[class_index];
    }
}

static void add_class_bin(struct prairie_stats *stats, const struct class_bin *bin,
                          unsigned class_index)
{
    size_t slab_blocks = bin->slab_count * slab_shape[class_index].block_count;
    size_t block_bytes = class_bytes[class_index];

    stats->allocated += (slab_blocks - bin->slab_free_blocks) * block_bytes;
    stats->active += bin->slab_count * slab_shape[class_index].bytes;
    stats->cached +=
        ((size_t)bin->depot.full_count * magazine_capacity(class_index) + bin->depot.opened_count)
        * block_bytes;
    stats->slab_fills += bin->fills;
    stats->slab_drains += bin->drains;
}

static void add_arena(struct prairie_stats *stats, struct arena *arena)
{
    lock_take(&arena->lock);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        add_class_bin(stats, &arena->bin[class_index], class_index);
    for (unsigned pages = 1; pages <= STOCK_PAGES_MAX; pages++)
        stats->dirty += (size_t)arena->stock[pages].count * pages << space.page_shift;
    if (arena->manual_large != NULL) {
        struct manual_sum sum = manual_sum(arena);
        stats->large_allocated += sum.bytes;
        stats->large_count += sum.count;
    }
    stats->depot_trades += arena->trades;
    add_lock(stats, &arena->lock);
    lock_give(&arena->lock);
    stats->arenas++;
}

static void add_past_arenas(struct prairie_stats *stats)
{
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        stats->slab_fills += RELAXED_LOAD(past_arenas.of_class[class_index].fills);
        stats->slab_drains += RELAXED_LOAD(past_arenas.of_class[class_index].drains);
    }
    stats->lock_acquired += RELAXED_LOAD(past_arenas.lock_taken);
    stats->lock_contended += RELAXED_LOAD(past_arenas.lock_contended);
    stats->lock_waits += RELAXED_LOAD(past_arenas.lock_waits);
}

static void add_pages(struct prairie_stats *stats, const struct large_cache_numbers *cached_large)
{
    unsigned shift = space.page_shift;
    size_t open_bytes;

    lock_take(&page_heap.lock);
    stats->dirty += (page_heap.free_pages[FREE_DIRTY] + cached_large->pages) << shift;
    stats->clean = page_heap.free_pages[FREE_CLEAN] << shift;
    stats->large_allocated +=
        (page_heap.large_pages - min_size(cached_large->pages, page_heap.large_pages)) << shift;
    stats->large_count +=
        page_heap.large_count - min_size(cached_large->count, page_heap.large_count);
    stats->mapped = space.open_bytes + commit.vast_bytes;
    open_bytes = space.open_bytes;
    stats->purged = page_heap.decay.purged_pages << shift;
    stats->purges = page_heap.decay.calls;
    stats->run_leases = page_heap.leases;
    stats->run_returns = page_heap.returns;
    add_lock(stats, &page_heap.lock);
    lock_give(&page_heap.lock);

    lock_take(&meta.lock);
    stats->metadata = commit.record_bytes + maps_bytes_for(open_bytes);
    add_lock(stats, &meta.lock);
    lock_give(&meta.lock);
}

static READS_UNLOCKED void add_reserve(struct prairie_stats *stats)
{
    stats->reserve_cur = reserve.pages << space.page_shift;
    stats->reserve_min = reserve.wanted_pages << space.page_shift;
    stats->reserve_uses = reserve.releases;
    stats->reserve_refills = reserve.refills;
    stats->events_low = notify_stats.events[RESERVE_CND_LOW];
    stats->events_crit = notify_stats.events[RESERVE_CND_CRIT];
    stats->event_calls = notify_stats.calls;
}

PUBLIC bool prairie_stats_read(struct prairie_stats *stats)
{
    size_t struct_bytes = stats->struct_bytes;
    struct sums sums = { stats, { 0, 0, 0 } };
    unsigned threads;

    if (struct_bytes != sizeof *stats) return false;
    __builtin_memset(stats, 0, sizeof *stats);
    stats->struct_bytes = struct_bytes;
    if (!heap_start()) return true; /* nothing is there: all zero */
    for (unsigned index = 0; index < arenas_end(); index++) {
        struct arena *arena = __atomic_load_n(&arenas[index], __ATOMIC_ACQUIRE);
        if (arena != NULL) add_arena(stats, arena);
    }
    add_past_arenas(stats);
    threads_visit(add_cache, &sums);
    threads = stats->threads;
    explicit_cache_visit(add_cache, &sums);
    stats->threads = threads;
    add_pages(stats, &sums.cached_large);
    add_reserve(stats);
    stats->allocated -= min_size(stats->cached, stats->allocated);
    stats->allocated += stats->large_allocated;
    stats->active += stats->large_allocated;
    stats->mapped += stats->metadata;
    stats->arena_hops = RELAXED_LOAD(arena_choices.hops);
    return true;
}

PUBLIC const char *prairie_version(void) { return PRAIRIE_VERSION; }
