/* manual.c - large blocks that know their arena, and the end of an arena.
 * SPDX-License-Identifier: MIT
 */
#include "manual.h"

struct run manual_lease(struct arena *arena, size_t pages, size_t align_pages)
{
    struct manual_large *owner = meta_take(sizeof *owner);
    struct extent *extent = NULL;
    struct run run = { 0, false };

    if (owner == NULL) return run;
    if (likely(RELAXED_LOAD(arena->extents) == NULL)) {
        run = run_lease_for(pages, align_pages, purpose_of(arena->page_heap, PAGE_USED));
    } else {
        lock_take(&arena->lock);
        if (arena->extents != NULL) run.page = extents_take(arena->extents, pages, align_pages);
        if (run.page != 0) extent = extent_of_taken(arena->extents, run.page);
        lock_give(&arena->lock);
    }
    if (run.page == 0) {
        meta_give(owner, sizeof *owner);
        return run;
    }
    lock_take(&arena->lock);
    *owner = (struct manual_large){
        .arena = arena, .next = arena->manual_large, .extent = extent, .page = run.page
    };
    if (owner->next != NULL) owner->next->previous = owner;
    arena->manual_large = owner;
    run_mark(run.page, PAGE_MANUAL, meta_number(owner));
    arena->manual_taken++;
    arena_count_active(arena, page_record(run.page)->run_pages);
    lock_give(&arena->lock);
    return run;
}

/* The run belongs to nobody's arena any more, and goes back. Under the arena's lock. */
static void forget_manual_large(struct manual_large *owner)
{
    struct arena *arena = owner->arena;
    struct extent *extent = owner->extent;
    uint32_t page = owner->page;

    arena_count_active(arena, 0 - (size_t)page_record(page)->run_pages);
    arena->staggered -= page_is_staggered(page_record(page));
    if (owner->next != NULL) owner->next->previous = owner->previous;
    if (owner->previous != NULL) owner->previous->next = owner->next;
    else arena->manual_large = owner->next;
    run_mark(page, PAGE_USED, 0);
    meta_give(owner, sizeof *owner);
    if (extent != NULL) extents_put_into(arena->extents, extent, page, FREE_DIRTY);
    else if (arena->extents == NULL || !extents_put(arena->extents, page)) run_return(page);
}

void manual_set_staggered(uint32_t page, bool is_staggered)
{
    struct page *record = page_record(page);
    struct arena *arena = manual_arena_of_page(record);

    lock_take(&arena->lock);
    if (is_staggered) page_mark_staggered(record, 0);
    else page_unmark_staggered(record);
    arena->staggered += is_staggered ? 1 : UINT32_MAX;
    lock_give(&arena->lock);
}

void manual_return(uint32_t page)
{
    struct manual_large *owner = meta_record(page_record(page)->slab);
    struct arena *arena = owner->arena;

    lock_take(&arena->lock);
    forget_manual_large(owner);
    lock_give(&arena->lock);
    arena_settle(arena);
}

bool manual_resize(uint32_t page, size_t pages)
{
    struct manual_large *owner = meta_record(page_record(page)->slab);
    struct arena *arena = owner->arena;
    size_t old_pages = page_record(page)->run_pages;
    bool done;

    lock_take(&arena->lock);
    if (arena->extents == NULL
        || (owner->extent == NULL && extent_of(arena->extents, page) == NULL))
        done = run_resize(page_heap_of(page), page, pages);
    else
        done =
            !RELAXED_LOAD(arena->extents->whole) && run_resize(&arena->extents->heap, page, pages);
    arena_count_active(arena, page_record(page)->run_pages - old_pages);
    lock_give(&arena->lock);
    return done;
}

/* ---- reset and end ---- */

/* Its blocks lie in no depot (D2), and in no cache that a thread abandoned. */
void arena_reset(struct arena *arena)
{
    lock_take(&arena->lock);
    arena_reset_slabs(arena);
    while (arena->manual_large != NULL) forget_manual_large(arena->manual_large);
    lock_give(&arena->lock);
    arena_settle(arena);
}

struct past_arenas past_arenas;

/* The arena that comes to have this number begins at 0. */
static void become_past(struct arena *arena)
{
    lock_take(&making_lock);
    lock_take(&arena->lock);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        struct class_flow *past = &past_arenas.of_class[class_index];
        struct class_flow *flow = &arena->bin[class_index].flow;

        past->fills += flow->fills;
        past->drains += flow->drains;
        past->blocks_taken += flow->blocks_taken;
        past->slabs_opened += flow->slabs_opened;
        *flow = (struct class_flow){ .fills = 0 };
    }
    past_arenas.manual_taken += arena->manual_taken;
    arena->manual_taken = 0;
    arena->grow_limit = 0;
    lock_numbers_add(&past_arenas.lock, lock_numbers(&arena->lock));
    lock_forget_numbers(&arena->lock);
    RELAXED_STORE(past_arenas.count, past_arenas.count + 1);
    RELAXED_STORE(arena->times_destroyed, arena->times_destroyed + 1);
    arena->is_ending = false;
    RELAXED_STORE(arena->is_destroyed, true);
    lock_give(&arena->lock);
    lock_give(&making_lock);
}

/* Nobody else calls the hooks from now on. Another thread may be on its way through them, to purge
 * for instance, and is waited for, unless this one is in hooks of another arena, where two might
 * wait for each other. In hooks of this arena it may not be, nor may the arena be at its end
 * already. */
bool arena_begin_destroy(struct arena *arena)
{
    bool waits = true, may_end = __atomic_load_n(&arena->threads, __ATOMIC_ACQUIRE) == 0;

    while (may_end && waits) {
        lock_take(&arena->lock);
        waits = arena->extents != NULL && arena->extents->calls != NULL;
        may_end = !arena->is_ending && !arena->is_destroyed;
        if (may_end && !waits) arena->is_ending = true;
        lock_give(&arena->lock);
        if (may_end && waits) {
            may_end = !thread_is_in_hooks();
            if (may_end) os_pause(1);
        }
    }
    return may_end;
}

void arena_finish_destroy(struct arena *arena)
{
    arena_reset(arena);
    lock_take(&arena->lock);
    arena_give_stocks(arena);
    lock_give(&arena->lock);
    arena_give_extents(arena);
    become_past(arena);
}
