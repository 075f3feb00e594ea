/* control_placed.c - arenas that a program makes, caches that it makes, and what its threads use.
 * SPDX-License-Identifier: MIT
 */
#include "../arenas/decay.h"
#include "../cache/large_cache.h"
#include "../cache/explicit_cache.h"
#include "../guard/fill.h"
#include "../arenas/manual.h"
#include "../heap/doors.h"
#include "../heap/heap.h"
#include "../heap/large.h"
#include "../heap/placed.h"
#include "control_tree.h"

#include <errno.h>

/* ---- arenas ---- */

/* Reading tells the default ones of arenas that have no others, so that a program can chain its own
 * to them. */
int serve_hooks(struct control_call *call)
{
    struct arena *arena;

    if (control_arena_kind(call->index[0]) != CONTROL_ARENA_ONE) return EFAULT;
    arena = made_arena_at(call->index[0]);
    call->old.pointer = arena != NULL ? arena_hooks(arena) : extent_hooks_unset();
    if (!call->writes || call->new_value.pointer == call->old.pointer) return 0;
    if (call->new_value.pointer == NULL) return EFAULT;
    arena = placed_arena((unsigned)call->index[0]);
    if (arena == NULL) return EAGAIN;
    if (arena_set_hooks(arena, call->new_value.pointer) == NULL) return EAGAIN;
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
    return call->old.number < EXPLICIT_CACHE_COUNT_MAX ? 0 : EAGAIN;
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
    thread_flush();
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
    size_t bytes, blocks;

    if (front == NULL) return EAGAIN;
    if (call->new_buffer == NULL || call->new_length != sizeof bytes) return EINVAL;
    __builtin_memcpy(&bytes, call->new_buffer, sizeof bytes);
    if (bytes > CACHED_BYTES_LIMIT) return EINVAL;
    blocks = blocks_held_at_most(front->cache, bytes);
    if (!control_is_read(call)) return 0;
    if (*call->old_length != sizeof blocks) return EINVAL;
    __builtin_memcpy(call->old_buffer, &blocks, sizeof blocks);
    return 0;
}

/* ---- many blocks at once ---- */

struct batch {
    void **blocks;
    size_t count, size;
    int flags; /* as of mallocx */
};

/* Tells how many there are; fewer than wanted, when memory ran out. */
int serve_batch_take(struct control_call *call)
{
    struct batch batch;
    size_t taken = 0;

    if (call->new_buffer == NULL || call->new_length != sizeof batch) return EINVAL;
    __builtin_memcpy(&batch, call->new_buffer, sizeof batch);
    for (; taken < batch.count; taken++) {
        batch.blocks[taken] = prairie_mallocx(batch.size, batch.flags);
        if (batch.blocks[taken] == NULL) break;
    }
    call->old.size = taken;
    return 0;
}

/* ---- how full slabs are ---- */

struct use_of_block {
    size_t free_blocks, blocks, bytes;
};

/* Of the slab of a block; a large one is a slab of its own; all 0 for any other address. */
static struct use_of_block use_of(const void *block, struct arena **arena, struct slab **slab)
{
    struct use_of_block use = { 0, 0, 0 };
    uint32_t page;

    *slab = NULL;
    switch (pointer_kind(block, &page)) {
    case POINTER_LARGE:
    case POINTER_SAMPLED: return (struct use_of_block){ 0, 1, large_bytes(page) };
    case POINTER_GUARDED: return (struct use_of_block){ 0, 1, page_bytes() };
    case POINTER_SMALL:
    case POINTER_HARDENED: break;
    default: return use;
    }
    if (page_record(page)->class_at == 0) return (struct use_of_block){ 0, 1, large_bytes(page) };
    *slab = slab_record(page_record(page)->slab);
    *arena = arenas[(*slab)->arena];
    lock_take(&(*arena)->lock);
    use = (struct use_of_block){ (*slab)->free_count, (*slab)->block_count,
                                 slab_shape[(*slab)->class_index].bytes };
    lock_give(&(*arena)->lock);
    return use;
}

int serve_batch_query(struct control_call *call)
{
    const void *const *blocks = call->new_buffer;
    struct use_of_block *uses = call->old_buffer;
    size_t count = call->new_length / sizeof *blocks;
    struct arena *arena;
    struct slab *slab;

    if (blocks == NULL || uses == NULL || call->old_length == NULL || count == 0) return EINVAL;
    if (call->new_length != count * sizeof *blocks || *call->old_length != count * sizeof *uses)
        return EINVAL;
    for (size_t i = 0; i < count; i++) uses[i] = use_of(blocks[i], &arena, &slab);
    return 0;
}

struct use_of_bin {
    void *filled_next; /* the slab that the next block comes from */
    struct use_of_block of_slab;
    size_t free_blocks, blocks; /* of all slabs of the class in this arena */
};

int serve_query(struct control_call *call)
{
    struct use_of_bin *use = call->old_buffer;
    const struct class_bin *bin;
    struct arena *arena;
    struct slab *slab;

    if (call->new_buffer == NULL || call->new_length != sizeof(void *)) return EINVAL;
    if (use == NULL || call->old_length == NULL || *call->old_length != sizeof *use) return EINVAL;
    *use = (struct use_of_bin){ .filled_next = NULL };
    use->of_slab = use_of(*(const void *const *)call->new_buffer, &arena, &slab);
    if (slab == NULL) return 0;
    lock_take(&arena->lock);
    bin = &arena->bin[slab->class_index];
    if (bin->partial.count != 0) use->filled_next = slab_record(bin->partial.first)->base;
    use->free_blocks = bin->slab_free_blocks;
    use->blocks = bin->slab_count * slab->block_count;
    lock_give(&arena->lock);
    return 0;
}
