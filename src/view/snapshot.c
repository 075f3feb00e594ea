/* snapshot.c - sums up what the floors counted, for each arena and each class.
 * SPDX-License-Identifier: MIT
 */
#include "snapshot.h"

#include "../space/commit.h"
#include "../arenas/choose.h"
#include "../arenas/decay.h"
#include "../cache/large_cache.h"
#include "../cache/explicit_cache.h"
#include "../guard/sample.h"
#include "../policy/purge.h"

static struct {
    struct snapshot *numbers; /* under control_lock, as all of it */
    struct snapshot_arena *arenas[ARENA_INDEX_END];
    struct snapshot_arena *past;
    uint64_t epoch;
    uint64_t other_leases; /* runs for stocks and manual arenas; all others are large blocks */
    struct large_cache_numbers
        cached_large; /* of all threads: large blocks that no program holds */
    struct lock_numbers visited_lock;
} room SPARSE;

static uint64_t begin_ms; /* written before main */

void snapshot_begin(void) { begin_ms = os_now_ms(); }

_Static_assert(sizeof(struct snapshot) <= META_RECORD_BYTES_MAX, "a record");

static struct arena *made_arena(unsigned index)
{
    return __atomic_load_n(&arenas[index], __ATOMIC_ACQUIRE);
}

/* ---- room ---- */

/* Arena 0 also has what is nobody's, and so a place before it is made. */
static unsigned room_end(void) { return (unsigned)max_size(arenas_end(), 1); }

static bool room_ready(void)
{
    if (room.numbers == NULL) room.numbers = meta_take(sizeof *room.numbers);
    if (room.numbers == NULL) return false;
    if (room.arenas[0] == NULL) room.arenas[0] = meta_take(sizeof *room.arenas[0]);
    if (room.arenas[0] == NULL) return false;
    for (unsigned index = 0; index < room_end(); index++) {
        if (made_arena(index) == NULL || room.arenas[index] != NULL) continue;
        room.arenas[index] = meta_take(sizeof *room.arenas[index]);
        if (room.arenas[index] == NULL) return false;
    }
    return true;
}

/* ---- counting ---- */

static void look_at_lock(struct lock *lock) { room.visited_lock = lock_numbers(lock); }

/* Of a lock that its file keeps to itself. */
static struct lock_numbers numbers_of(void (*visit_lock)(void (*visit)(struct lock *lock)))
{
    visit_lock(look_at_lock);
    return room.visited_lock;
}

/* `blocks` is what is out of the slabs until what is cached is known. */
static void count_arena(struct arena *arena, struct snapshot_arena *into)
{
    lock_take(&arena->lock);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        const struct class_bin *bin = &arena->bin[class_index];
        into->of_class[class_index] = (struct snapshot_class){
            .slabs = bin->slab_count,
            .slabs_not_full = bin->partial_count,
            .slabs_opened = bin->slabs_opened,
            .blocks = bin->slab_count * slab_shape[class_index].block_count - bin->slab_free_blocks,
            .cached = (uint64_t)bin->depot.full_count * magazine_capacity(class_index)
                    + bin->depot.opened_count,
            .fills = bin->fills,
            .drains = bin->drains,
            .blocks_taken = bin->blocks_taken,
        };
        into->active += bin->slab_count * slab_shape[class_index].bytes;
    }
    for (unsigned pages = 1; pages <= STOCK_PAGES_MAX; pages++) {
        into->dirty += (size_t)arena->stock[pages].count * pages << space.page_shift;
        room.other_leases += arena->stock[pages].leased;
    }
    if (arena->manual_large != NULL || arena->manual_taken != 0) {
        struct manual_sum sum = manual_sum(arena);
        into->large_allocated = sum.bytes;
        into->large_count = sum.count;
        into->large_taken = arena->manual_taken;
        into->active += sum.bytes;
    }
    if (arena->extents != NULL) {
        into->dirty += arena->extents->heap.free_pages[FREE_DIRTY] << space.page_shift;
        into->clean += arena->extents->heap.free_pages[FREE_CLEAN] << space.page_shift;
    }
    room.numbers->depot_trades += arena->trades;
    into->lock = lock_numbers(&arena->lock);
    lock_give(&arena->lock);
}

/* The owner goes on meanwhile: the counts are of a moment that is just past. */
static READS_UNLOCKED void count_cache(const struct cache *cache, void *is_named)
{
    const struct arena *home = RELAXED_LOAD(cache->arena);
    struct snapshot_arena *into = home != NULL ? room.arenas[home->index] : NULL;

    if (into == NULL) into = room.arenas[0];
    if (is_named == NULL) into->threads++;
    large_cache_add_numbers(cache, &room.cached_large);
    room.numbers->refills += RELAXED_LOAD(cache->refills);
    room.numbers->overflows += RELAXED_LOAD(cache->overflows);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        void **top = RELAXED_LOAD(cache->magazine[class_index].top), **limit;
        size_t capacity;

        BETWEEN_READS(count_cache);
        limit = RELAXED_LOAD(cache->magazine[class_index].limit);
        capacity = RELAXED_LOAD(cache->spare[class_index].capacity);
        into->of_class[class_index].cached += RELAXED_LOAD(cache->spare[class_index].count);
        if (top <= limit && (size_t)(limit - top) <= capacity)
            into->of_class[class_index].cached += capacity - (size_t)(limit - top);
    }
}

/* Takes up to `cached` blocks off those that are out; what cannot be taken off is returned. */
static uint64_t take_off(struct snapshot_class *numbers, uint64_t cached)
{
    uint64_t part = cached < numbers->blocks ? cached : numbers->blocks;

    numbers->blocks -= part;
    numbers->cached_of_arena += part;
    return cached - part;
}

/* A thread holds blocks of other arenas too, so that an arena may have fewer out than wait. V2 */
static void take_cached_off(unsigned class_index)
{
    uint64_t rest = 0;

    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned index = 0; index < room_end(); index++) {
            struct snapshot_arena *arena = room.arenas[index];
            if (arena == NULL) continue;
            rest = pass == 0 ? rest
                                   + take_off(&arena->of_class[class_index],
                                              arena->of_class[class_index].cached)
                             : take_off(&arena->of_class[class_index], rest);
        }
}

static void count_pages(struct snapshot_arena *into)
{
    unsigned shift = space.page_shift;
    size_t open_bytes, large_bytes_of_all;

    lock_take(&page_heap.lock);
    into->dirty += (page_heap.free_pages[FREE_DIRTY] + room.cached_large.pages) << shift;
    into->clean += page_heap.free_pages[FREE_CLEAN] << shift;
    large_bytes_of_all =
        (page_heap.large_pages - min_size(room.cached_large.pages, page_heap.large_pages)) << shift;
    into->large_allocated += large_bytes_of_all;
    into->large_count +=
        page_heap.large_count - min_size(room.cached_large.count, page_heap.large_count);
    into->large_taken += page_heap.leases - room.other_leases + room.cached_large.takes;
    into->purges = page_heap.decay.calls;
    into->purged_pages = page_heap.decay.purged_pages;
    open_bytes = space.open_bytes;
    room.numbers->leases = page_heap.leases;
    room.numbers->returns = page_heap.returns;
    room.numbers->runs_lock = lock_numbers(&page_heap.lock);
    lock_give(&page_heap.lock);

    into->active += large_bytes_of_all;
    into->metadata_map = maps_bytes_for(open_bytes);
    lock_take(&meta.lock);
    into->metadata = commit.record_bytes + into->metadata_map;
    into->mapped = (size_t)(meta.zone_end - meta.open_base) - commit.record_bytes;
    room.numbers->meta_lock = lock_numbers(&meta.lock);
    lock_give(&meta.lock);
}

/* ---- sums ---- */

static void add_lock_numbers(struct lock_numbers *sum, const struct lock_numbers *lock)
{
    sum->taken += lock->taken;
    sum->contended += lock->contended;
    sum->waits += lock->waits;
    sum->wait_ns += lock->wait_ns;
    sum->wait_ns_max = max_size(sum->wait_ns_max, lock->wait_ns_max);
    sum->sleepers_max = max_size(sum->sleepers_max, lock->sleepers_max);
}

static void add_class(struct snapshot_class *sum, const struct snapshot_class *numbers)
{
    sum->slabs += numbers->slabs;
    sum->slabs_not_full += numbers->slabs_not_full;
    sum->slabs_opened += numbers->slabs_opened;
    sum->blocks += numbers->blocks;
    sum->cached += numbers->cached;
    sum->cached_of_arena += numbers->cached_of_arena;
    sum->fills += numbers->fills;
    sum->drains += numbers->drains;
    sum->blocks_taken += numbers->blocks_taken;
}

static void add_to_all(const struct snapshot_arena *arena)
{
    struct snapshot_arena *all = &room.numbers->all;

    all->threads += arena->threads;
    all->small_allocated += arena->small_allocated;
    all->large_allocated += arena->large_allocated;
    all->active += arena->active;
    all->dirty += arena->dirty;
    all->clean += arena->clean;
    all->metadata += arena->metadata;
    all->metadata_map += arena->metadata_map;
    all->resident += arena->resident;
    all->mapped += arena->mapped;
    all->cached += arena->cached;
    all->large_count += arena->large_count;
    all->large_taken += arena->large_taken;
    all->purges += arena->purges;
    all->purged_pages += arena->purged_pages;
    add_lock_numbers(&all->lock, &arena->lock);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        add_class(&all->of_class[class_index], &arena->of_class[class_index]);
}

/* V1 */
static void finish_arena(struct snapshot_arena *arena)
{
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        const struct snapshot_class *numbers = &arena->of_class[class_index];
        arena->small_allocated += numbers->blocks * class_bytes[class_index];
        arena->cached += numbers->cached * class_bytes[class_index];
    }
    arena->resident = arena->active + arena->dirty + arena->metadata;
    arena->mapped += arena->resident;
}

static void count_all(void)
{
    room.other_leases = __atomic_load_n(&manual_leases, __ATOMIC_RELAXED);
    room.cached_large = (struct large_cache_numbers){ .takes = large_cache_takes_drained() };
    for (unsigned index = 0; index < room_end(); index++)
        if (room.arenas[index] != NULL && made_arena(index) != NULL)
            count_arena(made_arena(index), room.arenas[index]);
    threads_visit(count_cache, NULL);
    explicit_cache_visit(count_cache, room.numbers);
    count_pages(room.arenas[0]);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        take_cached_off(class_index);
    for (unsigned index = 0; index < room_end(); index++) {
        if (room.arenas[index] == NULL) continue;
        finish_arena(room.arenas[index]);
        add_to_all(room.arenas[index]);
    }
}

const struct snapshot *snapshot_take(void)
{
    struct decay_numbers decay_now = decay_numbers();
    struct snapshot *numbers;

    check(lock_is_mine(&control_lock));
    if (!room_ready()) return NULL;
    numbers = room.numbers;
    for (unsigned index = 0; index < room_end(); index++)
        if (room.arenas[index] != NULL)
            __builtin_memset(room.arenas[index], 0, sizeof *room.arenas[index]);
    *numbers = (struct snapshot){ .epoch = ++room.epoch, .arena_count = arena_limit };
    count_all();
    for (unsigned index = arena_limit; index < room_end(); index++)
        if (room.arenas[index] != NULL) numbers->arena_count = index + 1;
    numbers->control_lock = lock_numbers(&control_lock);
    numbers->threads_lock = numbers_of(threads_each_lock);
    numbers->decay_lock = numbers_of(decay_each_lock);
    numbers->samples_lock = numbers_of(samples_each_lock);
    numbers->arena_hops = RELAXED_LOAD(arena_choices.hops);
    numbers->background_runs = decay_now.background_runs;
    numbers->background_looks = decay_now.looks;
    numbers->background_look_ms = decay_now.look_ms;
    numbers->realloc_zero_calls = realloc_zero_calls();
    numbers->uptime_ms = os_now_ms() - begin_ms;
    return numbers;
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
    threads_each_lock(forget_lock);
    decay_each_lock(forget_lock);
    for (unsigned index = 0; index < arenas_end(); index++)
        if (made_arena(index) != NULL) forget_lock(&made_arena(index)->lock);
    forget_lock(&page_heap.lock);
    samples_each_lock(forget_lock);
    forget_lock(&meta.lock);
}

const struct snapshot *snapshot_get(void)
{
    check(lock_is_mine(&control_lock));
    return room.numbers != NULL && room.epoch != 0 ? room.numbers : snapshot_take();
}

const struct snapshot_arena *snapshot_past(void)
{
    const struct past_arenas *past = &past_arenas;
    struct snapshot_arena *into;

    check(lock_is_mine(&control_lock));
    if (RELAXED_LOAD(past->count) == 0) return NULL;
    if (room.past == NULL) room.past = meta_take(sizeof *room.past);
    into = room.past;
    if (into == NULL) return NULL;
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        into->of_class[class_index] = (struct snapshot_class){
            .fills = RELAXED_LOAD(past->of_class[class_index].fills),
            .drains = RELAXED_LOAD(past->of_class[class_index].drains),
            .blocks_taken = RELAXED_LOAD(past->of_class[class_index].blocks_taken),
            .slabs_opened = RELAXED_LOAD(past->of_class[class_index].slabs_opened),
        };
    into->large_taken = RELAXED_LOAD(past->manual_taken);
    into->lock = (struct lock_numbers){ .taken = RELAXED_LOAD(past->lock_taken),
                                        .contended = RELAXED_LOAD(past->lock_contended),
                                        .waits = RELAXED_LOAD(past->lock_waits),
                                        .wait_ns = RELAXED_LOAD(past->lock_wait_ns),
                                        .wait_ns_max = RELAXED_LOAD(past->lock_wait_ns_max),
                                        .sleepers_max = RELAXED_LOAD(past->lock_sleepers_max) };
    return into;
}

const struct snapshot_arena *snapshot_arena(unsigned index)
{
    check(lock_is_mine(&control_lock));
    return index < ARENA_INDEX_END ? room.arenas[index] : NULL;
}
