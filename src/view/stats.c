/* stats.c - sums up what the floors counted.
 * SPDX-License-Identifier: MIT
 */
#include "stats.h"

#include "../arenas/choose.h"
#include "../arenas/explicit.h"
#include "../cache/kept.h"
#include "../cache/named.h"
#include "../heap/notify.h"
#include "../pages/purge.h"
#include "../pages/reserve.h"

static void add_lock(struct prairie_stats *stats, const struct lock *lock)
{
    struct lock_numbers numbers = lock_numbers(lock);

    stats->lock_acquired += numbers.taken;
    stats->lock_contended += numbers.contended;
    stats->lock_waits += numbers.waits;
}

struct sums {
    struct prairie_stats *stats;
    struct kept_numbers kept;
};

/* The owner goes on meanwhile: the counts are of a moment that is just past. */
static READS_UNLOCKED void add_cache(const struct cache *cache, void *context)
{
    struct sums *sums = context;
    struct prairie_stats *stats = sums->stats;

    kept_add_numbers(cache, &sums->kept);
    stats->threads++;
    stats->refills += RELAXED_LOAD(cache->refills);
    stats->overflows += RELAXED_LOAD(cache->overflows);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        void **top = RELAXED_LOAD(cache->magazine[class_index].top);
        void **limit = RELAXED_LOAD(cache->magazine[class_index].limit);
        size_t capacity = RELAXED_LOAD(cache->rack[class_index].capacity);
        size_t blocks = RELAXED_LOAD(cache->rack[class_index].spare_count);

        if (top <= limit && (size_t)(limit - top) <= capacity)
            blocks += capacity - (size_t)(limit - top);
        stats->cached += blocks * class_bytes[class_index];
    }
}

static void add_shelf(struct prairie_stats *stats, const struct shelf *shelf, unsigned class_index)
{
    size_t slab_blocks = shelf->slab_count * slab_shape[class_index].block_count;
    size_t block_bytes = class_bytes[class_index];

    stats->allocated += (slab_blocks - shelf->slab_free_blocks) * block_bytes;
    stats->active += shelf->slab_count * slab_shape[class_index].bytes;
    stats->cached += ((size_t)shelf->depot.full_count * magazine_capacity(class_index)
                      + shelf->depot.opened_count)
                   * block_bytes;
    stats->slab_fills += shelf->fills;
    stats->slab_drains += shelf->drains;
}

static void add_arena(struct prairie_stats *stats, struct arena *arena)
{
    lock_take(&arena->lock);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        add_shelf(stats, &arena->shelf[class_index], class_index);
    for (unsigned pages = 1; pages <= STOCK_PAGES_MAX; pages++)
        stats->dirty += (size_t)arena->stock[pages].count * pages << plain.page_shift;
    if (arena->owned != NULL) {
        struct owned_sum sum = owned_sum(arena);
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

static void add_pages(struct prairie_stats *stats, const struct kept_numbers *kept)
{
    unsigned shift = plain.page_shift;
    size_t open_bytes;

    lock_take(&keeper.lock);
    stats->dirty += (keeper.free_pages[FREE_DIRTY] + kept->pages) << shift;
    stats->clean = keeper.free_pages[FREE_CLEAN] << shift;
    stats->large_allocated += (keeper.large_pages - min_size(kept->pages, keeper.large_pages))
                           << shift;
    stats->large_count += keeper.large_count - min_size(kept->count, keeper.large_count);
    stats->mapped = plain.open_bytes + plain.vast_bytes;
    open_bytes = plain.open_bytes;
    stats->purged = purge_stats.purged_pages << shift;
    stats->purges = purge_stats.calls;
    stats->run_leases = keeper.leases;
    stats->run_returns = keeper.returns;
    add_lock(stats, &keeper.lock);
    lock_give(&keeper.lock);

    lock_take(&meta.lock);
    stats->metadata = meta.used_bytes + maps_bytes_for(open_bytes);
    add_lock(stats, &meta.lock);
    lock_give(&meta.lock);
}

static READS_UNLOCKED void add_reserve(struct prairie_stats *stats)
{
    stats->reserve_cur = reserve.pages << plain.page_shift;
    stats->reserve_min = reserve.wanted_pages << plain.page_shift;
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
    named_visit(add_cache, &sums);
    stats->threads = threads;
    add_pages(stats, &sums.kept);
    add_reserve(stats);
    stats->allocated -= min_size(stats->cached, stats->allocated);
    stats->allocated += stats->large_allocated;
    stats->active += stats->large_allocated;
    stats->mapped += stats->metadata;
    stats->arena_hops = RELAXED_LOAD(arena_choices.hops);
    return true;
}

PUBLIC const char *prairie_version(void) { return PRAIRIE_VERSION; }
