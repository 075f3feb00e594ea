/* run_find.c - the rare searches: first set bits and a few probes; only a hole is looked along run
 * by run, as far as the request is long.
 * SPDX-License-Identifier: MIT
 */
#include "run_find.h"

_Static_assert(RUN_PAGES_MAX < (size_t)15 << 26,
               "the bin of the longest run that can be asked for is below BIN_COUNT");

enum { ALIGNED_PROBES_MAX = 64, HOLE_PROBES_MAX = 8, HOLE_RUNS_MAX = 16 };

/* A run with an aligned stretch in it. Any run of pages + align - 1 has one, but the shorter ones
 * are tried first: freed aligned blocks are exactly as long as the next request. */
static uint32_t find_aligned(struct page_heap *heap, unsigned kind, size_t pages,
                             size_t align_pages)
{
    const uint64_t *bitmap = bitmap_of(heap, kind);
    unsigned last = bin_fitting(pages + align_pages - 1);
    unsigned probes = 0;

    for (unsigned bin = first_bin_from(bitmap, bin_of(pages)); bin < BIN_COUNT;
         bin = bin + 1 < BIN_COUNT ? first_bin_from(bitmap, bin + 1) : BIN_COUNT) {
        unsigned in_bin = 0;
        for (uint32_t page = heads_of(heap, kind)[bin]; page != 0 && in_bin < 8;
             page = page_record(page)->bin.next, in_bin++) {
            if (page_record(page)->run_pages >= pages + pages_to_alignment(page, align_pages))
                return page;
        }
        probes += in_bin;
        if (probes >= ALIGNED_PROBES_MAX && bin < last) bin = last - 1; /* where all fit */
    }
    return 0;
}

uint32_t run_find_aligned(struct page_heap *heap, size_t pages, size_t align_pages)
{
    uint32_t page = find_aligned(heap, FREE_DIRTY, pages, align_pages);

    return page != 0 ? page : find_aligned(heap, FREE_CLEAN, pages, align_pages);
}

READS_UNLOCKED bool run_lease_would_grow(const struct page_heap *heap, size_t pages)
{
    unsigned fitting;

    if (unlikely(pages > RUN_PAGES_MAX)) return true; /* beyond the last bin */
    fitting = bin_fitting(pages);
    return first_bin_from(bitmap_of(heap, FREE_DIRTY), fitting) == BIN_COUNT
        && (BETWEEN_READS(run_lease_would_grow),
            first_bin_from(bitmap_of(heap, FREE_CLEAN), fitting) == BIN_COUNT);
}

/* ---- holes ---- */

/* Does a free run of the heap begin at the page, or end there? Pieces are not looked across. */
INLINE bool is_free_in(const struct page_heap *heap, uint32_t page, uint32_t beside)
{
    uint8_t state = state_beside(page_record(page));

    if (likely(!page_heap_is_supplied(heap))) return is_free_state(state);
    return is_supplied_free_state(state) && supplied_is_same_piece(heap, page, beside);
}

struct hole hole_after(const struct page_heap *heap, uint32_t page, size_t enough)
{
    struct hole hole = { page, 0 };

    while (hole.pages < enough) {
        uint32_t next = page + (uint32_t)hole.pages;

        if (!is_free_in(heap, next, next - 1)) break;
        hole.pages += page_record(next)->run_pages;
    }
    return hole;
}

struct hole hole_before(uint32_t page)
{
    struct hole hole = { page, 0 };

    for (unsigned runs = 0;
         runs < HOLE_RUNS_MAX && is_free_state(state_beside(page_record(hole.first - 1))); runs++) {
        uint32_t run_pages = page_record(hole.first - 1)->run_pages;
        hole.first -= run_pages;
        hole.pages += run_pages;
    }
    return hole;
}

struct hole hole_at_the_end(const struct page_heap *heap)
{
    uint32_t end = space_open_end();

    if (end == 0 || (PAGE_HEAPS > 1 && heap->end != end)) return (struct hole){ 0, 0 };
    return hole_before(end);
}

struct hole run_find_hole(struct page_heap *heap, size_t pages)
{
    const struct run_bins *bins = &heap->bins; /* the dirty ones come first */
    unsigned probes = 0;

    for (unsigned word = BIN_WORDS; word-- > 0;) {
        for (uint64_t bits = bins->bitmap[word]; bits != 0;
             bits &= ~((uint64_t)1 << highest_bit(bits))) {
            uint32_t page = bins->head[word * 64 + highest_bit(bits)];
            for (; page != 0; page = page_record(page)->bin.next) {
                struct hole hole = hole_before(page);
                hole.pages += hole_after(heap, page, pages).pages;
                if (hole.pages >= pages) return hole;
                if (++probes == HOLE_PROBES_MAX) return (struct hole){ 0, 0 };
            }
        }
    }
    return (struct hole){ 0, 0 };
}
