/* control_placed.c - arenas that a program makes, caches that it makes, and what its threads use.
 * SPDX-License-Identifier: MIT
 */
#include "../arenas/tidy.h"
#include "../cache/named.h"
#include "../heap/placed.h"
#include "control_tables.h"

#include <errno.h>

enum placed_leaf {
    PLACED_ARENAS_CREATE,
    PLACED_ARENA_HOOKS,
    PLACED_ARENA_RESET,
    PLACED_ARENA_DESTROY,
    PLACED_CACHE_CREATE,
    PLACED_CACHE_FLUSH,
    PLACED_CACHE_DESTROY,
    PLACED_THREAD_ARENA,
    PLACED_THREAD_CACHE_ENABLED,
    PLACED_THREAD_CACHE_FLUSH,
    PLACED_BATCH_QUERY,
    PLACED_QUERY,
};

/* The last two are for servers that know the ladder of a quantum of 8; with another one they would take bins for
 * what they are not, so that then these names do not exist. */
static const struct control_row placed_rows[] = {
    { "arenas.create", CONTROL_RAW, CONTROL_BOTH, PLACED_ARENAS_CREATE },
    { "arena.*.extent_hooks", CONTROL_POINTER, CONTROL_BOTH, PLACED_ARENA_HOOKS },
    { "arena.*.reset", CONTROL_ACTION, 0, PLACED_ARENA_RESET },
    { "arena.*.destroy", CONTROL_ACTION, 0, PLACED_ARENA_DESTROY },
    { "tcache.create", CONTROL_UNSIGNED, CONTROL_READ | CONTROL_EXACT, PLACED_CACHE_CREATE },
    { "tcache.flush", CONTROL_UNSIGNED, CONTROL_WRITE, PLACED_CACHE_FLUSH },
    { "tcache.destroy", CONTROL_UNSIGNED, CONTROL_WRITE, PLACED_CACHE_DESTROY },
    { "thread.arena", CONTROL_UNSIGNED, CONTROL_BOTH, PLACED_THREAD_ARENA },
    { "thread.tcache.enabled", CONTROL_BOOL, CONTROL_BOTH, PLACED_THREAD_CACHE_ENABLED },
    { "thread.tcache.flush", CONTROL_ACTION, 0, PLACED_THREAD_CACHE_FLUSH },
    { "experimental.utilization.batch_query", CONTROL_RAW, CONTROL_BOTH, PLACED_BATCH_QUERY },
    { "experimental.utilization.query", CONTROL_RAW, CONTROL_BOTH, PLACED_QUERY },
};
enum {
    PLACED_ROWS = ARRAY_COUNT(placed_rows),
    PLACED_ROWS_USED = LADDER_QUANTUM == 8 ? PLACED_ROWS : PLACED_ROWS - 2
};

static bool placed_exists(const struct control_row *row, const size_t *index)
{
    (void)row;
    return control_arena_is_known(index[0]);
}

/* ---- arenas ---- */

static bool set_hooks(struct arena *arena, struct extent_hooks *hooks)
{
    if (hooks == NULL || arena_set_hooks(arena, hooks) != NULL) return true;
    (void)arena_destroy(arena);
    return false;
}

/* Reading tells the default ones of arenas that have no others, so that a program can chain its own to them. */
static int serve_hooks(struct control_call *call)
{
    struct arena *arena;

    if (!control_arena_is_made(call->index[0])) return EFAULT;
    arena = explicit_arena_at((unsigned)call->index[0]);
    call->old.pointer = arena != NULL ? arena_hooks(arena) : &extent_hooks_default;
    if (!call->writes || call->new_value.pointer == call->old.pointer) return 0;
    if (arena == NULL || call->new_value.pointer == NULL) return EFAULT;
    return arena_set_hooks(arena, call->new_value.pointer) != NULL ? 0 : EAGAIN;
}

static int serve_create(struct control_call *call)
{
    struct arena *arena;

    if (call->old_buffer == NULL || call->old_length == NULL) return EINVAL;
    if (*call->old_length != sizeof arena->index) {
        *call->old_length = 0;
        return EINVAL;
    }
    if (call->new_buffer != NULL && call->new_length != sizeof(void *)) return EINVAL;
    arena = arena_create();
    if (arena == NULL) return EAGAIN;
    if (call->new_buffer != NULL
        && !set_hooks(arena, *(struct extent_hooks *const *)call->new_buffer))
        return EAGAIN;
    __builtin_memcpy(call->old_buffer, &arena->index, sizeof arena->index);
    return 0;
}

static int serve_explicit(struct control_call *call)
{
    size_t index = call->index[0];
    struct arena *arena = index < ARENA_INDEX_END ? explicit_arena_at((unsigned)index) : NULL;

    if (arena == NULL) return EFAULT;
    if (call->row->leaf == PLACED_ARENA_RESET) placed_reset(arena);
    else if (!placed_destroy(arena)) return EFAULT;
    (void)tidy_after_return();
    return 0;
}

/* ---- caches ---- */

static int serve_cache(struct control_call *call)
{
    unsigned number = call->new_value.number;
    struct cache *cache;

    if (call->row->leaf == PLACED_CACHE_CREATE) {
        call->old.number = named_create();
        return call->old.number < NAMED_COUNT_MAX ? 0 : EAGAIN;
    }
    cache = named_cache(number);
    if (cache == NULL) return EFAULT;
    if (call->row->leaf == PLACED_CACHE_FLUSH) named_flush(cache);
    else named_destroy(number);
    (void)tidy_after_return();
    return 0;
}

/* ---- the calling thread ---- */

static int serve_thread_arena(struct control_call *call)
{
    struct cache *cache = heap_attach();
    struct arena *arena;

    if (cache == NULL || cache_is_gone(cache)) return EAGAIN;
    arena = thread_arena();
    if (arena == NULL) return EAGAIN;
    call->old.number = arena->index;
    if (!call->writes || call->new_value.number == arena->index) return 0;
    if (call->new_value.number >= control_arena_count()) return EFAULT;
    arena = placed_arena(call->new_value.number);
    if (arena == NULL) return call->new_value.number < arena_limit ? EAGAIN : EFAULT;
    thread_bind(arena);
    return 0;
}

static int serve_cache_enabled(struct control_call *call)
{
    if (heap_attach() == NULL) return EAGAIN;
    call->old.flag = !cache_is_gone(thread_cache());
    if (!call->writes || call->new_value.flag == call->old.flag) return 0;
    if (call->new_value.flag) thread_cache_on();
    else thread_cache_off();
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
    case POINTER_SMALL: break;
    default: return use;
    }
    *slab = slab_record(page_record(page)->slab);
    *arena = arenas[(*slab)->arena];
    lock_take(&(*arena)->lock);
    use = (struct use_of_block){ (*slab)->free_count, (*slab)->block_count,
                                 slab_shape[(*slab)->class_index].bytes };
    lock_give(&(*arena)->lock);
    return use;
}

static int serve_batch_query(struct control_call *call)
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

static int serve_query(struct control_call *call)
{
    struct use_of_bin *use = call->old_buffer;
    const struct shelf *shelf;
    struct arena *arena;
    struct slab *slab;

    if (call->new_buffer == NULL || call->new_length != sizeof(void *)) return EINVAL;
    if (use == NULL || call->old_length == NULL || *call->old_length != sizeof *use) return EINVAL;
    *use = (struct use_of_bin){ .filled_next = NULL };
    use->of_slab = use_of(*(const void *const *)call->new_buffer, &arena, &slab);
    if (slab == NULL) return 0;
    lock_take(&arena->lock);
    shelf = &arena->shelf[slab->class_index];
    if (shelf->partial != 0) use->filled_next = slab_record(shelf->partial)->base;
    use->free_blocks = shelf->slab_free_blocks;
    use->blocks = shelf->slab_count * slab->block_count;
    lock_give(&arena->lock);
    return 0;
}

static int serve_placed(struct control_call *call)
{
    if (!heap_start()) return EAGAIN;
    switch ((enum placed_leaf)call->row->leaf) {
    case PLACED_ARENAS_CREATE: return serve_create(call);
    case PLACED_ARENA_HOOKS: return serve_hooks(call);
    case PLACED_ARENA_RESET:
    case PLACED_ARENA_DESTROY: return serve_explicit(call);
    case PLACED_CACHE_CREATE:
    case PLACED_CACHE_FLUSH:
    case PLACED_CACHE_DESTROY: return serve_cache(call);
    case PLACED_THREAD_ARENA: return serve_thread_arena(call);
    case PLACED_THREAD_CACHE_ENABLED: return serve_cache_enabled(call);
    case PLACED_THREAD_CACHE_FLUSH:
        thread_flush();
        (void)tidy_after_return();
        return 0;
    case PLACED_BATCH_QUERY: return serve_batch_query(call);
    default: return serve_query(call);
    }
}

const struct control_table control_placed = { placed_rows, PLACED_ROWS_USED, placed_exists,
                                              serve_placed };
