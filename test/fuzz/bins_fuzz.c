/* bins_fuzz.c - the bins of free runs: which bin a length has, what a search finds, K1 and K2. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "fuzz.h"
#include "page_heap/run_bins.h"
#include "page_heap/run_walk.h"
#include "unit/pages.h"

const unsigned fuzz_bytes_max = 400;

enum { PIECES = 40, PIECE_PAGES = 160, GAP = 1 };

/* A stretch of used pages, of which each piece has a free run or none; used pages between them keep
 * the runs from merging. */
static struct piece {
    uint32_t page;
    size_t pages; /* free, from the beginning of the piece; 0: none */
    bool clean;
} pieces[PIECES];

static void check_lengths(void)
{
    size_t a = 1 + random_below(1 << 20), b = a + random_below(1 << 10);
    unsigned fitting = bin_fitting(b);

    assert_true(bin_of(a) <= bin_of(b) && bin_of(b) < BIN_COUNT);
    assert_true(fitting == bin_of(b) || fitting == bin_of(b) + 1);
    /* Every member of a bin from there on has that length at least. */
    if (bin_of(a) >= fitting) assert_true(a >= b);
    if (b <= BIN_EXACT_COUNT) assert_int_equal(bin_of(b), b - 1);
}

static void make(struct piece *piece)
{
    size_t pages = 1 + random_below(PIECE_PAGES);

    piece->clean = random_below(2) == 0;
    make_free(page_heap, piece->page, pages, piece->clean ? PAGE_CLEAN : PAGE_DIRTY);
    if (pages < PIECE_PAGES)
        tag_run(page_record(piece->page + (uint32_t)pages), PIECE_PAGES - pages, PAGE_USED,
                PAGE_USED);
    piece->pages = pages;
}

static void unmake(struct piece *piece)
{
    assert_int_equal(remove_free(page_heap, piece->page), piece->pages);
    tag_run(page_record(piece->page), PIECE_PAGES, PAGE_USED, PAGE_USED);
    piece->pages = 0;
}

static void take_some(struct piece *piece)
{
    size_t pages = 1 + random_below(piece->pages), rest = piece->pages - pages;

    take_front(page_heap, piece->page, pages, PAGE_USED);
    if (rest != 0) {
        uint32_t page = piece->page + (uint32_t)pages;
        expect_run(page, rest, piece->clean ? PAGE_CLEAN : PAGE_DIRTY);
        assert_int_equal(remove_free(page_heap, page), rest);
    }
    tag_run(page_record(piece->page), PIECE_PAGES, PAGE_USED, PAGE_USED);
    piece->pages = 0;
}

/* The search finds a run that is there, whenever one is sure to fit. */
static void search(void)
{
    size_t wanted = 1 + random_below(PIECE_PAGES);
    uint32_t page = run_find(page_heap, wanted);
    bool fits = false, dirty = false;

    for (unsigned i = 0; i < PIECES; i++) {
        if (pieces[i].pages == 0 || bin_of(pieces[i].pages) < bin_fitting(wanted)) continue;
        fits = true;
        dirty |= !pieces[i].clean;
    }
    if (fits) assert_int_not_equal(page, 0);
    if (page == 0) return;
    assert_true(page_record(page)->run_pages >= wanted);
    if (dirty) assert_int_equal(page_record(page)->state, PAGE_DIRTY);
}

static void check_pieces(void)
{
    size_t runs = 0, free_pages[FREE_KINDS] = { 0, 0 };

    for (unsigned i = 0; i < PIECES; i++) {
        runs += pieces[i].pages != 0;
        free_pages[pieces[i].clean] += pieces[i].pages;
    }
    assert_int_equal(run_bins_check(page_heap), runs);
    assert_int_equal(page_heap->free_pages[FREE_DIRTY], free_pages[FREE_DIRTY]);
    assert_int_equal(page_heap->free_pages[FREE_CLEAN], free_pages[FREE_CLEAN]);
}

void fuzz_one(void)
{
    uint32_t stretch;

    start_pages();
    stretch = run_lease(PIECES * (size_t)(PIECE_PAGES + GAP), 1, PAGE_USED).page;
    assert_int_not_equal(stretch, 0);
    lock_take(&page_heap->lock);
    for (uint32_t page; (page = run_find(page_heap, 1)) != 0;)
        take_front(page_heap, page, page_record(page)->run_pages, PAGE_USED);
    for (unsigned i = 0; i < PIECES; i++) {
        pieces[i].page = stretch + i * (uint32_t)(PIECE_PAGES + GAP);
        tag_run(page_record(pieces[i].page), PIECE_PAGES, PAGE_USED, PAGE_USED);
        tag_run(page_record(pieces[i].page + PIECE_PAGES), GAP, PAGE_USED, PAGE_USED);
    }
    while (!random_is_over()) {
        struct piece *piece = &pieces[random_below(PIECES)];

        switch (random_below(4)) {
        case 0: check_lengths(); break;
        case 1: search(); break;
        case 2:
            if (piece->pages != 0) take_some(piece);
            break;
        default:
            if (piece->pages == 0) make(piece);
            else unmake(piece);
        }
        check_pieces();
    }
    lock_give(&page_heap->lock);
}
