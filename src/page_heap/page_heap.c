/* page_heap.c - the shared page heap, how many of its pages are in use, and whether clean ones may
 * be leased.
 *
 * The same however free runs are kept (lab/runs keeps them in trees).
 * SPDX-License-Identifier: MIT
 */
#include "page_heap.h"

#include "../space/commit.h"

struct page_heap page_heap;

void page_heap_start(struct page_heap *heap)
{
    lock_init(&heap->lock, LOCK_PAGE_HEAP);
    heap->lease_pages_max = RUN_PAGES_MAX;
    heap->huge_again_at = UINT64_MAX;
    /* What hooks supply is no part of what prairie takes. */
    if (!heap->is_supplied) commit_add_heap(&heap->free_pages[FREE_CLEAN]);
}

size_t page_heap_used_pages_now(struct page_heap *heap)
{
    size_t pages;

    lock_take(&heap->lock);
    pages = page_heap_used_pages(heap);
    lock_give(&heap->lock);
    return pages;
}

static void set_bound(struct page_heap *heap, bool *bound, bool is_set)
{
    lock_take(&heap->lock);
    RELAXED_STORE(*bound, is_set);
    RELAXED_STORE(heap->lease_pages_max,
                  heap->clean_is_barred || heap->clean_is_limited ? 0 : RUN_PAGES_MAX);
    lock_give(&heap->lock);
}

void page_heap_bar_clean(struct page_heap *heap, bool barred)
{
    set_bound(heap, &heap->clean_is_barred, barred);
}

void page_heap_limit_clean(struct page_heap *heap, bool limited)
{
    set_bound(heap, &heap->clean_is_limited, limited);
}

/* Their records count as well. */
bool page_heap_spares_clean(struct page_heap *heap, size_t pages)
{
    return pages == 0
        || (!page_heap_is_barred(heap)
            && commit_allows(pages * (page_bytes() + sizeof(struct page))));
}
