/* run_kernel.c - what passes between free runs and the kernel: dirty ones that are purged, the end
 * of the region that is closed.
 * SPDX-License-Identifier: MIT
 */
#include "huge.h"
#include "run_bins.h"

/* Where the page is noted; of page 0, where none is. IN_FLIGHT_MAX: nowhere. */
static unsigned slot_in_flight(struct page_heap *heap, uint32_t page)
{
    unsigned slot = 0;

    while (slot < IN_FLIGHT_MAX && heap->in_flight[slot] != page) slot++;
    return slot;
}

/* Long runs first: they cost the fewest calls and are the least likely to be wanted at once. Of a
 * longer one the last pages are taken, cut off at the boundaries of huge pages when there are
 * some. */
uint32_t run_take_dirty(struct page_heap *heap, size_t min_pages, size_t max_pages)
{
    const uint64_t *bitmap = heap->bins.bitmap; /* the dirty ones come first */
    unsigned slot = slot_in_flight(heap, 0), word = BIN_WORDS - 1;
    size_t unit = huge_pages_each(&heap->huge), length, end, pages;
    uint32_t page;

    check(lock_is_mine(&heap->lock));
    while (word > 0 && bitmap[word] == 0) word--;
    if (bitmap[word] == 0 || slot == IN_FLIGHT_MAX) return 0;
    page = heap->bins.head[word * 64 + highest_bit(bitmap[word])];
    end = length = page_record(page)->run_pages;
    if (length < min_pages) return 0;
    pages = min_size(length, max_pages);
    if (pages >= 2 * unit) {
        size_t head = pages_to_alignment(page, unit);

        end = head + round_down(length - head, unit);
        pages = min_size(end - head, round_down(max_pages, unit));
    }
    if (pages != end) page = split_free(heap, page, end - pages);
    take_front(heap, page, pages, PAGE_USED);
    heap->in_flight[slot] = page;
    return page;
}

void run_put_free(struct page_heap *heap, uint32_t page, enum page_state state)
{
    unsigned slot = slot_in_flight(heap, page);

    check(lock_is_mine(&heap->lock) && slot < IN_FLIGHT_MAX);
    if (unlikely(slot == IN_FLIGHT_MAX)) return; /* a fork's child has put it back already */
    heap->in_flight[slot] = 0;
    make_free(heap, page, page_record(page)->run_pages, state);
}

void page_heap_put_back_in_flight(struct page_heap *heap)
{
    for (unsigned i = 0; i < IN_FLIGHT_MAX; i++)
        if (heap->in_flight[i] != 0) run_put_free(heap, heap->in_flight[i], PAGE_DIRTY);
}

bool page_heap_close_tail(struct page_heap *heap)
{
    struct hole tail = { 0, 0 };
    size_t closed = 0;

    lock_take(&heap->lock);
    if (space_newest_is_open()) tail = hole_before(space_open_end());
    if (tail.pages > 0) closed = space_close_tail(tail.first, tail.pages);
    if (closed != 0) {
        heap->open_pages -= tail.pages;
        for (size_t at = 0; at < tail.pages;) at += remove_free(heap, tail.first + (uint32_t)at);
    }
    lock_give(&heap->lock);
    return closed != 0;
}
