/* run_find.h - the search for free pages: in the bins, and across neighbouring free runs.
 *
 * Changes nothing. All of it is called under the keeper's lock.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGES_RUN_FIND_H
#define PRAIRIE_PAGES_RUN_FIND_H

#include "../base/bits.h"
#include "run.h"

/* A hole: neighbouring free runs of both kinds, between two used ones. */
struct hole {
    uint32_t first;
    size_t pages;
};

/* The bin that runs of this length are kept in. */
INLINE unsigned bin_of(size_t pages)
{
    unsigned top;

    if (pages <= BIN_EXACT_COUNT) return (unsigned)pages - 1;
    top = highest_bit(pages);
    return BIN_EXACT_COUNT + (top - 6) * 8 + (unsigned)((pages >> (top - 3)) & 7);
}

/* The first bin whose every member has at least this length. */
INLINE unsigned bin_fitting(size_t pages)
{
    unsigned top;

    if (pages <= BIN_EXACT_COUNT) return (unsigned)pages - 1;
    top = highest_bit(pages);
    return bin_of(pages) + ((pages & (((size_t)1 << (top - 3)) - 1)) != 0);
}

INLINE bool is_free_state(uint8_t state) { return state == PAGE_DIRTY || state == PAGE_CLEAN; }

/* How many pages of a run lie before its first aligned address. */
size_t pages_to_alignment(uint32_t page, size_t align_pages);
/* A free run of at least `pages`; dirty ones first. 0: there is none. */
uint32_t run_find(size_t pages);
/* The same, with an aligned stretch of `pages` in it. */
uint32_t run_find_aligned(size_t pages, size_t align_pages);
/* A hole of at least `pages`, looked for around the longest dirty runs. pages == 0: none was found. */
struct hole run_find_hole(size_t pages);
/* The hole that ends before this page, or begins at it, looked at no farther than `enough` pages. */
struct hole hole_before(uint32_t page);
struct hole hole_after(uint32_t page, size_t enough);

#endif
