/* run_test.c - leasing, splitting, merging and returning runs of pages, one case at a time. */
/* SPDX-License-Identifier: MIT */
#include "library.h"
#include "page_heap/run_bins.h"
#include "page_heap/run_fence.h"
#include "page_heap/run_find.h"

#include "pages.h"

/* ---- bins ---- */

/* Longer runs are never in an earlier bin, and from the fitting bin on every run is long enough. */
static void bins_are_in_order_of_length(void **state)
{
    unsigned previous = 0;
    size_t shortest[BIN_COUNT] = { 0 };
    const size_t end = (size_t)1 << 22;

    (void)state;
    for (size_t pages = 1; pages < end; pages++) {
        unsigned bin = bin_of(pages);
        assert_true(bin == previous || bin == previous + (pages > 1));
        if (shortest[bin] == 0) shortest[bin] = pages;
        previous = bin;
    }
    for (size_t pages = 1; pages < end / 2; pages++) {
        unsigned fitting = bin_fitting(pages);
        assert_true(fitting == bin_of(pages) || fitting == bin_of(pages) + 1);
        assert_true(shortest[fitting] >= pages);
        /* The first bin of mixed lengths lacks 64, which has a bin of its own. */
        if (fitting > bin_of(pages) && pages > BIN_EXACT_COUNT + 8)
            assert_true(shortest[bin_of(pages)] < pages);
    }
}

static void every_possible_length_has_a_bin(void **state)
{
    (void)state;
    start_pages();
    assert_true(bin_of(space.page_count_max) < BIN_COUNT);
    assert_true(bin_fitting(space.page_count_max) < BIN_COUNT);
    for (size_t pages = 1; pages <= BIN_EXACT_COUNT; pages++)
        assert_int_equal(bin_of(pages), pages - 1);
}

/* ---- lease and return ---- */

static void fresh_runs_are_zero_and_returned_ones_are_not(void **state)
{
    struct run run;

    (void)state;
    start_pages();
    for (size_t pages = 1; pages < 200; pages += 13) {
        run = run_lease(pages, 1, PAGE_USED);
        assert_true(run.zero);
        assert_true(all_bytes_are(page_address(run.page), 0, bytes_of(pages)));
        stain(run.page, pages, 1);
        check_runs();
    }
    run_return(run.page);
    run = run_lease(5, 1, PAGE_USED);
    assert_false(run.zero);
    check_runs();
}

static void a_returned_run_is_leased_again(void **state)
{
    uint32_t page;

    (void)state;
    start_pages();
    for (size_t pages = 1; pages < 300; pages += 7) {
        page = between_used(pages);
        give_back(page);
        expect_run(page, pages, PAGE_DIRTY);
        assert_int_equal(page_heap->free_pages[FREE_DIRTY], pages);
        assert_int_equal(lease(pages), page);
        assert_int_equal(page_heap->free_pages[FREE_DIRTY], 0);
    }
}

/* All six orders of giving back three neighbours end in one run. */
static void neighbours_merge_in_any_order(void **state)
{
    static const unsigned order[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                          { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };

    (void)state;
    start_pages();
    for (unsigned i = 0; i < 6; i++) {
        uint32_t page[3], first = between_used(30);
        give_back(first);
        page[0] = lease(4);
        page[1] = lease(1);
        page[2] = lease(25);
        assert_int_equal(page[0], first);
        assert_int_equal(page[1], first + 4);
        assert_int_equal(page[2], first + 5);
        for (unsigned j = 0; j < 3; j++) give_back(page[order[i][j]]);
        expect_run(first, 30, PAGE_DIRTY);
        assert_int_equal(lease(30), first);
    }
}

static void a_split_leaves_the_rest_free(void **state)
{
    uint32_t first;

    (void)state;
    start_pages();
    first = between_used(100);
    give_back(first);
    assert_int_equal(lease(30), first);
    expect_run(first + 30, 70, PAGE_DIRTY);
    assert_int_equal(lease(69), first + 30);
    expect_run(first + 99, 1, PAGE_DIRTY);
    assert_int_equal(lease(1), first + 99);
}

static void dirty_runs_go_before_clean_ones(void **state)
{
    uint32_t dirty;

    (void)state;
    start_pages();
    dirty = between_used(50);
    while (page_heap->free_pages[FREE_CLEAN] < 10) (void)lease(3);
    give_back(dirty);
    assert_int_equal(lease(10), dirty);
}

/* Dirty and clean neighbours stay two runs: one is zero and the other is not. */
static void dirty_and_clean_do_not_merge(void **state)
{
    uint32_t first, second;

    (void)state;
    start_pages();
    first = lease(10);
    second = lease(10);
    assert_int_equal(second, first + 10);
    give_back(second);
    expect_run(second, 10, PAGE_DIRTY);
    assert_int_equal(page_record(second + 10)->state, PAGE_CLEAN);
}

/* 130 pages fit a run of 132 in a bin that mixes lengths: no need to break a long one. */
static void a_bin_of_mixed_lengths_is_searched_for_the_best(void **state)
{
    uint32_t longer, fitting, shorter;

    (void)state;
    start_pages();
    longer = between_used(142);
    fitting = between_used(132);
    shorter = between_used(128);
    assert_int_equal(bin_of(142), bin_of(128));
    give_back(longer);
    give_back(fitting);
    give_back(shorter);
    assert_int_equal(lease(130), fitting);
    assert_int_equal(lease(128), shorter);
    assert_int_equal(lease(130), longer);
}

/* But not deeper than PROBES_MAX members: then one that surely fits is split. */
static void search_behind(unsigned shorter, bool finds)
{
    uint32_t longer, fitting, before[PROBES_MAX];

    start_pages();
    longer = between_used(200);
    fitting = between_used(132);
    for (unsigned i = 0; i < shorter; i++) before[i] = between_used(128);
    give_back(longer);
    give_back(fitting);
    for (unsigned i = 0; i < shorter; i++) give_back(before[i]);
    assert_int_equal(lease(130), finds ? fitting : longer);
}

static void the_last_member_that_is_looked_at_is_taken(void **state)
{
    (void)state;
    search_behind(PROBES_MAX - 1, true);
}

static void no_search_goes_through_a_whole_bin(void **state)
{
    (void)state;
    search_behind(PROBES_MAX, false);
}

static void large_runs_are_counted(void **state)
{
    uint32_t large, space_used;

    (void)state;
    start_pages();
    large = run_lease(7, 1, PAGE_LARGE).page;
    space_used = run_lease(3, 1, PAGE_USED).page;
    assert_int_equal(page_heap->large_pages, 7);
    assert_int_equal(page_heap_large_count(page_heap), 1);
    assert_int_equal(page_heap_used_pages(page_heap), 10);
    give_back(space_used);
    assert_int_equal(page_heap_large_count(page_heap), 1);
    give_back(large);
    assert_int_equal(page_heap->large_pages + page_heap_large_count(page_heap)
                         + page_heap_used_pages(page_heap),
                     0);
    assert_int_equal(page_heap->leases, 2);
    assert_int_equal(page_heap->returns, 2);
    assert_int_equal(page_heap->clean_leased, 10);
    assert_int_equal(page_heaps_clean_leased_now(), 10);
}

/* ---- holes ---- */

/* Neither half is long enough, but together they are: the region need not open further. Longer runs
 * that have no free neighbour are looked at before. */
static void reach_across(size_t wanted, unsigned longer)
{
    struct run run;
    uint32_t first;
    size_t open;

    start_pages();
    for (unsigned i = 0; i < longer; i++) give_back(between_used(30 + i % 4));
    first = between_used(40);
    stain(first, 40, 7);
    give_back(first);
    assert_int_equal(run_take_dirty(page_heap, 1, 20), first + 20);
    assert_true(os_purge((struct os_range){ page_address(first + 20), bytes_of(20) }));
    run_put_free(first + 20, PAGE_CLEAN);
    expect_run(first, 20, PAGE_DIRTY);
    expect_run(first + 20, 20, PAGE_CLEAN);
    while (run_find(page_heap, wanted) != 0) (void)lease(wanted);
    open = space.open_bytes;
    run = run_lease(wanted, 1, PAGE_LARGE);
    check_runs();
    assert_int_equal(run.page, first);
    assert_false(run.zero);
    expect_run(first, wanted, PAGE_LARGE);
    if (wanted < 40) expect_run(first + (uint32_t)wanted, 40 - wanted, PAGE_CLEAN);
    assert_int_equal(space.open_bytes, open);
}

static void a_lease_reaches_across_dirty_and_clean(void **state)
{
    (void)state;
    reach_across(35, 0);
}

static void a_lease_reaches_across_behind_longer_runs(void **state)
{
    (void)state;
    reach_across(35, 2);
}

static void a_lease_takes_all_of_dirty_and_clean(void **state)
{
    (void)state;
    reach_across(40, 0);
}

static void take_the_open_end(void)
{
    uint32_t last = space_open_end() - 1, page = last + 1 - page_record(last)->run_pages;

    if (page_record(page)->state == PAGE_CLEAN)
        assert_int_equal(lease(page_record(page)->run_pages), page);
}

/* What was opened for an alignment is long enough, however many runs a search meets before it. */
static void what_grew_for_an_alignment_serves_it(void **state)
{
    enum { LENGTHS = 10, EACH = 8, ALIGN_PAGES_MAX = 1 << 15 };
    uint32_t runs[LENGTHS * EACH], count = 0;
    size_t align_pages = 1024;
    struct run run;
    uint64_t grows;

    (void)state;
    start_pages();
    for (size_t pages = 2; pages < 2 + LENGTHS; pages++)
        for (unsigned i = 0; i < EACH; i++) {
            runs[count++] = lease(pages);
            (void)lease(1);
        }
    for (uint32_t i = 0; i < count; i++) run_return_clean(runs[i]);
    for (unsigned i = 0; i < 5; i++) {
        take_the_open_end();
        while (1 + pages_to_alignment(1, align_pages) < space_open_end()) align_pages *= 2;
        if (align_pages > ALIGN_PAGES_MAX) break; /* the region begins at such an address */
        grows = page_heap->grows;
        run = run_lease(2, align_pages, PAGE_LARGE);
        assert_int_not_equal(run.page, 0);
        assert_true(is_aligned((uintptr_t)page_address(run.page), align_pages * page_bytes()));
        assert_int_equal(page_heap->grows, grows + 1);
        check_runs();
    }
}

/* The free pages at the open end count: only what they lack is opened. */
static void growing_continues_the_open_end(void **state)
{
    size_t tail, open;
    struct run run;

    (void)state;
    start_pages();
    (void)lease(1);
    tail = page_heap->free_pages[FREE_CLEAN];
    open = space.open_bytes;
    fake_commit_bytes_max(fake_committed_bytes() + bytes_of(3));
    run = run_lease(tail + 3, 1, PAGE_LARGE);
    assert_int_equal(run.page, 2);
    assert_true(run.zero);
    check_runs();
    assert_int_equal(space.open_bytes, open + bytes_of(3));
}

/* ---- refusals ---- */

static void absurd_wishes_are_refused(void **state)
{
    static const size_t sizes[] = { SIZE_MAX, SIZE_MAX >> 12, BY_WORD(TiB, GiB), UINT32_MAX };

    (void)state;
    start_pages();
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        assert_int_equal(run_lease(sizes[i], 1, PAGE_LARGE).page, 0);
        assert_int_equal(run_lease(1, (size_t)1 << (SIZE_BITS - 1 - i), PAGE_LARGE).page, 0);
    }
    assert_true(run_lease_would_grow(page_heap, (size_t)1 << 30)); /* as many have no bin */
    assert_true(run_lease_would_grow(page_heap, SIZE_MAX >> space.page_shift));
    assert_int_equal(run_lease(space.number_max, 1, PAGE_LARGE).page, 0);
    assert_int_equal(run_lease((size_t)space.page_count_max + 1, 1, PAGE_LARGE).page, 0);
    assert_int_equal(fake_committed_bytes(), 0);
    assert_int_equal(page_heap_used_pages(page_heap), 0);
    check_runs();
}

/* Nothing free and no memory: the page heap is as it was, apart from its lock's count. */
static void refused_memory_changes_nothing(void **state)
{
    struct page_heap before;
    struct run run;
    uint64_t failures;

    (void)state;
    start_pages();
    (void)lease(10);
    (void)lease(page_heap->free_pages[FREE_CLEAN]);
    fake_fail_all(true);
    before = page_heap[0];
    failures = fake_failures();
    run = run_lease(1, 1, PAGE_USED);
    assert_int_equal(run.page, 0);
    assert_int_equal(fake_failures() - failures, 2); /* a step, and just what is lacking */
    before.lock = page_heap->lock;
    assert_memory_equal(&before, page_heap, sizeof *page_heap);
    fake_fail_all(false);
    check_runs();
    (void)lease(1);
}

static void runs_never_reach_into_the_next_region(void **state)
{
    (void)state;
    fake_address_space(24 * MiB, 0);
    start_pages();
    for (;;) {
        struct run run = run_lease(3, 1, PAGE_USED);
        if (run.page == 0) break;
        assert_ptr_equal(page_address(run.page) + bytes_of(2), page_address(run.page + 2));
        stain(run.page, 3, 1);
    }
    check_runs();
    assert_true(space.region_count > 1);
    assert_true(page_heap->free_pages[FREE_CLEAN] <= 2 * space.region_count);
}

/* Its free end is of no help then, and no region is opened for what that one lacks. */
static void a_run_that_the_region_has_no_room_for_takes_one_more(void **state)
{
    size_t pages;

    (void)state;
    fake_address_space(24 * MiB, 0);
    start_pages();
    (void)lease(1);
    pages = page_heap->free_pages[FREE_CLEAN] + space_room_at_end() + 1;
    assert_true(page_heap->free_pages[FREE_CLEAN] > 0);
    assert_int_not_equal(run_lease(pages, 1, PAGE_LARGE).page, 0);
    assert_int_equal(space.region_count, 2);
    check_runs();
}

/* Also by a fence, in whose place there is a clean page afterwards. */
static void what_was_taken_is_remembered(void **state)
{
    const size_t pages = LARGE_CACHE_PAGES_MAX + 1;
    size_t most;
    uint32_t page;

    (void)state;
    start_pages();
    fake_fences(true);
    page = run_lease(pages, 1, PAGE_LARGE).page;
    assert_true(page_is_fenced(page_record(page)));
    most = page_heap_taken_most(page_heap);
    assert_int_equal(most, pages + 1);
    run_take_fence_away(page);
    run_return_clean(page);
    assert_int_equal(page_heap_used_pages(page_heap), 0);
    assert_int_equal(page_heap_taken_most(page_heap), most);
    check_runs();
}

UNIT_MAIN(UNIT_TEST(bins_are_in_order_of_length), UNIT_TEST(every_possible_length_has_a_bin),
          UNIT_TEST(fresh_runs_are_zero_and_returned_ones_are_not),
          UNIT_TEST(a_returned_run_is_leased_again), UNIT_TEST(neighbours_merge_in_any_order),
          UNIT_TEST(a_split_leaves_the_rest_free), UNIT_TEST(dirty_runs_go_before_clean_ones),
          UNIT_TEST(dirty_and_clean_do_not_merge),
          UNIT_TEST(a_bin_of_mixed_lengths_is_searched_for_the_best),
          UNIT_TEST(the_last_member_that_is_looked_at_is_taken),
          UNIT_TEST(no_search_goes_through_a_whole_bin),
          UNIT_TEST(a_lease_reaches_across_dirty_and_clean),
          UNIT_TEST(a_lease_reaches_across_behind_longer_runs),
          UNIT_TEST(a_lease_takes_all_of_dirty_and_clean),
          UNIT_TEST(what_grew_for_an_alignment_serves_it),
          UNIT_TEST(growing_continues_the_open_end), UNIT_TEST(large_runs_are_counted),
          UNIT_TEST(absurd_wishes_are_refused), UNIT_TEST(refused_memory_changes_nothing),
          UNIT_TEST(runs_never_reach_into_the_next_region),
          UNIT_TEST(a_run_that_the_region_has_no_room_for_takes_one_more),
          UNIT_TEST(what_was_taken_is_remembered))
