/* run_fence.c - fences are built and taken away.
 * SPDX-License-Identifier: MIT
 */
#include "run_fence.h"

#include "run_bins.h"

static bool fences_are_off; /* atomic */

void run_fences_off(void) { RELAXED_STORE(fences_are_off, true); }

static void put_back(struct page_heap *heap, uint32_t page)
{
    lock_take(&heap->lock);
    make_free(heap, page, 1, PAGE_CLEAN);
    lock_give(&heap->lock);
}

static void build_fence(uint32_t page)
{
    struct page_heap *heap = page_heap_of(page);
    struct page *record = page_record(page);
    uint32_t behind = page + record->run_pages;
    bool is_free;

    lock_take(&heap->lock);
    is_free = state_beside(page_record(behind)) == PAGE_CLEAN && page_heap_may_take_clean(heap, 1);
    if (is_free) take_front(heap, behind, 1, PAGE_USED);
    lock_give(&heap->lock);
    if (!is_free) return;
    if (os_fence(page_range(behind, 1))) {
        RELAXED_STORE(record->bin_index, (uint16_t)(record->bin_index | PAGE_FENCED));
        return;
    }
    run_fences_off();
    put_back(heap, behind);
}

/* What a thread may keep has none. */
void run_fence(uint32_t page, size_t pages, enum page_state state)
{
    if (state == PAGE_LARGE && pages > LARGE_CACHE_PAGES_MAX && !OS_PURGE_CLOSES
        && !RELAXED_LOAD(fences_are_off))
        build_fence(page);
}

void run_take_fence_away(uint32_t page)
{
    struct page *record = page_record(page);
    uint32_t behind = page + record->run_pages;

    if (!page_is_fenced(record)) return;
    RELAXED_STORE(record->bin_index, (uint16_t)(record->bin_index - PAGE_FENCED));
    /* A page that the kernel keeps is nobody's. */
    if (os_unfence(page_range(behind, 1))) put_back(page_heap_of(page), behind);
}
