/* run_resize_test.c - runs that are aligned, grow, shrink, go to the kernel, or end the region. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "pages.h"

/* ---- alignment ---- */

static bool is_page_aligned_to(uint32_t page, size_t align_pages)
{
    return is_aligned((uintptr_t)page_address(page), bytes_of(align_pages));
}

static void aligned_runs_are_aligned(void **state)
{
    (void)state;
    start_pages();
    for (size_t align = 1; align <= 512; align *= 2) {
        for (size_t pages = 1; pages <= 20; pages += 19) {
            struct run run = run_lease(pages, align, PAGE_LARGE);
            assert_int_not_equal(run.page, 0);
            assert_true(is_page_aligned_to(run.page, align));
            assert_true(all_bytes_are(page_address(run.page), 0, bytes_of(pages)));
            check_runs();
        }
    }
}

/* Freed aligned blocks serve the next request of the same kind: the heap does not grow. */
static void aligned_runs_are_reused(void **state)
{
    uint32_t page[20];
    size_t open;

    (void)state;
    start_pages();
    for (unsigned i = 0; i < 20; i++) page[i] = run_lease(16, 16, PAGE_LARGE).page;
    for (unsigned i = 0; i < 20; i += 2) run_return(page[i]);
    open = space.open_bytes;
    for (unsigned i = 0; i < 20; i += 2) {
        page[i] = run_lease(16, 16, PAGE_LARGE).page;
        assert_true(is_page_aligned_to(page[i], 16));
        check_runs();
    }
    assert_int_equal(space.open_bytes, open);
}

/* ---- extend and trim ---- */

static void extending_takes_from_a_free_right_neighbour(void **state)
{
    uint32_t first, second;

    (void)state;
    start_pages();
    first = between_used(20);
    run_trim(page_heap, first, 4);
    expect_run(first + 4, 16, PAGE_DIRTY);
    assert_true(run_extend(page_heap, first, 6));
    expect_run(first, 6, PAGE_LARGE);
    expect_run(first + 6, 14, PAGE_DIRTY);
    assert_false(run_extend(page_heap, first, 21)); /* a used page stands at the end */
    check_runs();
    expect_run(first, 6, PAGE_LARGE);
    assert_true(run_extend(page_heap, first, 20));
    expect_run(first, 20, PAGE_LARGE);
    check_runs();
    second = lease(1);
    assert_true(second < first || second >= first + 20);
}

/* Dirty pages first, clean ones after them: both are taken. */
static void extending_crosses_dirty_and_clean(void **state)
{
    uint32_t first, second;

    (void)state;
    start_pages();
    first = lease(3);
    second = lease(3);
    assert_int_equal(second, first + 3);
    give_back(second);
    assert_int_equal(run_extend(page_heap, first, 9), EXTENDED);
    check_runs();
    expect_run(first, 9, PAGE_LARGE);
    assert_int_equal(page_record(first + 9)->state, PAGE_CLEAN);
    assert_int_equal(run_extend(page_heap, first, 12), EXTENDED_BY_ZEROS);
    check_runs();
    assert_int_equal(page_heap->large_pages, 12);
    assert_int_equal(page_heap_used_pages(page_heap), 12);
}

static void extending_stops_at_the_end_of_the_space(void **state)
{
    uint32_t last;
    size_t pages;

    (void)state;
    start_pages();
    (void)lease(1);
    pages = page_heap->free_pages[FREE_CLEAN];
    last = lease(pages);
    assert_false(run_extend(page_heap, last, pages + 1));
    check_runs();
    run_trim(page_heap, last, 1);
    assert_true(run_extend(page_heap, last, pages));
    check_runs();
}

static void trimming_gives_the_tail_back(void **state)
{
    uint32_t first;

    (void)state;
    start_pages();
    first = between_used(40);
    run_trim(page_heap, first, 39);
    check_runs();
    expect_run(first + 39, 1, PAGE_DIRTY);
    run_trim(page_heap, first, 1);
    check_runs();
    expect_run(first + 1, 39, PAGE_DIRTY);
    assert_int_equal(page_heap->large_pages, 1);
    give_back(first);
    expect_run(first, 40, PAGE_DIRTY);
}

static void extend_a_free_run(void)
{
    uint32_t page = between_used(10);

    run_return(page);
    (void)run_extend(page_heap, page, 11);
}

static void trim_a_free_run(void)
{
    uint32_t page = between_used(10);

    run_return(page);
    run_trim(page_heap, page, 5);
}

static void extend_to_less(void) { (void)run_extend(page_heap, lease(10), 10); }
static void trim_to_more(void) { run_trim(page_heap, lease(10), 10); }
static void trim_to_nothing(void) { run_trim(page_heap, lease(10), 0); }

/* The kernel has it meanwhile, or it is somebody else's already. */
static void only_runs_in_use_change_their_length(void **state)
{
    static void (*const harms[])(void) = { extend_a_free_run, trim_a_free_run, extend_to_less,
                                           trim_to_more, trim_to_nothing };

    (void)state;
    start_pages();
    for (unsigned i = 0; i < ARRAY_COUNT(harms); i++)
        expect_abort(harms[i], "prairie: broken invariant: ");
}

/* ---- what purging takes ---- */

static void purging_takes_the_tail_of_the_longest_dirty_run(void **state)
{
    uint32_t longest, other;
    uint32_t page;

    (void)state;
    start_pages();
    other = between_used(20);
    longest = between_used(90);
    give_back(other);
    give_back(longest);
    page = run_take_dirty(page_heap, 1, 30);
    assert_int_equal(page_record(page)->run_pages, 30);
    assert_int_equal(page, longest + 60);
    check_runs();
    run_put_free(page, PAGE_CLEAN);
    check_runs();
    expect_run(longest, 60, PAGE_DIRTY);
    expect_run(longest + 60, 30, PAGE_CLEAN);
    assert_int_equal(run_take_dirty(page_heap, 61, 100), 0);
    page = run_take_dirty(page_heap, 60, 100);
    assert_int_equal(page, longest);
    run_put_free(page, PAGE_DIRTY);
    check_runs();
    expect_run(longest, 60, PAGE_DIRTY);
}

/* Where lengths share a bin, what was returned last may be shorter than what is asked for. */
static void purging_looks_beyond_the_youngest_of_a_bin(void **state)
{
    uint32_t long_enough, too_short;

    (void)state;
    start_pages();
    long_enough = between_used(70);
    too_short = between_used(66);
    give_back(long_enough);
    give_back(too_short);
    assert_int_equal(run_take_dirty(page_heap, 71, 1000), 0);
    assert_int_equal(run_take_dirty(page_heap, 68, 1000), long_enough);
    check_runs();
    assert_int_equal(run_take_dirty(page_heap, 68, 1000), 0);
    run_put_free(long_enough, PAGE_CLEAN);
    expect_run(too_short, 66, PAGE_DIRTY);
    check_runs();
}

/* Who forks in the middle of a purge has a child in which nobody comes back from the kernel. */
static void runs_in_flight_can_be_put_back(void **state)
{
    uint32_t first, second;

    (void)state;
    start_pages();
    first = between_used(80);
    second = between_used(70);
    give_back(first);
    give_back(second);
    assert_int_equal(run_take_dirty(page_heap, 1, 1000), first);
    assert_int_equal(run_take_dirty(page_heap, 1, 1000), second);
    take_page_heaps();
    page_heaps_put_back_in_flight();
    page_heaps_check();
    give_page_heaps();
    expect_run(first, 80, PAGE_DIRTY);
    expect_run(second, 70, PAGE_DIRTY);
    assert_int_equal(page_heap->free_pages[FREE_DIRTY], 150);
}

static void no_more_in_flight_than_are_remembered(void **state)
{
    uint32_t last = 0;

    (void)state;
    start_pages();
    for (unsigned i = 0; i <= IN_FLIGHT_MAX; i++) give_back(last = between_used(5));
    for (unsigned i = 0; i < IN_FLIGHT_MAX; i++)
        assert_int_not_equal(last = run_take_dirty(page_heap, 1, 5), 0);
    assert_int_equal(run_take_dirty(page_heap, 1, 5), 0);
    run_put_free(last, PAGE_CLEAN);
    assert_int_not_equal(run_take_dirty(page_heap, 1, 5), 0);
    take_page_heaps();
    page_heaps_put_back_in_flight();
    page_heaps_check();
    give_page_heaps();
}

/* The kernel took one part of a run and not the other. */
static void a_run_in_flight_can_be_split(void **state)
{
    uint32_t page, second;

    (void)state;
    start_pages();
    give_back(page = between_used(90));
    assert_int_equal(run_take_dirty(page_heap, 1, 1000), page);
    second = run_split_in_flight(page, 30);
    assert_int_equal(second, page + 30);
    expect_run(page, 30, PAGE_USED);
    expect_run(second, 60, PAGE_USED);
    check_runs();
    run_put_free(second, PAGE_CLEAN);
    check_runs();
    expect_run(second, 60, PAGE_CLEAN);
    assert_int_equal(run_split_in_flight(second, 30), 0);
    second = run_split_in_flight(page, 10);
    take_page_heaps();
    page_heaps_put_back_in_flight();
    page_heaps_check();
    give_page_heaps();
    expect_run(page, 30, PAGE_DIRTY);
    assert_false(page_heaps_have_in_flight());
}

static void no_run_is_split_beyond_what_is_remembered(void **state)
{
    uint32_t page;
    unsigned splits = 0;

    (void)state;
    start_pages();
    give_back(page = between_used(90));
    assert_int_equal(run_take_dirty(page_heap, 1, 1000), page);
    while (run_split_in_flight(page, page_record(page)->run_pages - 2) != 0) splits++;
    assert_int_equal(splits, IN_FLIGHT_MAX - 1);
    expect_run(page, 90 - 2 * splits, PAGE_USED);
    assert_true(page_heaps_have_in_flight());
    take_page_heaps();
    page_heaps_put_back_in_flight();
    page_heaps_check();
    give_page_heaps();
    expect_run(page, 90, PAGE_DIRTY);
}

/* ---- the end of the region ---- */

/* The right to use memory is given back with the pages; opened again they are zero. */
static void the_free_end_can_be_closed(void **state)
{
    uint32_t kept, last;
    size_t committed, open, tail;

    (void)state;
    start_pages();
    kept = lease(50);
    last = lease(60);
    stain(last, 60, 7);
    give_back(last);
    tail = page_heap->free_pages[FREE_DIRTY] + page_heap->free_pages[FREE_CLEAN];
    assert_true(tail >= 60);
    committed = fake_committed_bytes();
    open = space.open_bytes;
    assert_true(page_heaps_close_tail(true));
    check_runs();
    assert_int_equal(fake_committed_bytes(), committed - bytes_of(tail));
    assert_int_equal(space.open_bytes, open - bytes_of(tail));
    assert_int_equal(page_heap->free_pages[FREE_DIRTY] + page_heap->free_pages[FREE_CLEAN], 0);
    assert_int_equal(page_heap_used_pages(page_heap), 50);
    assert_false(page_heaps_close_tail(true)); /* nothing is free at the end now */

    last = lease(60);
    assert_int_equal(last, kept + 50);
    assert_true(all_bytes_are(page_address(last), 0, bytes_of(60)));
    give_back(kept);
    if (page_heap->free_pages[FREE_CLEAN] > 0) (void)lease(page_heap->free_pages[FREE_CLEAN]);
    assert_false(page_heaps_close_tail(true)); /* what is free lies before what is used */
    check_runs();
}

static void a_refused_close_leaves_the_end_as_it_was(void **state)
{
    uint32_t page;
    size_t open;

    (void)state;
    start_pages();
    assert_false(page_heaps_close_tail(true)); /* nothing is open at all */
    page = lease(50);
    stain(page, 50, 7);
    give_back(page);
    open = space.open_bytes;
    fake_fail_kind(FAKE_CLOSE, true);
    assert_false(page_heaps_close_tail(true));
    check_runs();
    assert_int_equal(space.open_bytes, open);
    expect_run(page, 50, PAGE_DIRTY);
    assert_true(all_bytes_are(page_address(page), 7, bytes_of(50)));
    fake_fail_kind(FAKE_CLOSE, false);
    assert_true(page_heaps_close_tail(true));
    check_runs();
    assert_int_equal(space.open_bytes, 0);
    assert_int_equal(lease(50), page);
}

UNIT_MAIN(UNIT_TEST(aligned_runs_are_aligned), UNIT_TEST(aligned_runs_are_reused),
          UNIT_TEST(extending_takes_from_a_free_right_neighbour),
          UNIT_TEST(extending_crosses_dirty_and_clean),
          UNIT_TEST(extending_stops_at_the_end_of_the_space),
          UNIT_TEST(trimming_gives_the_tail_back), UNIT_TEST(only_runs_in_use_change_their_length),
          UNIT_TEST(purging_takes_the_tail_of_the_longest_dirty_run),
          UNIT_TEST(purging_looks_beyond_the_youngest_of_a_bin),
          UNIT_TEST(runs_in_flight_can_be_put_back),
          UNIT_TEST(no_more_in_flight_than_are_remembered), UNIT_TEST(a_run_in_flight_can_be_split),
          UNIT_TEST(no_run_is_split_beyond_what_is_remembered),
          UNIT_TEST(the_free_end_can_be_closed),
          UNIT_TEST(a_refused_close_leaves_the_end_as_it_was))
