/* manual.c - large blocks that know their arena, and the end of an arena.
 * SPDX-License-Identifier: MIT
 */
#include "manual.h"

#include "../base/port.h"

struct run manual_lease(struct arena *arena, size_t pages, size_t align_pages)
{
    struct manual_large *owner = meta_take(sizeof *owner);
    struct run run = { 0, false };

    if (owner == NULL) return run;
    if (likely(RELAXED_LOAD(arena->extents) == NULL)) {
        run = run_lease_for(pages, align_pages, purpose_of(arena->page_heap, PAGE_USED));
    } else {
        lock_take(&arena->lock);
        if (arena->extents != NULL) run.page = extents_take(arena->extents, pages, align_pages);
        lock_give(&arena->lock);
    }
    if (run.page == 0) {
        meta_give(owner, sizeof *owner);
        return run;
    }
    lock_take(&arena->lock);
    *owner = (struct manual_large){ .arena = arena, .next = arena->manual_large, .page = run.page };
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
    uint32_t page = owner->page;

    arena_count_active(arena, 0 - (size_t)page_record(page)->run_pages);
    arena->staggered -= page_is_staggered(page_record(page));
    if (owner->next != NULL) owner->next->previous = owner->previous;
    if (owner->previous != NULL) owner->previous->next = owner->next;
    else arena->manual_large = owner->next;
    run_mark(page, PAGE_USED, 0);
    meta_give(owner, sizeof *owner);
    if (arena->extents == NULL || !extents_put(arena->extents, page)) run_return(page);
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
    struct arena *arena = ((struct manual_large *)meta_record(page_record(page)->slab))->arena;
    size_t old_pages = page_record(page)->run_pages;
    bool done;

    lock_take(&arena->lock);
    if (arena->extents == NULL || extent_of(arena->extents, page) == NULL)
        done = run_resize(page_heap_of(page), page, pages);
    else
        done =
            !RELAXED_LOAD(arena->extents->whole) && run_resize(&arena->extents->heap, page, pages);
    arena_count_active(arena, page_record(page)->run_pages - old_pages);
    lock_give(&arena->lock);
    return done;
}

/* ---- memory from the program ---- */

/* Hooks get themselves as an argument, and may change what is theirs; nobody changes ours. */
struct extent_hooks *extent_hooks_unset(void)
{
    return (struct extent_hooks *)(uintptr_t)&extent_hooks_default;
}

static struct extent_hooks *hooks_of(const struct arena *arena)
{
    return arena->extents != NULL ? arena->extents->hooks : extent_hooks_unset();
}

struct extent_hooks *arena_hooks(struct arena *arena)
{
    struct extent_hooks *hooks;

    lock_take(&arena->lock);
    hooks = hooks_of(arena);
    lock_give(&arena->lock);
    return hooks;
}

/* ---- calls of hooks ---- */

/* Who calls hooks holds no lock, and the arena's extents must be there when they return. NULL: it
 * has none, or is at its end. */
static struct extents *begin_calls(struct arena *arena, struct hook_call *call)
{
    struct extents *extents;

    lock_take(&arena->lock);
    extents = arena->extents != NULL && !arena->is_ending ? arena->extents : NULL;
    if (extents != NULL) {
        *call = (struct hook_call){ .next = extents->calls,
                                    .hooks_version = extents->hooks_version,
                                    .thread = port_thread_mark() };
        extents->calls = call;
    }
    lock_give(&arena->lock);
    if (extents != NULL) call->before = os_interlude_begins();
    return extents;
}

static void end_calls(struct arena *arena, struct hook_call *call)
{
    struct hook_call **link;

    lock_take(&arena->lock);
    for (link = &arena->extents->calls; *link != call;) link = &(*link)->next;
    *link = call->next;
    lock_give(&arena->lock);
    os_interlude_ends(call->before);
}

/* Threads that are not in the child of a fork do not come back from hooks, and end no arena. */
void arenas_forget_calls(void)
{
    EACH_ARENA (arena) {
        struct hook_call **link = arena->extents != NULL ? &arena->extents->calls : NULL;

        while (link != NULL && *link != NULL)
            if ((*link)->thread != port_thread_mark()) *link = (*link)->next;
            else link = &(*link)->next;
        arena->is_ending = false;
    }
}

/* ---- setting them ---- */

static bool calls_hooks(const struct arena *arena, uintptr_t thread)
{
    const struct hook_call *call = arena->extents != NULL ? arena->extents->calls : NULL;

    while (call != NULL && call->thread != thread) call = call->next;
    return call != NULL;
}

bool thread_is_in_hooks(void)
{
    bool calls = false;

    EACH_ARENA (arena) {
        lock_take(&arena->lock);
        calls |= calls_hooks(arena, port_thread_mark());
        lock_give(&arena->lock);
    }
    return calls;
}

/* Who is in hooks tells nobody when it comes back. */
static void wait_for_others(void) { os_pause(1); }

/* A call that began before may still use the table of then, which the program is about to drop. Two
 * threads in hooks might wait for each other, so that one which is in some waits for nobody. */
static void wait_for_earlier_calls(struct arena *arena, uint64_t hooks_version)
{
    bool waits = hooks_version != 0 && !thread_is_in_hooks();

    while (waits) {
        lock_take(&arena->lock);
        waits = false;
        if (arena->extents != NULL)
            for (const struct hook_call *call = arena->extents->calls; call; call = call->next)
                waits |= call->hooks_version < hooks_version;
        lock_give(&arena->lock);
        if (waits) wait_for_others();
    }
}

struct extent_hooks *arena_set_hooks(struct arena *arena, struct extent_hooks *hooks)
{
    struct extents *made = extents_make(hooks);
    struct extent_hooks *before;
    uint64_t hooks_version = 0; /* nobody has called hooks of it */

    if (made == NULL) return NULL;
    lock_take(&arena->lock);
    before = hooks_of(arena);
    if (arena->is_ending) {
        before = NULL;
    } else if (arena->extents != NULL) {
        RELAXED_STORE(arena->extents->hooks, hooks);
        hooks_version = ++arena->extents->hooks_version;
    } else if (hooks != before) {
        if (arena->grow_limit != 0) extents_limit_growth(made, arena->grow_limit);
        RELAXED_STORE(arena->extents, made);
        made = NULL;
    }
    lock_give(&arena->lock);
    if (made != NULL) meta_give(made, sizeof *made);
    wait_for_earlier_calls(arena, hooks_version);
    return before;
}

/* ---- growing, and giving back ---- */

/* Back to the hooks, unless they refuse it. */
static void give_or_keep(struct arena *arena, struct extent *extent)
{
    if (extent_give(RELAXED_LOAD(arena->extents->hooks), extent, arena->index, false)) return;
    extent->stays = true;
    lock_take(&arena->lock);
    supplied_add(&arena->extents->heap, &extent->piece, FREE_DIRTY);
    lock_give(&arena->lock);
}

/* An extent of `bytes`, or of what is wanted when that much is refused, or may not be cut up. */
static struct extent *ask_for(struct arena *arena, size_t wanted, size_t align, size_t bytes)
{
    struct extent_hooks *hooks = RELAXED_LOAD(arena->extents->hooks);
    struct extent *extent = extent_ask(hooks, bytes, align, arena->index);

    if (extent == NULL && bytes > wanted) return extent_ask(hooks, wanted, align, arena->index);
    if (extent == NULL || bytes == wanted || extent_may_be_cut(hooks, extent, arena->index))
        return extent;
    RELAXED_STORE(arena->extents->whole, true);
    give_or_keep(arena, extent);
    return extent_ask(hooks, wanted, align, arena->index);
}

bool arena_grow(struct arena *arena, size_t pages, size_t align_pages)
{
    struct hook_call call;
    struct extents *extents = begin_calls(arena, &call);
    size_t wanted = pages << space.page_shift, bytes;
    struct extent *extent;

    if (extents == NULL) return false;
    lock_take(&arena->lock);
    bytes = RELAXED_LOAD(extents->whole) ? wanted : max_size(wanted, extents->next_bytes);
    lock_give(&arena->lock);
    extent = ask_for(arena, wanted, align_pages << space.page_shift, bytes);
    if (extent != NULL) {
        lock_take(&arena->lock);
        supplied_add(&extents->heap, &extent->piece, extent->clean ? FREE_CLEAN : FREE_DIRTY);
        extents->next_bytes =
            max_size(min_size(2 * extents->next_bytes, extents->grow_limit), page_bytes());
        lock_give(&arena->lock);
    }
    end_calls(arena, &call);
    return extent != NULL;
}

static COLD void settle(struct arena *arena)
{
    struct hook_call call;
    struct extents *extents = begin_calls(arena, &call);
    struct extent *extent;

    if (extents == NULL) return;
    for (;;) {
        lock_take(&arena->lock);
        extent = extents_remove_free(extents);
        lock_give(&arena->lock);
        if (extent == NULL) break;
        give_or_keep(arena, extent);
    }
    end_calls(arena, &call);
}

void arena_settle(struct arena *arena)
{
    if (unlikely(RELAXED_LOAD(arena->extents) != NULL)) settle(arena);
}

void arena_settle_manual(struct arena *arena)
{
    if (arena_if_manual(arena) != NULL) arena_settle(arena);
}

void arenas_settle(void)
{
    EACH_ARENA (arena) arena_settle(arena);
}

/* The next run is taken before this one goes back, so that the way through them is not lost. */
void arena_purge(struct arena *arena)
{
    struct hook_call call;
    struct extents *extents = begin_calls(arena, &call);
    const struct extent *extent;
    uint32_t page = 0, next;
    bool purged = false;

    if (extents == NULL) return;
    for (;; page = next) {
        lock_take(&arena->lock);
        next = supplied_take_dirty(&extents->heap, page);
        if (page != 0) supplied_return(&extents->heap, page, purged ? FREE_CLEAN : FREE_DIRTY);
        extent = extent_of(extents, next);
        lock_give(&arena->lock);
        if (next == 0) break;
        purged = extent_purge(RELAXED_LOAD(extents->hooks), extent, next, arena->index);
    }
    end_calls(arena, &call);
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

/* Nothing is in its extents any more, and nobody else calls the hooks. In the child of a fork a
 * thread that is not there may have taken some of their pages to purge them. */
static void give_extents(struct arena *arena)
{
    struct extents *extents = arena->extents;
    struct page_piece *piece;
    struct os_interlude before;

    if (extents == NULL) return;
    before = os_interlude_begins();
    for (;;) {
        lock_take(&arena->lock);
        piece = extents->heap.pieces;
        if (piece != NULL) supplied_remove(&extents->heap, piece);
        else RELAXED_STORE(arena->extents, NULL);
        lock_give(&arena->lock);
        if (piece == NULL) break;
        (void)extent_give(extents->hooks, (struct extent *)piece, arena->index, true);
    }
    os_interlude_ends(before);
    meta_give(extents, sizeof *extents);
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
            if (may_end) wait_for_others();
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
    give_extents(arena);
    become_past(arena);
}
