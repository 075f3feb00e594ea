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

/* The last pages of a run, at most pages_max of them. They are cut off at the boundaries of huge
 * pages when the run is long enough. */
static struct page_span piece_of(struct page_heap *heap, uint32_t page, size_t pages_max)
{
    size_t length = page_record(page)->run_pages, unit = huge_pages_each(&heap->huge);
    size_t pages = min_size(length, pages_max);
    size_t head, rest;

    if (pages < 2 * unit)
        return (struct page_span){ page + (uint32_t)(length - pages), (uint32_t)pages };
    head = pages_to_alignment(page, unit);
    rest = round_down(length - head, unit);
    pages = min_size(rest, round_down(pages_max, unit));
    return (struct page_span){ page + (uint32_t)(head + rest - pages), (uint32_t)pages };
}

/* Long runs first: they cost the fewest calls and are the least likely to be wanted at once. */
uint32_t run_take_dirty(struct page_heap *heap, size_t min_pages, size_t max_pages)
{
    unsigned slot = slot_in_flight(heap, 0);

    check(lock_is_mine(&heap->lock));
    for (unsigned word = BIN_WORDS; word-- > 0 && slot < IN_FLIGHT_MAX;) {
        uint64_t bits = heap->bins.bitmap[word]; /* the dirty ones come first */
        struct page_span piece;
        uint32_t page;

        if (bits == 0) continue;
        page = heap->bins.head[word * 64 + highest_bit(bits)];
        if (page_record(page)->run_pages < min_pages) return 0;
        piece = piece_of(heap, page, max_pages);
        if (piece.first != page) (void)split_free(heap, page, piece.first - page);
        take_front(heap, piece.first, piece.count, PAGE_USED);
        heap->in_flight[slot] = piece.first;
        return piece.first;
    }
    return 0;
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
    if (space_newest_is_open()) tail = hole_before(heap, space_open_end());
    if (tail.pages > 0) closed = space_close_tail(tail.first, tail.pages);
    if (closed != 0) {
        heap->open_pages -= tail.pages;
        for (size_t at = 0; at < tail.pages;) {
            struct page *record = page_record(tail.first + (uint32_t)at);
            size_t pages = record->run_pages;

            bin_remove(heap, record);
            heap->free_pages[kind_of(record->state)] -= pages;
            (record + pages - 1)->state = PAGE_INSIDE;
            record->state = PAGE_INSIDE;
            at += pages;
        }
    }
    lock_give(&heap->lock);
    return closed != 0;
}
