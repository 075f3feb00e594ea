/* closes_test.c - a kernel that takes the right to use purged pages back, and may refuse it
 * then. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "pages.h"

static bool is_open(uint32_t page, size_t pages)
{
    struct os_range range = page_range(page, pages);

    return fake_is_committed(range.base, range.bytes);
}

/* A run of clean pages, closed, behind which the region ends. */
static uint32_t closed_run(size_t pages)
{
    uint32_t page;

    huge.policy = HUGE_NEVER;
    start_pages();
    page = lease(pages);
    stain(page, pages, 1);
    run_return(page);
    (void)purge_all();
    assert_false(is_open(page, pages));
    return page;
}

static void purged_pages_are_closed_and_open_when_leased(void **state)
{
    uint32_t page = closed_run(100);
    struct run run = run_lease(100, 1, PAGE_LARGE);

    (void)state;
    assert_int_equal(run.page, page);
    assert_true(run.zero);
    assert_true(is_open(page, 100));
    assert_true(all_bytes_are(page_address(page), 0, 100 << space.page_shift));
    check_runs();
}

/* More is opened than was asked for, but the right to use it is taken with each lease. */
static void pages_ahead_of_need_are_not_charged(void **state)
{
    uint32_t page;
    size_t ahead;

    (void)state;
    start_pages();
    page = lease(3);
    ahead = page_heap->free_pages[FREE_CLEAN];
    assert_true(is_open(page, 3));
    assert_true(ahead > 0);
    for (uint32_t next = page + 3; ahead > 0; next++, ahead--) assert_false(is_open(next, 1));
    assert_true(run_extend(page_heap, page, 4));
    assert_true(is_open(page, 4));
    page = run_lease(2, 4, PAGE_USED).page;
    assert_true(is_open(page, 2));
    check_runs();
}

static void refused_they_stay_free(void **state)
{
    uint32_t page = closed_run(100);
    struct run run;
    size_t used;

    (void)state;
    used = page_heaps_used();
    fake_fail_kind(FAKE_COMMIT, true);
    run = run_lease(100, 1, PAGE_LARGE);
    assert_int_equal(run.page, 0);
    assert_int_equal(run_lease(3, 1, PAGE_USED).page, 0);
    assert_int_equal(run_lease(8, 8, PAGE_USED).page, 0);
    fake_fail_kind(FAKE_COMMIT, false);
    assert_int_equal(page_heaps_used(), used);
    check_runs();
    assert_int_equal(run_lease(100, 1, PAGE_LARGE).page, page);
}

static void several_at_once_are_as_many_as_could_be_opened(void **state)
{
    uint32_t leased[8];
    unsigned count;

    (void)state;
    (void)closed_run(100);
    fake_fail_kind(FAKE_COMMIT, true);
    assert_int_equal(run_lease_batch(page_heap, 2, 8, leased), 0);
    fake_fail_kind(FAKE_COMMIT, false);
    count = run_lease_batch(page_heap, 2, 8, leased);
    assert_int_equal(count, 8);
    for (unsigned i = 0; i < count; i++) assert_true(is_open(leased[i], 2));
    check_runs();
}

static void a_run_grows_only_into_what_opens(void **state)
{
    uint32_t page = closed_run(100);
    struct run run = run_lease(10, 1, PAGE_LARGE);

    (void)state;
    assert_int_equal(run.page, page);
    fake_fail_kind(FAKE_COMMIT, true);
    assert_false(run_extend(page_heap, page, 20));
    fake_fail_kind(FAKE_COMMIT, false);
    check_runs();
    assert_true(run_extend(page_heap, page, 20));
    assert_true(is_open(page, 20));
    stain(page, 20, 1);
    check_runs();
}

/* So no pages are kept together for huge ones there. */
static void a_kernel_without_wishes_is_asked_for_none(void **state)
{
    (void)state;
    start_pages();
    for (unsigned i = 0; i < 8; i++) (void)lease(pages_of_bytes(HUGE_FROM_BYTES));
    assert_false(huge.wanted);
    assert_int_equal(huge_pages_each(), 1);
    assert_int_equal(fake_calls(FAKE_HUGE_WANT), 0);
}

/* Dirty pages and clean ones side by side, neither of which are enough. */
static void mixed_pages_keep_what_is_in_them_when_refused(void **state)
{
    uint32_t page = closed_run(100);
    size_t half = page_heap->open_pages / 2, most = half + half / 2;

    (void)state;
    assert_int_equal(run_lease(half, 1, PAGE_USED).page, page);
    stain(page, half, 7);
    run_return(page);
    fake_fail_kind(FAKE_COMMIT, true);
    assert_int_equal(run_lease(most, 1, PAGE_LARGE).page, 0);
    fake_fail_kind(FAKE_COMMIT, false);
    check_runs();
    assert_true(all_bytes_are(page_address(page), 7, half << space.page_shift));
    assert_int_equal(run_lease(most, 1, PAGE_LARGE).page, page);
    assert_true(is_open(page, most));
    check_runs();
}

static void a_large_calloc_does_not_close_what_it_gives(void **state)
{
    size_t bytes = 2 * CLEAR_BYTES_MAX;
    char *block = prairie_malloc(bytes);

    (void)state;
    memset(block, 1, bytes);
    prairie_free(block);
    block = prairie_calloc(1, bytes);
    assert_non_null(block);
    assert_true(all_bytes_are(block, 0, bytes));
    memset(block, 1, bytes);
    prairie_free(block);
}

/* The default hooks take pages back closed, so there is nothing that could be refused. */
static void the_default_hooks_take_back_closed_pages(void **state)
{
    struct extent_hooks hooks = extent_hooks_default, *own = &hooks;

    (void)state;
    start_pages();
    for (unsigned refused = 0; refused < 2; refused++) {
        bool zero = false, committed = false;
        size_t bytes = 10 * page_bytes();
        char *base = own->alloc(own, NULL, bytes, 1, &zero, &committed, 1);

        assert_non_null(base);
        memset(base, 1, bytes);
        fake_fail_kind(FAKE_COMMIT, refused);
        assert_false(own->dalloc(own, base, bytes, true, 1));
        fake_fail_kind(FAKE_COMMIT, false);
        assert_false(is_open(page_at(base), 10));
        assert_int_equal(page_record(page_at(base))->state, PAGE_CLEAN);
        check_runs();
    }
}

/* Whatever is refused: NULL, and never a page that is not there. */
static void no_commit_is_needed_to_go_on(void **state)
{
    enum { COUNT = 200 };
    char *block[COUNT] = { NULL };

    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        unsigned at = (unsigned)random_below(COUNT);
        size_t bytes = (size_t)1 << random_below(20);

        fake_fail_kind(FAKE_COMMIT, round % 3 == 2);
        prairie_free(block[at]);
        block[at] = prairie_malloc(bytes);
        if (block[at] != NULL) memset(block[at], 1, bytes);
        if (round % 16 == 0) (void)prairie_purge();
    }
    fake_fail_kind(FAKE_COMMIT, false);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(purged_pages_are_closed_and_open_when_leased),
          UNIT_TEST(pages_ahead_of_need_are_not_charged), UNIT_TEST(refused_they_stay_free),
          UNIT_TEST(several_at_once_are_as_many_as_could_be_opened),
          UNIT_TEST(a_run_grows_only_into_what_opens),
          UNIT_TEST(a_kernel_without_wishes_is_asked_for_none),
          UNIT_TEST(mixed_pages_keep_what_is_in_them_when_refused),
          UNIT_TEST(a_large_calloc_does_not_close_what_it_gives),
          UNIT_TEST(the_default_hooks_take_back_closed_pages),
          UNIT_TEST(no_commit_is_needed_to_go_on))
