/* misuse.c - what a pointer is, and what to say when it should not have come.
 * SPDX-License-Identifier: MIT
 */
#include "heap.h"

/* The state of the run that a page lies in; walks back to its first page. Only for pointers that are
 * about to be refused. */
static uint8_t state_around(uint32_t page)
{
    while (page > 1 && page_record(page)->state == PAGE_INSIDE) page--;
    return page_record(page)->state;
}

static READS_UNLOCKED bool is_open(uint32_t page)
{
    for (uint32_t i = 0; i < plain.region_count; i++)
        if (page - plain.region[i].first_page < plain.region[i].open_pages) return true;
    return false;
}

enum pointer_kind pointer_kind(const void *pointer, uint32_t *page)
{
    const struct page *record;
    uint8_t state;

    *page = page_at(pointer);
    if (*page == 0 || !is_open(*page)) return POINTER_FOREIGN;
    record = page_record(*page);
    if (likely(record->state == PAGE_LARGE) && page_address(*page) == pointer) return POINTER_LARGE;
    if (record->class_at != 0) return POINTER_SMALL;
    state = state_around(*page);
    return state == PAGE_DIRTY || state == PAGE_CLEAN ? POINTER_FREED : POINTER_INTERIOR;
}

static const char *wording(const char *verb, enum pointer_kind kind)
{
    bool freeing = verb[0] == 'f', resizing = verb[0] == 'r';

    if (kind == POINTER_FREED)
        return freeing ? "double free"
             : resizing ? "realloc of a freed pointer" : "malloc_usable_size of a freed pointer";
    if (kind == POINTER_FOREIGN)
        return freeing ? "free of a foreign pointer"
             : resizing ? "realloc of a foreign pointer" : "malloc_usable_size of a foreign pointer";
    return freeing ? "free of an interior pointer"
         : resizing ? "realloc of an interior pointer" : "malloc_usable_size of an interior pointer";
}

void misuse_abort(const char *verb, enum pointer_kind kind, const void *pointer)
{
    fatal_address(wording(verb, kind), pointer);
}

/* Reads another thread's slab without its lock: a used block's bit is not changed by others. */
READS_UNLOCKED void misuse_check_free(struct cache *cache, const void *pointer)
{
    unsigned class_index;
    const struct slab_shape *shape;
    const struct slab *slab;
    uint32_t page, offset, index;

    if (pointer == NULL) return;
    switch (pointer_kind(pointer, &page)) {
    case POINTER_SMALL: break;
    case POINTER_LARGE: return;
    case POINTER_FOREIGN: misuse_abort("free", POINTER_FOREIGN, pointer);
    case POINTER_INTERIOR: misuse_abort("free", POINTER_INTERIOR, pointer);
    case POINTER_FREED: misuse_abort("free", POINTER_FREED, pointer);
    }
    class_index = class_of_place(page_record(page)->class_at);
    shape = &slab_shape[class_index];
    slab = slab_record(page_record(page)->slab);
    offset = (uint32_t)((const char *)pointer - slab->base);
    index = offset / shape->block_bytes;
    if (index * shape->block_bytes != offset || index >= shape->block_count)
        misuse_abort("free", POINTER_INTERIOR, pointer);
    if ((slab->free[index / 64] >> (index % 64)) & 1)
        misuse_abort("free", POINTER_FREED, pointer);
    if (!cache_is_constant(cache) && cache_holds(cache, class_index, pointer))
        misuse_abort("free", POINTER_FREED, pointer);
}
