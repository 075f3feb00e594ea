/* page_heap.c - the shared page heaps, how many of their pages are in use, and whether clean ones
 * may be leased.
 *
 * The same however free runs are kept (lab/runs keeps them in trees).
 * SPDX-License-Identifier: MIT
 */
#include "page_heap.h"

#include "../space/commit.h"

_Static_assert(PAGE_HEAPS >= 1 && PAGE_HEAPS <= PAGE_HEAP_MAX
                   && (PAGE_HEAPS & (PAGE_HEAPS - 1)) == 0,
               "PRAIRIE_PAGE_HEAPS is a power of two");

struct page_heap page_heap[PAGE_HEAPS];
unsigned page_heap_mask;
bool page_heaps_are_over;
bool page_heaps_barred;

/* Up to so many pages nothing is asked. */
#define FREELY_LEASED_MAX ((uint32_t)(OS_PURGE_CLOSES ? 0 : RUN_PAGES_MAX))

/* Of a shared one. */
static uint32_t lease_pages_max_now(void)
{
    return page_heaps_are_barred() || commit_is_limited() ? 0 : FREELY_LEASED_MAX;
}

void page_heap_start(struct page_heap *heap)
{
    lock_init(&heap->lock, LOCK_PAGE_HEAP);
    heap->lease_pages_max = heap->is_supplied ? (uint32_t)RUN_PAGES_MAX : lease_pages_max_now();
    heap->dirty_max = heap->is_supplied ? SIZE_MAX : 0;
    heap->huge_again_at = UINT64_MAX;
    /* What hooks supply is no part of what prairie takes. */
    if (!heap->is_supplied) commit_add_heap(&heap->free_pages[FREE_CLEAN]);
}

void page_heaps_start(void)
{
    page_heap_mask = 0;
    page_heap_start(page_heap);
}

void page_heaps_each_lock(void (*visit)(struct lock *lock), enum lock_walk walk)
{
    unsigned count = page_heap_count();

    for (unsigned i = 0; i < count; i++)
        visit(&page_heap[walk == WALK_TAKES ? i : count - 1 - i].lock);
}

void page_heaps_share(unsigned arena_count)
{
    unsigned count = page_heap_count();

    if (page_heap->lock.rank == 0) return; /* they start later, and are told again */
    while (count < PAGE_HEAPS && 2 * count <= arena_count) {
        for (unsigned i = count; i < 2 * count; i++) {
            page_heap[i].number = (uint8_t)i;
            page_heap_start(&page_heap[i]);
        }
        count *= 2;
    }
    __atomic_store_n(&page_heap_mask, count - 1, __ATOMIC_RELEASE);
}

struct page_counts page_heaps_count(void)
{
    struct page_counts counts = { 0, 0 };

    for (unsigned i = 0; i < page_heap_count(); i++) {
        struct page_heap *heap = &page_heap[i];

        lock_take(&heap->lock);
        counts.used += page_heap_used_pages(heap);
        counts.dirty += heap->free_pages[FREE_DIRTY];
        lock_give(&heap->lock);
    }
    return counts;
}

void page_heaps_follow_limits(void)
{
    for (unsigned i = 0; i < page_heap_count(); i++) {
        lock_take(&page_heap[i].lock);
        RELAXED_STORE(page_heap[i].lease_pages_max, lease_pages_max_now());
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
