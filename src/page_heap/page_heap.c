/* page_heap.c - the shared page heaps, how many of their pages are in use, and whether clean ones
 * may be leased.
 *
 * The same however free runs are kept (lab/runs keeps them in trees).
 * SPDX-License-Identifier: MIT
 */
#include "page_heap.h"

#include "../base/bits.h"
#include "../space/commit.h"

_Static_assert(PAGE_HEAPS >= 1 && PAGE_HEAPS <= 64 && (PAGE_HEAPS & (PAGE_HEAPS - 1)) == 0,
               "PRAIRIE_PAGE_HEAPS is a power of two");

_Alignas(4096) struct page_heap page_heap[PAGE_HEAPS] SPARSE; /* the first one on one page */
unsigned page_heap_last;
uint64_t page_heaps_past_trigger;
bool page_heaps_barred;

/* In a shared one, while there is no limit. Where purging closes pages, all leases ask. */
static bool clean_is_free_now(void)
{
    return !OS_PURGE_CLOSES && !page_heaps_are_barred() && !commit_is_limited();
}

void page_heap_start(struct page_heap *heap)
{
    *(volatile char *)heap = 0; /* a page of zeros that is read first costs two faults */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    heap->huge_again_at = UINT64_MAX;
    if (page_heap_is_supplied(heap)) { /* no part of what prairie takes */
        heap->clean_is_free = true;
        heap->trigger_pages = SIZE_MAX;
        return;
    }
    lock_init(&heap->lock, LOCK_PAGE_HEAP);
    heap->clean_is_free = clean_is_free_now();
    heap->trigger_pages = 0;
    commit_add_heap(&heap->open_pages, &heap->free_pages[FREE_CLEAN]);
}

void page_heaps_start(void)
{
    page_heap_last = 0;
    page_heap_start(page_heap);
}

/* A page heap is added under the first one's lock, so their number stays while that is held. */
void page_heaps_each_lock(void (*visit)(struct lock *lock), enum lock_walk walk)
{
    if (walk == WALK_TAKES)
        for (unsigned i = 0; i < page_heap_count(); i++) visit(&page_heap[i].lock);
    else
        for (unsigned i = page_heap_count(); i-- > 0;) visit(&page_heap[i].lock);
}

static void follow_limits(struct page_heap *heap)
{
    lock_take(&heap->lock);
    RELAXED_STORE(heap->clean_is_free, clean_is_free_now());
    lock_give(&heap->lock);
}

static void start_next(void)
{
    struct page_heap *heap = &page_heap[page_heap_last + 1];

    heap->number = (uint8_t)(page_heap_last + 1);
    page_heap_start(heap);
    lock_take(&page_heap->lock);
    __atomic_store_n(&page_heap_last, heap->number, __ATOMIC_RELEASE);
    lock_give(&page_heap->lock);
    follow_limits(heap); /* who changed them meanwhile may not have seen it */
}

struct page_heap *page_heap_for(unsigned arena_index, unsigned arena_count)
{
    unsigned count = 1u << highest_bit(min_size(arena_count, PAGE_HEAPS));
    unsigned number = arena_index & (count - 1);

    while (page_heap_count() <= number) start_next();
    return &page_heap[number];
}

size_t page_heaps_used(void)
{
    size_t pages = 0;

    for (unsigned i = 0; i < page_heap_count(); i++) {
        struct page_heap *heap = &page_heap[i];

        lock_take(&heap->lock);
        pages += page_heap_used_pages(heap);
        lock_give(&heap->lock);
    }
    return pages;
}

void page_heaps_follow_limits(void)
{
    for (unsigned i = 0; i < page_heap_count(); i++) follow_limits(&page_heap[i]);
}

void page_heaps_bar_clean(bool barred)
{
    RELAXED_STORE(page_heaps_barred, barred);
    page_heaps_follow_limits();
}

bool page_heaps_spare_clean(size_t pages)
{
    return pages == 0 || (!page_heaps_are_barred() && commit_allows(bytes_with_records(pages)));
}
