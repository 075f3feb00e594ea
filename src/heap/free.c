/* free.c - the door for blocks that come back.
 * SPDX-License-Identifier: MIT
 */
#include "heap.h"

#include "../cache/large_cache.h"
#include "../guard/fill.h"

PUBLIC void prairie_free(void *block)
{
    struct cache *cache = thread_cache();
    bool stored;

    if (CHECKED) misuse_note_free(block);
    stored = cache_put(cache, class_map_at(block), block);
    if (unlikely(!stored)) free_overflow(cache, block); /* full, or NULL, large, foreign */
}

/* The size names the class, so the map need not be read. A NULL goes into the magazine like a
 * block: whoever takes it drops it (M3). */
PUBLIC void prairie_free_sized(void *block, size_t size)
{
    struct cache *cache;

    if (CHECKED) misuse_check_size(block, size);
    if (CHECKED || unlikely(size > TABLE_BYTES_MAX)) {
        prairie_free(block);
        return;
    }
    cache = thread_cache();
    if (unlikely(!cache_put(cache, offset_of_sized_free[size], block)))
        free_sized_overflow(cache, block);
}

/* Of a class of which a sampled block lives every sized free comes here, but its magazine has room:
 * 13 instructions, without a frame (docs/decisions/0014). */
void free_sized_overflow(struct cache *cache, void *block)
{
    if (unlikely(!cache_put(cache, class_map_at(block), block))) free_overflow(cache, block);
}

PUBLIC void prairie_free_aligned_sized(void *block, size_t align, size_t size)
{
    (void)align;
    (void)size;
    prairie_free(block);
}

static void put_small(struct cache *cache, unsigned class_index, void *block)
{
    if (unlikely(cache == NULL)) {
        fill_given(block, class_bytes[class_index]);
        uncached_thread_put(class_index, block);
        return;
    }
    if (unlikely(class_index > cache->class_max)) {
        uncached_thread_put(class_index, block);
        return;
    }
    if (AUDITED) heap_audit();
    if (!magazine_put(&cache->magazine[class_index], block))
        cache_overflow(cache, class_index, block);
}

static bool is_vast_block(enum pointer_kind kind, uint32_t page)
{
    return (kind == POINTER_LARGE || kind == POINTER_SAMPLED)
        && page_record(page)->state == PAGE_VAST;
}

/* No plain large block of an automatic arena. Where address space is too narrow for the class map,
 * small blocks come here too. */
static NOINLINE void free_other(struct cache *cache, void *block)
{
    uint32_t page;
    enum pointer_kind kind = pointer_kind(block, &page);

    if (page != 0 && manual_arena_of_page(page_record(page)) != NULL) free_manual(page, block);
    else if (is_vast_block(kind, page)) large_put_vast(page);
    else if (kind == POINTER_SAMPLED) sampled_put(page);
    else if (kind == POINTER_SMALL)
        put_small(cache, class_of_offset(page_record(page)->class_at), block);
    else misuse_abort("free", kind, block);
}

/* Neither NULL nor a block of a class in the class map: a large block. */
static NOINLINE void free_by_page(struct cache *cache, void *block)
{
    uint32_t page = open_page_at(block);

    if (likely(page != 0) && likely(page_is_held_large(page_record(page)))
        && likely(is_page_start(block))) {
        if (likely(cache != NULL)) page = large_cache_put(cache, page, block);
        if (page != 0) large_put(page);
    } else {
        free_other(cache, block);
    }
}

void free_overflow(struct cache *cache, void *block)
{
    if (block == NULL) return;
    if (unlikely(!cache_is_plain(cache))) free_unusual(cache, block);
    else free_plainly(cache, block);
}

void free_plainly(struct cache *cache, void *block)
{
    unsigned class_index = class_at(block);

    if (likely(class_index != 0)) put_small(cache, class_index, block);
    else free_by_page(cache, block);
}
