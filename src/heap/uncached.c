/* uncached.c - one block at a time, past all caches: for those who asked for no cache.
 *
 * What such a caller wants is a block from the slab that is filled from first, and a slab that
 * knows at once that a block came back: programs move their blocks together that way.
 * SPDX-License-Identifier: MIT
 */
#include "heap.h"

#include "../arenas/decay.h"
#include "../guard/fill.h"

/* From the arena that this thread fills from. */
void *uncached_take(unsigned class_index)
{
    struct cache *front = heap_attach(), *cache;
    void *block;

    if (front == NULL) return NULL;
    if (AUDITED) heap_audit();
    cache = front->behind;
    block = likely(cache != NULL) ? cache_take_one(cache, class_index)
                                  : uncached_thread_take(class_index);
    (void)counted(block, class_bytes[class_index]);
    return CHECKED ? misuse_note_take(block) : block;
}

void uncached_free(void *block)
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
    class_index = class_of_offset(page_record(page)->class_at);
    count_given(class_bytes[class_index]);
    fill_given(block, class_bytes[class_index]);
    uncached_thread_put(class_index, block);
    if (unlikely(decay_after_return())) thread_flush();
}
