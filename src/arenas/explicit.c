/* explicit.c - large blocks that know their arena, and the end of an arena.
 * SPDX-License-Identifier: MIT
 */
#include "explicit.h"

static void add_owner(struct arena *arena, struct large_owner *owner)
{
    lock_take(&arena->lock);
    owner->next = arena->owned;
    owner->previous = NULL;
    if (arena->owned != NULL) arena->owned->previous = owner;
    arena->owned = owner;
    lock_give(&arena->lock);
}

static void remove_owner(struct large_owner *owner)
{
    if (owner->next != NULL) owner->next->previous = owner->previous;
    if (owner->previous != NULL) owner->previous->next = owner->next;
    else owner->arena->owned = owner->next;
}

/* Neighbours look at the state when they merge. */
static void mark_page(uint32_t page, enum page_state state, uint32_t owner)
{
    lock_take(&keeper.lock);
    page_record(page)->state = (uint8_t)state;
    page_record(page)->slab = owner;
    lock_give(&keeper.lock);
}

struct run owned_lease(struct arena *arena, size_t pages, size_t align_pages)
{
    struct large_owner *owner = meta_take(sizeof *owner);
    struct run run = { 0, false };

    if (owner == NULL) return run;
    run = run_lease(pages, align_pages, PAGE_USED);
    if (run.page == 0) {
        meta_give(owner, sizeof *owner);
        return run;
    }
    owner->arena = arena;
    owner->page = run.page;
    mark_page(run.page, PAGE_OWNED, meta_number(owner));
    add_owner(arena, owner);
    return run;
}

/* The run belongs to nobody's arena any more, and goes back. */
static void disown(struct large_owner *owner)
{
    uint32_t page = owner->page;

    mark_page(page, PAGE_USED, 0);
    meta_give(owner, sizeof *owner);
    run_return(page);
}

void owned_return(uint32_t page)
{
    struct large_owner *owner = meta_record(page_record(page)->slab);
    struct arena *arena = owner->arena;

    lock_take(&arena->lock);
    remove_owner(owner);
    lock_give(&arena->lock);
    disown(owner);
}

struct owned_sum owned_sum(struct arena *arena)
{
    struct owned_sum sum = { 0, 0 };

    check(lock_is_mine(&arena->lock));
    for (const struct large_owner *owner = arena->owned; owner != NULL; owner = owner->next) {
        sum.bytes += (size_t)page_record(owner->page)->run_pages << plain.page_shift;
        sum.count++;
    }
    return sum;
}

/* Magazines with its blocks may lie in any depot, so all of them are emptied first. */
void arena_reset(struct arena *arena)
{
    arenas_clear();
    lock_take(&arena->lock);
    arena_reset_slabs(arena);
    while (arena->owned != NULL) {
        struct large_owner *owner = arena->owned;
        remove_owner(owner);
        disown(owner);
    }
    lock_give(&arena->lock);
}

bool arena_destroy(struct arena *arena)
{
    if (__atomic_load_n(&arena->threads, __ATOMIC_RELAXED) != 0) return false;
    arena_reset(arena);
    lock_take(&arena->lock);
    arena_give_stocks(arena);
    lock_give(&arena->lock);
    RELAXED_STORE(arena->is_destroyed, true);
    return true;
}
