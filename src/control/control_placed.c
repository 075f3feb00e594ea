/* control_placed.c - arenas that a program makes, caches that it makes, and what its threads use.
 * SPDX-License-Identifier: MIT
 */
#include "../arenas/decay.h"
#include "../cache/large_cache.h"
#include "../cache/explicit_cache.h"
#include "../guard/fill.h"
#include "../arenas/manual.h"
#include "../heap/heap.h"
#include "../heap/placed.h"
#include "control_tree.h"

#include <errno.h>

/* ---- arenas ---- */

/* Reading tells the default ones of arenas that have no others, so that a program can chain its own
 * to them. An automatic arena that is not there yet begins with those that are written. */
int serve_extent_hooks(struct control_call *call)
{
    size_t index = call->index[0];
    struct extent_hooks *before;
    struct arena *arena;

    if (index >= arena_limit && control_arena_kind(index) != CONTROL_ARENA_ONE) return EFAULT;
    arena = placed_arena_if_made(index);
    call->old.pointer = arena != NULL ? arena_hooks(arena) : extent_hooks_unset();
    if (!call->writes || call->new_value.pointer == call->old.pointer) return 0;
    if (call->new_value.pointer == NULL) return EFAULT;
    arena = placed_arena((unsigned)index);
    before = arena != NULL ? arena_set_hooks(arena, call->new_value.pointer) : NULL;
    if (before == NULL) return EAGAIN;
    call->old.pointer = before;
    thread_follow_hooks();
    return 0;
}

int serve_create(struct control_call *call, size_t wish_bytes)
{
    struct arena_wish wish = { NULL, false };
    struct arena *arena;

    if (call->new_buffer != NULL) {
        if (call->new_length != wish_bytes) return EINVAL;
        __builtin_memcpy(&wish, call->new_buffer, wish_bytes);
    }
    arena = arena_create();
    if (arena == NULL) return EAGAIN;
    if (wish.hooks != NULL && arena_set_hooks(arena, wish.hooks) == NULL) {
        (void)placed_destroy(arena);
        return EAGAIN;
    }
    call->old.number = arena->index;
    return 0;
}

/* Where the pages of its slabs are counted, and of its large blocks if it was made by the
 * program. */
int serve_active_at(struct control_call *call)
{
    size_t index = call->index[0];
    struct arena *arena;

    if (control_arena_kind(index) != CONTROL_ARENA_ONE) return EFAULT;
    arena = placed_arena((unsigned)index);
    if (arena == NULL) return EAGAIN;
    call->old.pointer = &arena->active_pages;
    return 0;
}

int serve_reset(struct control_call *call)
{
    struct arena *arena = manual_arena_at((unsigned)call->index[0]);

    if (arena == NULL) return EFAULT;
    placed_reset(arena);
    (void)decay_after_return();
    return 0;
}

int serve_destroy(struct control_call *call)
{
    struct arena *arena = manual_arena_at((unsigned)call->index[0]);

    if (arena == NULL || !placed_destroy(arena)) return EFAULT;
    (void)decay_after_return();
    return 0;
}

/* ---- caches ---- */

int serve_cache_create(struct control_call *call)
{
    call->old.number = explicit_cache_create();
    return call->old.number < EXPLICIT_CACHE_COUNT_MAX ? 0 : EFAULT; /* as jemalloc says it */
}

int serve_cache_flush(struct control_call *call)
{
    struct cache *cache;

    if (!call->writes) return EINVAL;
    cache = explicit_cache_at(call->new_value.number);
    if (cache == NULL) return EFAULT;
    explicit_cache_flush(cache);
    (void)decay_after_return();
    return 0;
}

int serve_cache_destroy(struct control_call *call)
{
    if (!call->writes) return EINVAL;
    if (explicit_cache_at(call->new_value.number) == NULL) return EFAULT;
    explicit_cache_destroy(call->new_value.number);
    (void)decay_after_return();
    return 0;
}

/* ---- the calling thread ---- */

/* NULL: no memory for a cache, now. */
static struct front *attached_front(void)
{
    struct front *front = heap_attach();

    return thread_front()->kind == FRONT_EMPTY ? NULL : front;
}

int serve_thread_arena(struct control_call *call)
{
    struct front *front = attached_front();
    struct arena *arena;

    if (front == NULL || front->cache == NULL) return EAGAIN;
    arena = thread_arena();
    if (arena == NULL) return EAGAIN;
    call->old.number = arena->index;
    if (!call->writes) return 0;
    if (call->new_value.number >= control_arena_count()) return EFAULT;
    arena = placed_arena(call->new_value.number);
    if (arena == NULL) return call->new_value.number < arena_limit ? EAGAIN : EFAULT;
    thread_bind(arena);
    return 0;
}

int serve_cache_enabled(struct control_call *call)
{
    if (attached_front() == NULL) return EAGAIN;
    call->old.flag = !thread_cache_is_off();
    if (!call->writes || call->new_value.flag == call->old.flag) return 0;
    if (!call->new_value.flag) return thread_cache_off() ? 0 : EAGAIN;
    if (fill_is_wanted() || thread_front()->kind == FRONT_GONE) return EFAULT;
    thread_cache_on();
    return 0;
}

int serve_thread_flush(void)
{
    const struct cache *cache = thread_front()->cache;

    thread_flush();
    if (cache != NULL) arena_settle(cache->arena);
    (void)decay_after_return();
    return 0;
}

/* A size beyond the largest class means that one. */
int serve_cache_max(struct control_call *call)
{
    const struct front *front = attached_front();
    size_t bytes;

    if (front == NULL) return EAGAIN;
    call->old.size = class_bytes[front->cache == NULL ? cached_class_max : front->cache->class_max];
    if (!call->writes) return 0;
    if (front->cache == NULL) return EFAULT;
    bytes = max_size(min_size(call->new_value.size, SMALL_BYTES_MAX), 1);
    thread_hold_up_to(class_of_size(bytes));
    (void)decay_after_return();
    return 0;
}

/* jemalloc knows no larger bins. */
enum { CACHED_BYTES_LIMIT = 8 * MiB };

/* Two magazines of a class, or a wide one; of large blocks as many of a length as fit, as long as
 * the thread holds all classes. */
static size_t blocks_held_at_most(const struct cache *cache, size_t bytes)
{
    unsigned class_index =
        bytes > SMALL_BYTES_MAX ? CLASS_COUNT - 1 : class_of_size(max_size(bytes, 1));

    if (!cache_may_hold(cache, class_index)) return 0;
    if (bytes > SMALL_BYTES_MAX) return large_cache_runs_max(bytes);
    return max_size((size_t)2 * magazine_capacity(class_index), WIDE_BLOCKS_MAX);
}

int serve_cache_blocks(struct control_call *call)
{
    const struct front *front = attached_front();
    size_t bytes;

    if (front == NULL) return EAGAIN;
    if (call->new_buffer == NULL || call->new_length != sizeof bytes) return EINVAL;
    __builtin_memcpy(&bytes, call->new_buffer, sizeof bytes);
    if (bytes > CACHED_BYTES_LIMIT) return EINVAL;
    call->old.size = blocks_held_at_most(front->cache, bytes);
    return 0;
}
