/* arena_hooks.c - the hooks of an arena are set, asked for more, and given back what is free.
 * SPDX-License-Identifier: MIT
 */
#include "arena_hooks.h"

#include "../base/port.h"
#include "arena_set.h"

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
    if (extents != NULL) call->before = os_callout_begin();
    return extents;
}

static void end_calls(struct arena *arena, struct hook_call *call)
{
    struct hook_call **link;

    lock_take(&arena->lock);
    for (link = &arena->extents->calls; *link != call;) link = &(*link)->next;
    *link = call->next;
    lock_give(&arena->lock);
    os_callout_end(call->before);
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
        if (waits) os_pause(1); /* who comes back from hooks tells nobody */
    }
}

struct extent_hooks *arena_set_hooks(struct arena *arena, struct extent_hooks *hooks)
{
    struct extents *made = extents_make(hooks, &arena->has_spare_extents);
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
    extents_add(arena->extents, extent, FREE_DIRTY);
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
        extents_add(extents, extent, extent->clean ? FREE_CLEAN : FREE_DIRTY);
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
    if (arena != NULL && unlikely(RELAXED_LOAD(arena->has_spare_extents))) settle(arena);
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
    struct extent *extent = NULL;
    uint32_t page = 0, next;
    bool purged = false;

    if (extents == NULL) return;
    for (;; page = next) {
        lock_take(&arena->lock);
        next = supplied_take_dirty(&extents->heap, page);
        if (page != 0) extents_put_into(extents, extent, page, purged ? FREE_CLEAN : FREE_DIRTY);
        extent = extent_of(extents, next);
        lock_give(&arena->lock);
        if (next == 0) break;
        purged = extent_purge(RELAXED_LOAD(extents->hooks), extent, next, arena->index);
    }
    end_calls(arena, &call);
}

/* Nothing is in its extents any more, and nobody else calls the hooks. In the child of a fork a
 * thread that is not there may have taken some of their pages to purge them. */
void arena_give_extents(struct arena *arena)
{
    struct extents *extents = arena->extents;
    struct extent *extent;
    struct os_callout before;

    if (extents == NULL) return;
    before = os_callout_begin();
    for (;;) {
        lock_take(&arena->lock);
        extent = extents_remove_any(extents);
        if (extent == NULL) {
            RELAXED_STORE(arena->extents, NULL);
            RELAXED_STORE(arena->has_spare_extents, false);
        }
        lock_give(&arena->lock);
        if (extent == NULL) break;
        (void)extent_give(extents->hooks, extent, arena->index, true);
    }
    os_callout_end(before);
    meta_give(extents, sizeof *extents);
}
