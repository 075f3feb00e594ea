/* placed.c - the ways of blocks for which a call names the arena or the cache.
 * SPDX-License-Identifier: MIT
 */
#include "placed.h"

#include "../arenas/decay.h"
#include "../cache/explicit_cache.h"
#include "../guard/fill.h"
#include "../view/profile.h"

struct arena *placed_arena(unsigned index)
{
    if (!heap_start()) return NULL;
    return index < arena_limit ? arena_at(index) : manual_arena_at(index);
}

/* The cache that the flags name; NULL: they name none, or there is none of that number. */
static struct cache *cache_of(unsigned flags)
{
    unsigned number = flags_cache(flags);

    return number >= CACHE_FIRST_EXPLICIT ? explicit_cache_at(number - CACHE_FIRST_EXPLICIT) : NULL;
}

/* What the flags name; the arena is NULL when they name none. False: there is no such arena, or no
 * such cache. */
static bool find_place(unsigned flags, struct arena **arena)
{
    *arena = NULL;
    if (flags_cache(flags) >= CACHE_FIRST_EXPLICIT && cache_of(flags) == NULL) return false;
    if ((flags & FLAG_ARENA) == 0) return true;
    *arena = placed_arena(flags_arena(flags));
    return *arena != NULL;
}

/* ---- taking ---- */

static void *take_from_arena(struct arena *arena, unsigned class_index)
{
    void *slots[2] = { NULL, NULL };

    lock_take(&arena->lock);
    (void)arena_fill(arena, class_index, slots, 1, true);
    lock_give(&arena->lock);
    return slots[1];
}

/* Hooks are asked as often: another thread may take what they gave. */
enum { GROWTHS_BEFORE_REFUSAL = 4 };

static void *take_from_grown(struct arena *arena, unsigned class_index)
{
    void *block = take_from_arena(arena, class_index);

    for (unsigned i = 0; i < GROWTHS_BEFORE_REFUSAL && unlikely(block == NULL); i++) {
        if (!thread_grow(arena, slab_pages(class_index), 1)) break;
        block = take_from_arena(arena, class_index);
    }
    return block;
}

static void *take_small(struct arena *arena, unsigned class_index, unsigned flags)
{
    struct cache *cache;

    if (AUDITED) heap_audit();
    if (flags_cache(flags) >= CACHE_FIRST_EXPLICIT) {
        cache = cache_of(flags);
        return cache != NULL ? explicit_cache_take(cache, arena, class_index) : NULL;
    }
    if (arena == NULL) return uncached_take(class_index);
    return take_from_grown(arena, class_index);
}

static struct run lease_grown(struct arena *arena, size_t pages, size_t align_pages)
{
    struct run run = manual_lease(arena, pages, align_pages);

    for (unsigned i = 0; i < GROWTHS_BEFORE_REFUSAL && unlikely(run.page == 0); i++) {
        if (!thread_grow(arena, pages, align_pages)) break;
        run = manual_lease(arena, pages, align_pages);
    }
    return run;
}

void *manual_take_once(struct arena *arena, size_t pages, size_t align_pages, bool zero)
{
    size_t bytes = pages << space.page_shift;
    struct run run;

    if (pages > space.page_count_max || align_pages > space.page_count_max) return NULL;
    run = lease_grown(arena, pages, align_pages);
    if (run.page == 0) {
        decay_before_refusal();
        run = lease_grown(arena, pages, align_pages);
    }
    if (run.page == 0) return NULL;
    /* The program's memory may not be what a purge makes zero. */
    if (zero && arena->extents != NULL) __builtin_memset(page_address(run.page), 0, bytes);
    else if (zero && !run.zero) large_clear(page_address(run.page), bytes);
    return page_address(run.page);
}

void *manual_take(struct arena *arena, size_t size, size_t align, bool zero)
{
    if (size > space.address_bytes) return NULL; /* the number of its pages could wrap */
    return manual_take_once(arena, max_size(pages_for(size), 1),
                            max_size(align >> space.page_shift, 1), zero);
}

/* An automatic arena shares its large blocks with the others. */
void *large_lease_of(struct arena *arena, size_t size, size_t align, bool zero)
{
    struct arena *owner = arena_if_counts_large(arena);
    void *block;

    if (owner == NULL) return large_lease_shared(size, align, zero);
    block = manual_take(owner, size, align, zero);
    return block == NULL || zero ? block : fill_taken(block, large_bytes(page_at(block)));
}

/* Whole pages. */
static void *take_large(struct arena *arena, size_t size, unsigned flags, const void *frame)
{
    struct cache *front = thread_cache();
    struct counting_front *counting = (struct counting_front *)front;
    bool zero = (flags & FLAG_ZERO) != 0;
    size_t bytes;
    void *block;

    if (arena == NULL) {
        if (cache_is_counting(front))
            return take_unusual_for(frame, size, flags_align(flags), zero);
        return large_take(size, flags_align(flags), zero);
    }
    if (unlikely(RELAXED_LOAD(sampling_polls))) profile_poll();
    block = large_lease_of(arena, size, flags_align(flags), zero);
    if (block == NULL || !cache_is_counting(front)) return block;
    bytes = large_bytes(page_at(block));
    counting_add_taken(counting, bytes);
    if (counting_large_is_due(counting, bytes)) sampled_begin(counting, block, frame);
    return block;
}

/* Blocks that pass the thread's cache by are sampled like large ones, by their bytes. NULL: none is
 * due, or no memory. */
static void *take_due(struct counting_front *counting, struct arena *arena, unsigned class_index,
                      unsigned flags, const void *frame)
{
    struct cache *cache = cache_of(flags);

    if (unlikely(RELAXED_LOAD(sampling_polls))) profile_poll();
    if (arena == NULL && cache != NULL) arena = explicit_cache_arena(cache);
    if (likely(!counting_large_is_due(counting, class_bytes[class_index]))) return NULL;
    return sampled_take(counting, arena, class_bytes[class_index], frame);
}

void *placed_take(size_t size, unsigned class_index, unsigned flags, const void *frame)
{
    struct cache *front = heap_attach();
    struct arena *arena;
    void *block = NULL;

    if (front == NULL || !find_place(flags, &arena)) return NULL;
    if (class_index == 0) return take_large(arena, size, flags, frame);
    if (unlikely(cache_is_counting(front)))
        block = take_due((struct counting_front *)front, arena, class_index, flags, frame);
    if (unlikely(block != NULL)) {
        counting_add_taken((struct counting_front *)front, class_bytes[class_index]);
        return (flags & FLAG_ZERO) != 0 ? __builtin_memset(block, 0, class_bytes[class_index])
                                        : block;
    }
    block = take_small(arena, class_index, flags);
    if (unlikely(block == NULL)) {
        decay_before_refusal();
        block = take_small(arena, class_index, flags);
        if (block == NULL) return NULL;
    }
    if (arena != NULL || flags_cache(flags) != CACHE_NONE) {
        (void)counted(block, class_bytes[class_index]);
        if (CHECKED) (void)misuse_note_take(block);
    }
    if ((flags & FLAG_ZERO) != 0) return __builtin_memset(block, 0, class_bytes[class_index]);
    return fill_taken(block, class_bytes[class_index]);
}

/* ---- giving ---- */

void manual_put(uint32_t page)
{
    sampled_go_on(page_address(page), sampled_pause(page), true);
    manual_return(page);
    if (unlikely(decay_after_return())) thread_flush();
}

void home_put(uint32_t page, void *block)
{
    struct arena *home = manual_arena_of_page(page_record(page));
    unsigned class_index = class_of_offset(page_record(page)->class_at);

    if (AUDITED) heap_audit();
    fill_given(block, class_bytes[class_index]);
    arenas_drain(class_index, &block, 1);
    if (home != NULL) arena_settle(home);
    if (unlikely(decay_after_return())) thread_flush();
}

void free_manual(uint32_t page, void *block)
{
    if (page_record(page)->class_at != 0) {
        home_put(page, block);
        return;
    }
    if (page_address(page) != block) misuse_abort("free", POINTER_INTERIOR, block);
    manual_put(page);
}

void placed_free(void *block, unsigned flags)
{
    struct cache *cache = cache_of(flags);
    unsigned class_index;
    uint32_t page;

    if (cache == NULL || block == NULL || pointer_kind(block, &page) != POINTER_SMALL) {
        prairie_free(block);
        return;
    }
    if (CHECKED) misuse_note_free(block);
    if (AUDITED) heap_audit();
    class_index = class_of_offset(page_record(page)->class_at);
    count_given(class_bytes[class_index]);
    fill_given(block, class_bytes[class_index]);
    if (!explicit_cache_put(cache, class_index, block)) home_put(page, block);
}

/* ---- all at once ---- */

void placed_reset(struct arena *arena)
{
    thread_flush();
    sampled_forget_all(arena);
    arena_reset(arena);
}

bool placed_destroy(struct arena *arena)
{
    if (!arena_begin_end(arena)) return false;
    thread_flush();
    sampled_forget_all(arena);
    arena_finish(arena);
    return true;
}

/* ---- asking ---- */

struct arena *arena_of_address(const void *address)
{
    uint32_t page = open_page_at(address);
    const struct page *record = page_record(page);

    if (page == 0) return NULL;
    if (record->class_at != 0) return arenas[slab_record(record->slab)->arena];
    if (record->state == PAGE_MANUAL) return manual_arena_of_page(record);
    return is_large_state(record->state) || record->state == PAGE_VAST ? arena_at(0) : NULL;
}
