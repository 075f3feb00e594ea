/* snapshot.c - sums up what the floors counted, for each arena and each class, for whoever asks;
 * and keeps the control tree's snapshot.
 * SPDX-License-Identifier: MIT
 */
#include "snapshot.h"

#include "../arenas/decay.h"
#include "../arenas/manual.h"
#include "../cache/cache_list.h"
#include "../cache/explicit_cache.h"
#include "../cache/large_cache.h"
#include "../cache/quarantine.h"
#include "../guard/guarded.h"
#include "../heap/doors.h"
#include "../heap/notify.h"
#include "../heap/vast.h"
#include "../policy/purge.h"
#include "../policy/reserve.h"
#include "../space/commit.h"

/* One count. */
struct count {
    struct snapshot *numbers;
    struct snapshot_arena *const *arenas;    /* by number, some NULL; or NULL: all count as one */
    unsigned arena_end;                      /* 1 when all count as one */
    uint64_t supplied_dirty, supplied_clean; /* bytes of free pages of arenas with hooks */
    struct large_cache_numbers cached_large; /* of all threads: blocks that no program holds */
    size_t waiting_pages, waiting_runs;      /* of all quarantines; but no open pages */
    bool is_explicit;                        /* caches of no thread are being counted */
};

uint64_t snapshot_begin_ms;

void snapshot_begin(void) { snapshot_begin_ms = os_now_ms(); }

/* Where the numbers of that arena go; NULL: it was made just now. */
static struct snapshot_arena *place_of(const struct count *count, unsigned index)
{
    if (count->arenas == NULL) return &count->numbers->all;
    return index < count->arena_end ? count->arenas[index] : NULL;
}

/* Of two structs that are 64-bit numbers up to there. */
static void add_words(void *sum, const void *part, size_t bytes)
{
    uint64_t *into = sum;
    const uint64_t *from = part;

    for (size_t i = 0; i < bytes / sizeof *into; i++) into[i] += from[i];
}

/* `blocks` is what is out of the slabs until what is cached is known. */
static void count_bin(const struct class_bin *bin, unsigned class_index,
                      struct snapshot_class *into)
{
    into->slabs += bin->slab_count;
    into->slabs_not_full += bin->partial.count;
    into->slabs_opened += bin->flow.slabs_opened;
    into->blocks += bin_blocks(bin, class_index) - bin->slab_free_blocks;
    into->cached +=
        (uint64_t)bin->depot.full.count * magazine_capacity(class_index) + bin->depot.opened_count;
    into->fills += bin->flow.fills;
    into->drains += bin->flow.drains;
    into->taken += bin->flow.blocks_taken;
}

/* Staggered blocks are shorter than their pages. Their number may be behind by some that others
 * gave back, so that it is less than none, or ahead of pages that went back after it was read. */
static void take_spare_off(uint32_t staggered, struct snapshot_arena *into)
{
    size_t bytes = staggered <= INT32_MAX ? (size_t)staggered * PAGE_STAGGERED : 0;

    bytes = min_size(bytes, into->large.allocated);
    into->large.allocated -= bytes;
    into->active += bytes;
}

static void count_arena(struct count *count, struct arena *arena, struct snapshot_arena *into)
{
    unsigned shift = space.page_shift;

    lock_take(&arena->lock);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        count_bin(&arena->bin[class_index], class_index, &into->of_class[class_index]);
        into->active += arena->bin[class_index].slab_count * slab_shape[class_index].bytes;
    }
    for (unsigned pages = 1; pages <= STOCK_PAGES_MAX; pages++)
        into->dirty += (size_t)arena->stock[pages].count * pages << shift;
    into->active -= (size_t)arena->purged_pages << shift;
    into->clean += (size_t)arena->purged_pages << shift;
    into->large.taken += arena->manual_taken;
    for (const struct manual_large *owner = arena->manual_large; owner != NULL;
         owner = owner->next) {
        into->large.allocated += (size_t)page_record(owner->page)->run_pages << shift;
        into->large_count++;
    }
    take_spare_off(arena->staggered, into);
    if (arena->extents != NULL) {
        const size_t *free_pages = arena->extents->heap.free_pages;
        into->dirty += free_pages[FREE_DIRTY] << shift;
        into->clean += free_pages[FREE_CLEAN] << shift;
        count->supplied_dirty += free_pages[FREE_DIRTY] << shift;
        count->supplied_clean += free_pages[FREE_CLEAN] << shift;
    }
    count->numbers->depot_trades += arena->trades;
    count->numbers->arenas_made++;
    lock_numbers_add(&into->locks[ARENA_LOCK_OWN], lock_numbers(&arena->lock));
    lock_give(&arena->lock);
}

/* Its record may be another one by now: then the numbers are anything, but no more than there could
 * be. */
static READS_UNLOCKED void count_quarantine(struct count *count, struct snapshot_arena *into,
                                            const struct cache *cache)
{
    const struct quarantine *quarantine = quarantine_of(cache);
    size_t pages, open_pages;

    if (quarantine == NULL) return;
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        const struct held_class *held = &quarantine->held[class_index];

        into->of_class[class_index].cached +=
            min_size(RELAXED_LOAD(held->waiting_count), WAITING_BLOCKS_MAX);
    }
    pages = min_size(RELAXED_LOAD(quarantine->run_pages), WAITING_RUN_BYTES >> space.page_shift);
    open_pages = min_size(RELAXED_LOAD(quarantine->all_open_pages),
                          min_size(pages, OPEN_RUNS_BYTES_MAX >> space.page_shift));
    count->cached_large.pages += open_pages; /* they keep what is in them, as cached runs do */
    count->waiting_pages += pages - open_pages;
    count->waiting_runs += min_size(RELAXED_LOAD(quarantine->run_count), WAITING_RUNS);
}

/* Guarded blocks are of no arena. One that a sized free put into a magazine is held, as far as the
 * pool knows, and taken off with all that is cached. */
static void count_guarded(struct count *count, struct snapshot_arena *into)
{
    struct guarded_numbers guarded;
    size_t held = 0;

    guarded_count(&guarded);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        into->of_class[class_index].blocks += guarded.held[class_index];
        into->of_class[class_index].taken += guarded.taken[class_index];
        held += guarded.held[class_index];
    }
    into->active += held << space.page_shift;
    count->numbers->opened += held << space.page_shift;
}

/* The owner goes on meanwhile: the counts are of a moment that is just past. */
static READS_UNLOCKED void count_cache(const struct cache *cache, void *context)
{
    struct count *count = context;
    const struct arena *home = RELAXED_LOAD(cache->arena);
    struct snapshot_arena *into = home != NULL ? place_of(count, home->index) : NULL;

    if (into == NULL) into = place_of(count, 0);
    if (!count->is_explicit && !cache_is_abandoned(cache)) into->threads++;
    large_cache_add_numbers(cache, &count->cached_large);
    count_quarantine(count, into, cache);
    count->numbers->refills += RELAXED_LOAD(cache->refills);
    count->numbers->overflows += RELAXED_LOAD(cache->overflows);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        void **top = RELAXED_LOAD(cache->front.magazine[class_index].top), **limit;
        size_t capacity, room;

        BETWEEN_READS(count_cache);
        limit = RELAXED_LOAD(cache->front.magazine[class_index].limit);
        capacity = RELAXED_LOAD(cache->spare[class_index].capacity);
        into->of_class[class_index].cached += RELAXED_LOAD(cache->spare[class_index].count);
        room = (size_t)(limit - top) + RELAXED_LOAD(cache->spare[class_index].closed);
        if (top <= limit && room <= capacity) into->of_class[class_index].cached += capacity - room;
    }
}

/* Of all shared page heaps. */
struct page_sums {
    size_t open_pages; /* without the seams, which nobody can have */
    size_t taken_most, large_pages, large_count;
};

static struct page_sums count_page_heaps(struct count *count, struct snapshot_arena *into)
{
    struct page_sums sums = { 0, 0, 0, 0 };

    for (unsigned i = 0; i < page_heap_count(); i++) {
        struct page_heap *heap = &page_heap[i];

        lock_take(&heap->lock);
        into->dirty += heap->free_pages[FREE_DIRTY] << space.page_shift;
        into->clean += heap->free_pages[FREE_CLEAN] << space.page_shift;
        sums.open_pages += heap->open_pages;
        sums.taken_most += page_heap_taken_most(heap);
        sums.large_pages += heap->large_pages;
        sums.large_count += page_heap_large_count(heap);
        into->large.taken += heap->large_leases;
        count->numbers->leases += heap->leases;
        count->numbers->returns += heap->returns;
        into->purges += purge[i].calls;
        into->purged_pages += purge[i].purged_pages;
        lock_numbers_add(&into->locks[ARENA_LOCK_RUNS], lock_numbers(&heap->lock));
        lock_give(&heap->lock);
    }
    return sums;
}

/* What lies in large caches and quarantines is large blocks for the page heaps, and none for the
 * program. */
static void count_large(const struct count *count, struct snapshot_arena *into,
                        const struct page_sums *sums)
{
    const struct large_cache_numbers *cached = &count->cached_large;
    size_t gone_pages = min_size(cached->pages + count->waiting_pages, sums->large_pages);
    size_t gone_count = min_size(cached->count + count->waiting_runs, sums->large_count);

    into->dirty += cached->pages << space.page_shift;
    into->clean += min_size(count->waiting_pages, gone_pages) << space.page_shift;
    into->large.allocated += (sums->large_pages - gone_pages) << space.page_shift;
    take_spare_off(cached->staggered, into);
    into->large.taken += cached->takes;
    into->large_count += sums->large_count - gone_count;
}

/* Both maps and the zone: what is in use of them, and the room that is there for more. */
static void count_metadata(struct snapshot_arena *into, size_t open_bytes, size_t taken_bytes)
{
    into->metadata_map = maps_bytes_for(taken_bytes);
    into->mapped = maps_bytes_for(max_size(open_bytes, taken_bytes)) - into->metadata_map;
    lock_take(&meta.lock);
    into->metadata_records = commit.record_bytes;
    into->mapped += (size_t)(meta.zone_end - meta.open_base) - commit.record_bytes;
    into->locks[ARENA_LOCK_META] = lock_numbers(&meta.lock);
    lock_give(&meta.lock);
}

static void count_pages(struct count *count, struct snapshot_arena *into)
{
    struct page_sums sums = count_page_heaps(count, into);
    size_t open_bytes;

    lock_take(&space.lock);
    open_bytes = space.open_bytes;
    lock_numbers_add(&into->locks[ARENA_LOCK_RUNS], lock_numbers(&space.lock));
    lock_give(&space.lock);
    count_large(count, into, &sums);
    count->numbers->opened =
        (sums.open_pages << space.page_shift) + RELAXED_LOAD(commit.vast_bytes);
    count_metadata(into, open_bytes, sums.taken_most << space.page_shift);
}

/* ---- what follows from the counts ---- */

/* Takes up to `cached` blocks off those that are out; what cannot be taken off is returned. */
static uint64_t take_off(struct snapshot_class *numbers, uint64_t cached)
{
    uint64_t part = cached < numbers->blocks ? cached : numbers->blocks;

    numbers->blocks -= part;
    numbers->cached_of_arena += part;
    return cached - part;
}

/* A thread holds blocks of other arenas too, so that an arena may have fewer out than wait. V2 */
static void take_cached_off(const struct count *count, unsigned class_index)
{
    uint64_t rest = 0;

    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned index = 0; index < count->arena_end; index++) {
            struct snapshot_arena *arena = place_of(count, index);
            struct snapshot_class *numbers;

            if (arena == NULL) continue;
            numbers = &arena->of_class[class_index];
            rest = pass == 0 ? rest + take_off(numbers, numbers->cached) : take_off(numbers, rest);
        }
}

/* V1 */
static void finish_arena(struct snapshot_arena *arena)
{
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        struct snapshot_class *numbers = &arena->of_class[class_index];

        numbers->given = numbers->taken - numbers->blocks - numbers->cached_of_arena;
        arena->small.allocated += numbers->blocks * class_bytes[class_index];
        arena->small.taken += numbers->taken;
        arena->small.given += numbers->given;
        arena->small.fills += numbers->fills;
        arena->small.drains += numbers->drains;
        arena->cached += numbers->cached * class_bytes[class_index];
    }
    arena->large.given = arena->large.taken - arena->large_count;
    arena->large.requests = arena->large.fills = arena->large.taken;
    add_words(&arena->all, &arena->small, sizeof arena->all);
    add_words(&arena->all, &arena->large, sizeof arena->all);
    arena->active += arena->large.allocated;
    arena->metadata = arena->metadata_records + arena->metadata_map;
    arena->resident = arena->active + arena->dirty + arena->reserve + arena->metadata;
    arena->mapped += arena->resident;
    arena->active_pages = arena->active >> space.page_shift;
    arena->dirty_pages = arena->dirty >> space.page_shift;
    arena->purged_bytes = arena->purged_pages << space.page_shift;
}

/* All is one 64-bit sum after the other, but the locks. */
static void add_arena(struct snapshot_arena *sum, const struct snapshot_arena *arena)
{
    add_words(sum, arena, offsetof(struct snapshot_arena, locks));
    for (unsigned i = 0; i < ARENA_LOCK_COUNT; i++)
        lock_numbers_add(&sum->locks[i], arena->locks[i]);
    add_words(sum->of_class, arena->of_class, sizeof sum->of_class);
}

static READS_UNLOCKED void count_reserve(struct snapshot *numbers, struct snapshot_arena *into)
{
    numbers->reserve = reserve.pages << space.page_shift;
    numbers->reserve_wanted = reserve.wanted_pages << space.page_shift;
    numbers->reserve_releases = reserve.releases;
    numbers->reserve_refills = reserve.refills;
    into->reserve = numbers->reserve;
    numbers->events_low = notify_stats.events[RESERVE_CND_LOW];
    numbers->events_crit = notify_stats.events[RESERVE_CND_CRIT];
    numbers->event_calls = notify_stats.calls;
}

/* Adds what destroyed arenas had counted. Under making_lock. */
static void count_past(struct snapshot_arena *into)
{
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        const struct class_flow *past = &past_arenas.of_class[class_index];
        struct snapshot_class *numbers = &into->of_class[class_index];

        numbers->fills += past->fills;
        numbers->drains += past->drains;
        numbers->taken += past->blocks_taken;
        numbers->slabs_opened += past->slabs_opened;
    }
    into->large.taken += past_arenas.manual_taken;
    lock_numbers_add(&into->locks[ARENA_LOCK_OWN], past_arenas.lock);
}

/* The lock is held as long, so that sums have an arena that is destroyed meanwhile once. Arenas
 * apart may have it here and in snapshot_past. */
static void count_arenas(struct count *count)
{
    lock_take(&making_lock);
    EACH_ARENA (arena)
        if (place_of(count, arena->index) != NULL)
            count_arena(count, arena, place_of(count, arena->index));
    if (count->arenas == NULL) count_past(&count->numbers->all);
    lock_give(&making_lock);
}

static void count_all(struct count *count)
{
    struct snapshot *numbers = count->numbers;
    struct decay_numbers decay_now = decay_numbers();
    struct large_cache_numbers before;

    count_arenas(count);
    before = cache_list_visit(count_cache, count);
    count->cached_large.takes += before.takes;
    count->cached_large.staggered += before.staggered;
    count->is_explicit = true;
    explicit_cache_visit(count_cache, count);
    count_pages(count, place_of(count, 0));
    count_guarded(count, place_of(count, 0));
    count_reserve(numbers, place_of(count, 0));
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        take_cached_off(count, class_index);
    numbers->arena_hops = RELAXED_LOAD(arena_hops);
    numbers->background_runs = decay_now.background_runs;
    numbers->background_looks = decay_now.looks;
    numbers->background_look_ns = decay_now.look_ms * 1000000;
    numbers->realloc_zero_calls = realloc_zero_calls();
    if (snapshot_begin_ms != 0) numbers->uptime_ns = (os_now_ms() - snapshot_begin_ms) * 1000000;
    numbers->uptime_seconds = numbers->uptime_ns / 1000000000;
}

static void finish_process(const struct count *count)
{
    struct snapshot *numbers = count->numbers;

    numbers->opened += numbers->all.metadata;
    numbers->own_dirty = numbers->all.dirty - count->supplied_dirty;
    numbers->own_clean = numbers->all.clean - count->supplied_clean;
    for (unsigned i = 0; i <= ARENA_LOCK_META; i++)
        lock_numbers_add(&numbers->locks, numbers->all.locks[i]);
}

/* ---- the whole ---- */

/* Counts now, into what is all 0. The numbers of each arena below the end go into `arenas_apart`,
 * where it is not NULL; the first one is there. `arenas_apart` NULL: sums only, with what destroyed
 * arenas had counted; else under control_lock. */
static void count_whole(struct snapshot *numbers, struct snapshot_arena *const *arenas_apart,
                        unsigned end)
{
    struct count count = { .numbers = numbers, .arenas = arenas_apart, .arena_end = 1 };

    if (arenas_apart != NULL) count.arena_end = end;
    count_all(&count);
    if (arenas_apart == NULL) {
        finish_arena(&numbers->all);
    } else {
        numbers->control_lock = lock_numbers(&control_lock);
        numbers->decay_lock = lock_numbers(&decay_lock);
        numbers->samples_lock = lock_numbers(&samples_lock);
        arenas_apart[0]->locks[ARENA_LOCK_THREADS] = lock_numbers(&threads_lock);
        for (unsigned index = 0; index < end; index++) {
            if (arenas_apart[index] == NULL) continue;
            finish_arena(arenas_apart[index]);
            add_arena(&numbers->all, arenas_apart[index]);
            if (index >= arena_limit) numbers->arena_count = index + 1;
        }
    }
    finish_process(&count);
}

/* ---- the control tree's ---- */

static struct {
    struct snapshot *numbers; /* under control_lock, as all of it */
    struct snapshot_arena *arenas[ARENA_INDEX_END];
    struct snapshot_arena *past;
    uint64_t epoch;
} room SPARSE;

_Static_assert(sizeof(struct snapshot) <= META_RECORD_BYTES_MAX, "a record");

/* Arena 0 also has what is nobody's, and so a place before it is made. */
static unsigned room_end(void) { return (unsigned)max_size(arenas_end(), 1); }

/* A record for the numbers of each arena, all 0. No hard limit refuses them. False: no memory, and
 * the old numbers stay. */
static bool room_ready(void)
{
    unsigned end = room_end();

    if (room.numbers == NULL) room.numbers = meta_take_past_limit(sizeof *room.numbers);
    if (room.numbers == NULL) return false;
    for (unsigned index = 0; index < end; index++) {
        struct snapshot_arena **place = &room.arenas[index];

        if (*place == NULL && (index == 0 || RELAXED_LOAD(arenas[index]) != NULL)) {
            *place = meta_take_past_limit(sizeof **place);
            if (*place == NULL) return false;
        }
    }
    for (unsigned index = 0; index < end; index++)
        if (room.arenas[index] != NULL)
            *room.arenas[index] = (struct snapshot_arena){ .threads = 0 };
    return true;
}

/* ---- who asks ---- */

void snapshot_sum(struct snapshot *numbers)
{
    *numbers = (struct snapshot){ .epoch = 0 };
    count_whole(numbers, NULL, 0);
}

const struct snapshot *snapshot_take(void)
{
    check(lock_is_mine(&control_lock));
    if (!room_ready()) return NULL;
    *room.numbers = (struct snapshot){ .epoch = ++room.epoch, .arena_count = arena_limit };
    count_whole(room.numbers, room.arenas, room_end());
    return room.numbers;
}

static void forget_lock(struct lock *lock)
{
    lock_take(lock);
    lock_forget_numbers(lock);
    lock_give(lock);
}

void snapshot_forget_locks(void)
{
    check(lock_is_mine(&control_lock));
    lock_forget_numbers(&control_lock);
    forget_lock(&threads_lock);
    forget_lock(&decay_lock);
    EACH_ARENA (arena) forget_lock(&arena->lock);
    lock_take(&making_lock);
    past_arenas.lock = (struct lock_numbers){ 0 };
    lock_give(&making_lock);
    page_heaps_each_lock(forget_lock, WALK_TAKES);
    forget_lock(&space.lock);
    forget_lock(&samples_lock);
    forget_lock(&meta.lock);
}

const struct snapshot *snapshot_get(void)
{
    check(lock_is_mine(&control_lock));
    return room.numbers != NULL && room.epoch != 0 ? room.numbers : snapshot_take();
}

const struct snapshot_arena *snapshot_past(void)
{
    check(lock_is_mine(&control_lock));
    if (RELAXED_LOAD(past_arenas.count) == 0) return NULL;
    if (room.past == NULL) room.past = meta_take_past_limit(sizeof *room.past);
    if (room.past == NULL) return NULL;
    *room.past = (struct snapshot_arena){ .threads = 0 };
    lock_take(&making_lock);
    count_past(room.past);
    lock_give(&making_lock);
    finish_arena(room.past);
    return room.past;
}

const struct snapshot_arena *snapshot_arena(unsigned index)
{
    check(lock_is_mine(&control_lock));
    return index < ARENA_INDEX_END ? room.arenas[index] : NULL;
}
