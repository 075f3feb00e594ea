/* explicit_cache.c - the table of explicit caches, and their two moves.
 * SPDX-License-Identifier: MIT
 */
#include "explicit_cache.h"
#include "growth.h"

#include "../arenas/manual.h"

struct lock explicit_caches_lock = { .state = LOCK_FREE, .rank = LOCK_EXPLICIT_CACHES };
struct cache *explicit_caches[EXPLICIT_CACHE_COUNT_MAX] SPARSE;
unsigned explicit_cache_end;

const void *explicit_cache_table_address(void) { return explicit_caches; }

unsigned explicit_cache_create(void)
{
    struct cache *cache = cache_make();
    unsigned number = 0;

    if (cache == NULL) return EXPLICIT_CACHE_COUNT_MAX;
    lock_take(&explicit_caches_lock);
    while (number < EXPLICIT_CACHE_COUNT_MAX && explicit_caches[number] != NULL) number++;
    if (number < EXPLICIT_CACHE_COUNT_MAX) {
        __atomic_store_n(&explicit_caches[number], cache, __ATOMIC_RELEASE);
        if (number >= explicit_cache_end) explicit_cache_end = number + 1;
    }
    lock_give(&explicit_caches_lock);
    if (number == EXPLICIT_CACHE_COUNT_MAX) cache_give(cache);
    return number;
}

struct cache *explicit_cache_at(unsigned number)
{
    return number < EXPLICIT_CACHE_COUNT_MAX
             ? __atomic_load_n(&explicit_caches[number], __ATOMIC_ACQUIRE)
             : NULL;
}

void explicit_cache_destroy(unsigned number)
{
    struct cache *cache;

    lock_take(&explicit_caches_lock);
    cache = explicit_caches[number];
    RELAXED_STORE(explicit_caches[number], NULL);
    lock_give(&explicit_caches_lock);
    if (cache == NULL) return;
    explicit_cache_flush(cache);
    cache_give(cache);
}

/* An arena that is gone gives no blocks and takes none, also when its number is another one's by
 * now. */
static void leave_destroyed(struct cache *cache)
{
    if (cache->fixed == 0 || cache->times_destroyed == RELAXED_LOAD(cache->arena->times_destroyed))
        return;
    cache->fixed = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* see explicit_cache_forget_busy */
    cache->arena = NULL;
}

struct arena *explicit_cache_arena(struct cache *cache)
{
    leave_destroyed(cache);
    return cache->fixed != 0 ? cache->arena : arena_at(arena_first);
}

void *explicit_cache_take(struct cache *cache, struct arena *arena, unsigned class_index)
{
    bool was_busy = cache_begin_call(cache);
    void *block;

    leave_destroyed(cache);
    if (arena != NULL && (cache->arena != arena || cache->fixed == 0)) {
        struct arena *before = cache->fixed != 0 ? cache->arena : NULL;

        cache_bind(cache, arena);
        cache->times_destroyed = RELAXED_LOAD(arena->times_destroyed);
        arena_settle(before);
    }
    block = cache_take(cache, class_index);
    /* A hook that ran meanwhile may have named this cache for another arena. */
    if (block != NULL && arena != NULL && unlikely(cache->arena != arena)) {
        arenas_drain(class_index, &block, 1);
        block = cache_take_one(cache, arena, class_index);
    }
    cache_end_call(cache, was_busy);
    return block;
}

static bool belongs(const struct cache *cache, unsigned class_index, const void *block)
{
    const struct slab *slab = slab_of(block, class_index);
    const struct arena *home = slab != NULL ? arenas[slab->arena] : NULL;

    if (home == NULL) return false;
    if (home->is_manual || (cache->arena != NULL && cache->arena->is_manual))
        return home == cache->arena;
    return true;
}

bool explicit_cache_put(struct cache *cache, unsigned class_index, void *block)
{
    uint64_t overflows = cache->overflows;
    bool was_busy;

    leave_destroyed(cache);
    if (!belongs(cache, class_index, block)) return false;
    was_busy = cache_begin_call(cache);
    cache_put(cache, class_index, block);
    cache_end_call(cache, was_busy);
    if (unlikely(cache->overflows != overflows)) arena_settle(cache->arena);
    return true;
}

void explicit_cache_flush(struct cache *cache)
{
    cache_drain_all(cache);
    leave_destroyed(cache);
    arena_settle(cache->arena);
}

void explicit_caches_empty(void)
{
    for (unsigned number = 0; number < explicit_cache_end; number++) {
        struct cache *cache = explicit_caches[number];

        if (cache == NULL) continue;
        cache_drain_all(cache);
        cache->arena = NULL;
        cache->fixed = 0;
    }
}

void explicit_cache_visit(void (*visit)(const struct cache *cache, void *context), void *context)
{
    lock_take(&explicit_caches_lock);
    for (unsigned number = 0; number < explicit_cache_end; number++)
        if (explicit_caches[number] != NULL) visit(explicit_caches[number], context);
    lock_give(&explicit_caches_lock);
}

void explicit_cache_forget_busy(void)
{
    for (unsigned number = 0; number < explicit_cache_end; number++) {
        struct cache *cache = explicit_caches[number];

        if (cache == NULL) continue;
        if (cache->fixed == 0) cache->arena = NULL; /* its thread was leaving a destroyed one */
        if (cache->is_busy) {
            cache_init(cache);
            cache_update_keeps_runs(cache);
            cache->is_busy = false;
        }
        cache_count_wide(cache);
    }
}
