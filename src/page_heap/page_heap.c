/* page_heap.c - the shared page heaps, how many of their pages are in use, and whether clean ones
 * may be leased.
 *
 * The same however free runs are kept (lab/runs keeps them in trees).
 * SPDX-License-Identifier: MIT
 */
#include "page_heap.h"

#include "../space/commit.h"

_Static_assert(PAGE_HEAPS >= 1 && PAGE_HEAPS <= PAGE_HEAP_MAX, "PRAIRIE_PAGE_HEAPS");

struct page_heap page_heap[PAGE_HEAPS];
bool page_heaps_barred;

/* Up to so many pages nothing is asked. */
#define FREELY_LEASED_MAX ((uint32_t)(OS_PURGE_CLOSES ? 0 : RUN_PAGES_MAX))

void page_heap_start(struct page_heap *heap)
{
    lock_init(&heap->lock, LOCK_PAGE_HEAP);
    heap->lease_pages_max = heap->is_supplied ? (uint32_t)RUN_PAGES_MAX : FREELY_LEASED_MAX;
    heap->huge_again_at = UINT64_MAX;
    /* What hooks supply is no part of what prairie takes. */
    if (!heap->is_supplied) commit_add_heap(&heap->free_pages[FREE_CLEAN]);
}

void page_heaps_start(void)
{
    for (unsigned i = 0; i < PAGE_HEAPS; i++) {
        page_heap[i].number = (uint8_t)i;
        page_heap_start(&page_heap[i]);
    }
}

void page_heaps_each_lock(void (*visit)(struct lock *lock), enum lock_walk walk)
{
    for (unsigned i = 0; i < PAGE_HEAPS; i++)
        visit(&page_heap[walk == WALK_TAKES ? i : PAGE_HEAPS - 1 - i].lock);
}

struct page_counts page_heaps_count(void)
{
    struct page_counts counts = { 0, 0, 0 };

    check(lock_is_mine(&page_heap->lock));
    for (unsigned i = 0; i < PAGE_HEAPS; i++) {
        struct page_heap *heap = &page_heap[i];

        if (i != 0) lock_take(&heap->lock);
        counts.used += page_heap_used_pages(heap);
        counts.dirty += heap->free_pages[FREE_DIRTY];
        counts.clean_leased += heap->clean_leased;
        if (i != 0) lock_give(&heap->lock);
    }
    return counts;
}

struct page_counts page_heaps_count_now(void)
{
    struct page_counts counts;

    lock_take(&page_heap->lock);
    counts = page_heaps_count();
    lock_give(&page_heap->lock);
    return counts;
}

void page_heaps_follow_limits(void)
{
    for (unsigned i = 0; i < PAGE_HEAPS; i++) {
        lock_take(&page_heap[i].lock);
        RELAXED_STORE(page_heap[i].lease_pages_max,
                      page_heaps_are_barred() || commit_is_limited() ? 0 : FREELY_LEASED_MAX);
        lock_give(&page_heap[i].lock);
    }
}

void page_heaps_bar_clean(bool barred)
{
    RELAXED_STORE(page_heaps_barred, barred);
    page_heaps_follow_limits();
}

/* Their records count as well. */
bool page_heaps_spare_clean(size_t pages)
{
    return pages == 0
        || (!page_heaps_are_barred()
            && commit_allows(pages * (page_bytes() + sizeof(struct page))));
}
