/* supplied_test.c - a page heap whose pages come in pieces: leases across runs of both kinds,
 * pieces that touch, and the way through its dirty runs. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

enum { PIECE_PAGES = 512, PIECES_MAX = 4 };

static struct page_heap heap;
static struct page_piece pieces[PIECES_MAX];

static void check_heap(void)
{
    lock_take(&page_heap->lock);
    supplied_check(&heap);
    lock_give(&page_heap->lock);
}

static void add_piece(unsigned index, char *base, unsigned kind)
{
    uint32_t first = foreign_add(base, PIECE_PAGES);

    assert_int_not_equal(first, 0);
    pieces[index] = (struct page_piece){ .first = first, .pages = PIECE_PAGES };
    supplied_add(&heap, &pieces[index], kind);
    check_heap();
}

static char *reserve_pages(size_t pages)
{
    struct os_range range = os_reserve(pages << space.page_shift, 2 * MiB);

    assert_non_null(range.base);
    return range.base;
}

static void start_heap(void)
{
    assert_true(heap_start());
    supplied_start(&heap);
}

static uint32_t lease(size_t pages, size_t align_pages)
{
    uint32_t page = supplied_lease(&heap, pages, align_pages, false);

    check_heap();
    if (page == 0) return 0;
    assert_int_equal(page_record(page)->run_pages, pages);
    assert_int_equal(((uintptr_t)page_address(page) >> space.page_shift) % align_pages, 0);
    return page;
}

static void give(uint32_t page, unsigned kind)
{
    supplied_return(&heap, page, kind);
    check_heap();
}

/* No region is open yet, and so no record of the page map but those of the piece. */
static void a_piece_may_be_the_first_memory(void **state)
{
    (void)state;
    start_heap();
    assert_int_equal(space.open_bytes, 0);
    add_piece(0, reserve_pages(PIECE_PAGES), FREE_CLEAN);
    assert_int_not_equal(lease(5, 1), 0);
}

/* Dirty beside clean is one stretch, also at the first page of a piece, and for aligned runs. */
static void a_lease_takes_runs_of_both_kinds(void **state)
{
    uint32_t page;

    (void)state;
    start_heap();
    add_piece(0, reserve_pages(PIECE_PAGES), FREE_CLEAN);
    give(lease(128, 1), FREE_DIRTY);
    page = lease(PIECE_PAGES, 1);
    assert_int_equal(page, pieces[0].first);
    give(page, FREE_CLEAN);
    give(lease(100, 1), FREE_DIRTY);
    page = lease(PIECE_PAGES - 2, 2);
    assert_int_not_equal(page, 0);
    give(page, FREE_DIRTY);
    assert_true(supplied_is_free(&pieces[0]));
}

/* Two pieces at neighbouring addresses: no run reaches from one into the other. */
static void pieces_that_touch_stay_two(void **state)
{
    char *base;

    (void)state;
    start_heap();
    base = reserve_pages(2 * PIECE_PAGES);
    add_piece(0, base, FREE_DIRTY);
    add_piece(1, base + ((size_t)PIECE_PAGES << space.page_shift), FREE_DIRTY);
    assert_int_equal(lease(PIECE_PAGES + 1, 1), 0);
    give(lease(PIECE_PAGES, 1), FREE_DIRTY);
    supplied_remove(&heap, &pieces[0]);
    check_heap();
    assert_int_not_equal(lease(PIECE_PAGES, 1), 0);
    assert_int_equal(lease(1, 1), 0);
}

static void expect_two_in_a_run(unsigned lower)
{
    uint32_t page;

    start_heap();
    page = run_lease(2 * PIECE_PAGES, 1, PAGE_USED).page;
    for (unsigned i = 0; i < 2; i++) {
        pieces[i] = (struct page_piece){ .first = i == lower ? page : page + PIECE_PAGES,
                                         .pages = PIECE_PAGES };
        supplied_add(&heap, &pieces[i], FREE_DIRTY);
    }
    check_heap();
    assert_int_equal(lease(PIECE_PAGES + 1, 1), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_ptr_equal(supplied_piece_of(&heap, pieces[i].first), &pieces[i]);
        assert_ptr_equal(supplied_piece_of(&heap, pieces[i].first + PIECE_PAGES - 1), &pieces[i]);
    }
    assert_null(supplied_piece_of(&heap, page - 1));
    assert_null(supplied_piece_of(&heap, page + 2 * PIECE_PAGES));
    assert_true(supplied_is_free(&pieces[0]));
    assert_true(supplied_is_free(&pieces[1]));
}

/* Where their numbers are neighbours, too, and whichever is known first. */
static void pieces_of_a_run_stay_two(void **state)
{
    (void)state;
    expect_two_in_a_run(0);
}

static void pieces_of_a_run_stay_two_in_any_order(void **state)
{
    (void)state;
    expect_two_in_a_run(1);
}

/* Nor has it anything to do with prairie's own pages. */
static void what_is_supplied_ends_no_wait_for_huge_pages(void **state)
{
    (void)state;
    start_heap();
    huge.withdrawn = true;
    add_piece(0, reserve_pages(PIECE_PAGES), FREE_CLEAN);
    (void)lease(5, 1);
    assert_int_equal(heap.clean_leased, 5);
    assert_true(huge.withdrawn);
}

static void only_a_stretch_of_that_length(void **state)
{
    uint32_t first, second;

    (void)state;
    start_heap();
    add_piece(0, reserve_pages(PIECE_PAGES), FREE_DIRTY);
    first = lease(10, 1);
    second = lease(20, 1);
    assert_int_not_equal(lease(PIECE_PAGES - 30, 1), 0);
    give(first, FREE_DIRTY);
    assert_int_equal(supplied_lease(&heap, 9, 1, true), 0);
    assert_int_equal(supplied_lease(&heap, 10, 1, true), first);
    give(second, FREE_CLEAN);
    assert_int_equal(supplied_lease(&heap, 20, 1, true), second);
    check_heap();
}

/* However many pieces there are: those that are in use are not looked at, or the list of them,
 * which is damaged here, would be followed. */
static void pieces_in_use_are_passed_by(void **state)
{
    struct page_piece *list;
    uint32_t page;

    (void)state;
    start_heap();
    add_piece(0, reserve_pages(PIECE_PAGES), FREE_DIRTY);
    add_piece(1, reserve_pages(PIECE_PAGES), FREE_CLEAN);
    page = supplied_lease(&heap, PIECE_PAGES, 1, true);
    assert_int_equal(page, pieces[0].first);
    list = heap.pieces;
    heap.pieces = (struct page_piece *)(uintptr_t)1;
    assert_int_equal(supplied_lease(&heap, PIECE_PAGES + 1, 1, true), 0);
    assert_int_equal(supplied_lease(&heap, PIECE_PAGES - 1, 1, true), 0);
    assert_int_equal(supplied_lease(&heap, PIECE_PAGES, 1, true), pieces[1].first);
    assert_int_equal(supplied_lease(&heap, 1, 1, false), 0);
    heap.pieces = list;
    check_heap();
    give(page, FREE_DIRTY);
    give(pieces[1].first, FREE_DIRTY);
    give(supplied_lease(&heap, PIECE_PAGES, 1, true), FREE_CLEAN);
}

/* Each dirty run comes once, whatever becomes of the ones before it, and clean ones do not. */
static void the_way_through_dirty_runs(void **state)
{
    enum { RUNS = 60 };
    uint32_t used[2 * RUNS], page, next, last = 0;
    unsigned met = 0;

    (void)state;
    start_heap();
    add_piece(0, reserve_pages(PIECE_PAGES), FREE_CLEAN);
    add_piece(1, reserve_pages(PIECE_PAGES), FREE_CLEAN);
    for (unsigned i = 0; i < 2 * RUNS; i++) used[i] = lease(3, 1);
    for (unsigned i = 0; i < 2 * RUNS; i += 2) give(used[i], FREE_DIRTY);
    for (page = supplied_take_dirty(&heap, 0); page != 0; page = next, met++) {
        assert_int_not_equal(page, last);
        assert_int_equal(page_record(page)->run_pages, 3);
        next = supplied_take_dirty(&heap, page);
        give(page, met % 2 == 0 ? FREE_CLEAN : FREE_DIRTY);
        last = page;
    }
    assert_int_equal(met, RUNS);
    assert_int_equal(heap.free_pages[FREE_DIRTY], 3 * RUNS / 2);
}

static void check_shared_heap(void)
{
    for (unsigned i = 0; i < page_heap_count(); i++) lock_take(&page_heap[i].lock);
    page_heaps_check();
    for (unsigned i = 0; i < page_heap_count(); i++) lock_give(&page_heap[i].lock);
}

/* At every moment it is whole runs for the page heap that it lies in. */
static void a_piece_in_a_used_run(void **state)
{
    uint32_t page;
    uint16_t lent;

    (void)state;
    start_heap();
    page = run_lease(PIECE_PAGES, 1, PAGE_USED).page;
    lent = page_record(page)->bin_index;
    pieces[0] = (struct page_piece){ .first = page, .pages = PIECE_PAGES };
    supplied_add(&heap, &pieces[0], FREE_DIRTY);
    check_heap();
    check_shared_heap();
    (void)lease(10, 1);
    check_shared_heap();
    supplied_remove(&heap, &pieces[0]);
    check_shared_heap();
    assert_int_equal(page_record(page)->run_pages, PIECE_PAGES);
    assert_int_equal(page_record(page)->bin_index, lent);
    run_return(page);
    check_shared_heap();
}

UNIT_MAIN(UNIT_TEST(a_piece_may_be_the_first_memory), UNIT_TEST(a_lease_takes_runs_of_both_kinds),
          UNIT_TEST(pieces_that_touch_stay_two), UNIT_TEST(pieces_of_a_run_stay_two),
          UNIT_TEST(pieces_of_a_run_stay_two_in_any_order),
          UNIT_TEST(what_is_supplied_ends_no_wait_for_huge_pages),
          UNIT_TEST(only_a_stretch_of_that_length), UNIT_TEST(pieces_in_use_are_passed_by),
          UNIT_TEST(the_way_through_dirty_runs), UNIT_TEST(a_piece_in_a_used_run))
