/* run_kernel.c - what passes between free runs and the kernel: dirty ones that are purged, the end of the
 * region that is closed.
 * SPDX-License-Identifier: MIT
 */
#include "run_bins.h"

/* IN_FLIGHT_MAX: it is not there. 0 is a free place. */
static unsigned place_in_flight(uint32_t page)
{
    unsigned place = 0;

    while (place < IN_FLIGHT_MAX && keeper.in_flight[place] != page) place++;
    return place;
}

/* The last so many pages of a run, to be taken off at the boundaries of huge pages, if it is long enough. */
static struct page_span piece_of(uint32_t page, size_t pages_max)
{
    size_t length = page_record(page)->run_pages, unit = huge_pages_each();
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
uint32_t run_take_dirty(size_t min_pages, size_t max_pages)
{
    unsigned place = place_in_flight(0);

    check(lock_is_mine(&keeper.lock));
    for (unsigned word = BIN_WORDS; word-- > 0 && place < IN_FLIGHT_MAX;) {
        uint64_t bits = keeper.bins.bitmap[word]; /* the dirty ones come first */
        struct page_span piece;
        uint32_t page;

        if (bits == 0) continue;
        page = keeper.bins.head[word * 64 + highest_bit(bits)];
        if (page_record(page)->run_pages < min_pages) return 0;
        piece = piece_of(page, max_pages);
        if (piece.first != page) (void)split_free(page, piece.first - page);
        take_front(piece.first, piece.count, PAGE_USED);
        keeper.in_flight[place] = piece.first;
        return piece.first;
    }
    return 0;
}

void run_put_free(uint32_t page, enum page_state state)
{
    unsigned place = place_in_flight(page);

    check(lock_is_mine(&keeper.lock) && place < IN_FLIGHT_MAX);
    if (unlikely(place == IN_FLIGHT_MAX)) return; /* a fork's child has put it back already */
    keeper.in_flight[place] = 0;
    make_free(page, page_record(page)->run_pages, state);
}

void runs_put_back_in_flight(void)
{
    for (unsigned i = 0; i < IN_FLIGHT_MAX; i++)
        if (keeper.in_flight[i] != 0) run_put_free(keeper.in_flight[i], PAGE_DIRTY);
}

bool runs_close_tail(void)
{
    struct hole tail = { 0, 0 };
    size_t closed = 0;

    lock_take(&keeper.lock);
    if (plain_newest_is_open()) tail = hole_before(plain_open_end());
    if (tail.pages > 0) closed = plain_close_tail(tail.first, tail.pages);
    if (closed != 0) {
        for (size_t at = 0; at < tail.pages;) {
            struct page *record = page_record(tail.first + (uint32_t)at);
            size_t pages = record->run_pages;

            bin_remove(record);
            keeper.free_pages[kind_of(record->state)] -= pages;
            (record + pages - 1)->state = PAGE_INSIDE;
            record->state = PAGE_INSIDE;
            at += pages;
        }
    }
    lock_give(&keeper.lock);
    return closed != 0;
}
