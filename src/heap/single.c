/* single.c - one block at a time, past all caches: for those who asked for no cache.
 *
 * What such a caller wants is a block from the slab that is filled from first, and a slab that knows at once
 * that a block came back: programs move their blocks together that way.
 * SPDX-License-Identifier: MIT
 */
#include "heap.h"

#include "../arenas/tidy.h"
#include "../guard/fill.h"

static void *take_from(struct arena *arena, unsigned class_index)
{
    void *slots[2] = { NULL, NULL };

    (void)arena_fill(arena, class_index, slots, 1, true);
    lock_give(&arena->lock);
    return slots[1];
}

/* From the arena that this thread fills from. */
static void *take_once(struct cache *cache, unsigned class_index)
{
    struct arena *arena = arena_choose(cache->arena);

    if (arena == NULL) return NULL;
    cache->arena = arena;
    return take_from(arena, class_index);
}

void *single_take(unsigned class_index)
{
    struct cache *cache = heap_attach();
    void *block;

    if (cache == NULL) return NULL;
    if (AUDITED) heap_audit();
    if (cache->behind != NULL) cache = cache->behind;
    block = cache_is_gone(cache) ? stray_take(class_index) : take_once(cache, class_index);
    if (unlikely(block == NULL) && !cache_is_gone(cache)) {
        tidy_before_refusal();
        block = take_once(cache, class_index);
    }
    (void)counted(block, class_bytes[class_index]);
    return CHECKED ? misuse_note_take(block) : block;
}

void single_free(void *block)
{
    unsigned class_index;
    uint32_t page;

    if (block == NULL) return;
    if (CHECKED) misuse_note_free(block);
    if (pointer_kind(block, &page) != POINTER_SMALL) {
        free_overflow(thread_cache(), block);
        return;
    }
    if (AUDITED) heap_audit();
    class_index = class_of_place(page_record(page)->class_at);
    count_given(class_bytes[class_index]);
    fill_given(block, class_bytes[class_index]);
    stray_put(class_index, block);
    if (unlikely(tidy_after_return())) thread_flush();
}
