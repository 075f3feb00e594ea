/* run_find.h - the search for free pages: in the bins, and across neighbouring free runs.
 *
 * Changes nothing. Called under the page heap's lock, but for run_lease_would_grow.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGE_HEAP_RUN_FIND_H
#define PRAIRIE_PAGE_HEAP_RUN_FIND_H

#include "../base/bits.h"
#include "supplied.h"

/* The state of a page beside a run. A seam's may be written by who opens pages there, under another
 * lock (K4). */
INLINE_READS_UNLOCKED uint8_t state_beside(const struct page *record) { return record->state; }

/* A hole: neighbouring free runs of both kinds, between two used ones. */
struct hole {
    uint32_t first;
    size_t pages;
};

/* The bin of dirty runs of this length; that of clean ones is BIN_COUNT further. Beyond the exact
 * bins it is made of the doubling and of the four highest bits of the length, which are 8 to 15:
 * the first, 64, is 8 + 8 * 6 + 8. */
INLINE unsigned bin_of(size_t pages)
{
    unsigned top;

    if (pages <= BIN_EXACT_COUNT) return (unsigned)pages - 1;
    top = highest_bit(pages);
    return (unsigned)(pages >> (top - 3)) + 8 * top + 8;
}

/* The first bin whose every member has at least this length. */
INLINE unsigned bin_fitting(size_t pages)
{
    unsigned top;

    if (pages <= BIN_EXACT_COUNT) return (unsigned)pages - 1;
    top = highest_bit(pages);
    return bin_of(pages) + ((pages & (((size_t)1 << (top - 3)) - 1)) != 0);
}

enum { PROBES_MAX = 4 };

/* The shortest that fits among the first few members of a bin that mixes lengths. */
INLINE uint32_t fitting_member(uint32_t page, size_t pages)
{
    uint32_t best = 0, best_pages = UINT32_MAX;

    for (unsigned probe = 0; page != 0 && probe < PROBES_MAX; probe++) {
        const struct page *record = page_record(page);
        if (record->run_pages >= pages && record->run_pages < best_pages) {
            best = page;
            best_pages = record->run_pages;
            if (best_pages == pages) break;
        }
        page = record->bin.next;
    }
    return best;
}

/* Counted from the first bin of the kind; BIN_COUNT: none. */
INLINE unsigned first_bin_from(const uint64_t *bitmap, unsigned bin)
{
    unsigned word = bin / 64;
    uint64_t bits = bitmap[word] & bits_from(bin % 64);

    while (bits == 0) {
        if (++word == BIN_WORDS) return BIN_COUNT;
        bits = bitmap[word];
    }
    return word * 64 + lowest_bit(bits);
}

INLINE const uint64_t *bitmap_of(const struct page_heap *heap, unsigned kind)
{
    return &heap->bins.bitmap[(size_t)kind * BIN_WORDS];
}
INLINE const uint32_t *heads_of(const struct page_heap *heap, unsigned kind)
{
    return &heap->bins.head[(size_t)kind * BIN_COUNT];
}

INLINE uint32_t find_in(struct page_heap *heap, unsigned kind, size_t pages, unsigned below,
                        unsigned fitting)
{
    unsigned bin;

    if (heap->free_pages[kind] < pages) return 0;
    if (pages > BIN_EXACT_COUNT) {
        uint32_t page = heads_of(heap, kind)[below];
        if (page != 0 && (page = fitting_member(page, pages)) != 0) return page;
    }
    bin = first_bin_from(bitmap_of(heap, kind), fitting);
    return bin == BIN_COUNT ? 0 : heads_of(heap, kind)[bin];
}

/* A free run of at least `pages`; dirty ones first. 0: there is none. */
INLINE uint32_t run_find(struct page_heap *heap, size_t pages)
{
    unsigned below = bin_of(pages), fitting = bin_fitting(pages);
    uint32_t page = find_in(heap, FREE_DIRTY, pages, below, fitting);

    return page != 0 ? page : find_in(heap, FREE_CLEAN, pages, below, fitting);
}

/* The same among dirty runs only. */
INLINE uint32_t run_find_dirty(struct page_heap *heap, size_t pages)
{
    return find_in(heap, FREE_DIRTY, pages, bin_of(pages), bin_fitting(pages));
}

/* A free run with an aligned stretch of `pages` in it; dirty ones first. 0: there is none. */
uint32_t run_find_aligned(struct page_heap *heap, size_t pages, size_t align_pages);
/* A hole of at least `pages`, looked for around the longest dirty runs. pages == 0: none was
 * found. */
struct hole run_find_hole(struct page_heap *heap, size_t pages);
/* The hole that ends before this page; the one that begins at it, looked at no farther than
 * `enough` pages. */
struct hole hole_before(uint32_t page);
struct hole hole_after(const struct page_heap *heap, uint32_t page, size_t enough);
/* The one that ends where the newest region does; none when another page heap opened that. */
struct hole hole_at_the_end(const struct page_heap *heap);

#endif
