/* huge_left_test.c - the clean pages that huge pages made resident go when the wish for those
 * ends. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "wishes.h"

/* A used page, `pages` clean ones, and another used page, from the start of a huge page on. */
static uint32_t clean_between(size_t pages)
{
    uint32_t page = run_lease(pages + 2, pages_of_huge_page(), PAGE_LARGE).page;

    assert_true(page >= space.region[0].first_page);
    assert_true(page + pages + 2 <= space.region[0].first_page + space.region[0].open_pages);
    page = set_apart(page, pages);
    run_return_clean(page);
    expect_run(page, pages, PAGE_CLEAN);
    check_runs();
    return page;
}

static void grow_and_wish(void)
{
    if (!huge.wanted) (void)lease(2 * pages_from());
    assert_true(huge.wanted);
}

static void end_the_wish(void)
{
    (void)purge_all();
    purge_short_until_refused();
}

/* Three clean pages beside used ones, after a wish that ended. */
static uint32_t clean_after_a_wish(void)
{
    uint32_t page;

    need_huge_pages();
    start_pages();
    grow_and_wish();
    page = clean_between(3);
    end_the_wish();
    return page;
}

/* A touch beside them made them resident. */
static void clean_pages_beside_used_ones_go_when_the_wish_ends(void **state)
{
    uint32_t page;
    size_t gone;

    (void)state;
    page = clean_after_a_wish();
    stain(page, 3, 1);
    gone = purge[0].purged_pages;
    assert_int_equal(purge_all(), 0); /* none was dirty */
    for (size_t i = 0; i < bytes_of(3); i += page_bytes())
        assert_int_equal(*((char *)page_address(page) + i), 0);
    expect_run(page, 3, PAGE_CLEAN);
    check_runs();
    assert_true(purge[0].purged_pages >= gone + 3);
    stain(page, 3, 1);
    (void)purge_all();
    assert_int_equal(*(char *)page_address(page), 1); /* once */
}

/* Who is told to end leaves it to the next. */
static void who_is_stopped_leaves_the_rest(void **state)
{
    uint32_t stop = 1, page = clean_after_a_wish();

    (void)state;
    stain(page, 3, 1);
    purge_left_behind(&stop);
    assert_int_equal(*(char *)page_address(page), 1);
    stop = 0;
    purge_left_behind(&stop);
    assert_int_equal(*(char *)page_address(page), 0);
    check_runs();
}

static void fill_in_flight(uint32_t page)
{
    for (unsigned i = 0; i < IN_FLIGHT_MAX; i++) page_heap->in_flight[i] = page;
}

/* Other threads have as many on their way as are remembered. */
static void what_cannot_go_now_goes_later(void **state)
{
    uint32_t page = clean_after_a_wish();

    (void)state;
    stain(page, 3, 1);
    fill_in_flight(UINT32_MAX);
    purge_left_behind(NULL);
    assert_int_equal(*(char *)page_address(page), 1);
    fill_in_flight(0);
    purge_left_behind(NULL);
    assert_int_equal(*(char *)page_address(page), 0);
    check_runs();
}

/* Whole huge pages in the middle were never touched. */
static void only_their_edges_share_a_huge_page(void **state)
{
    size_t pages;
    uint32_t page;
    char *at;

    (void)state;
    need_huge_pages();
    start_pages();
    pages = 2 * pages_of_huge_page();
    page = clean_between(pages); /* where huge pages begin early, these are enough */
    grow_and_wish();
    end_the_wish();
    at = page_address(page);
    stain(page, pages, 1);
    (void)purge_all();
    assert_int_equal(at[0], 0);
    assert_int_equal(at[HUGE_PAGE_BYTES - page_bytes() - 1], 0);
    assert_int_equal(at[HUGE_PAGE_BYTES - page_bytes()], 1);
    assert_int_equal(at[2 * HUGE_PAGE_BYTES - page_bytes() - 1], 1);
    assert_int_equal(at[2 * HUGE_PAGE_BYTES - page_bytes()], 0);
    assert_int_equal(at[bytes_of(pages) - 1], 0);
    expect_run(page, pages, PAGE_CLEAN);
    check_runs();
}

static void what_they_left_stays_while_they_are_wanted(void **state)
{
    uint32_t page;

    (void)state;
    page = clean_after_a_wish();
    grow_and_wish();
    stain(page, 3, 1);
    (void)purge_all();
    assert_int_equal(*(char *)page_address(page), 1);
    purge_short_until_refused();
    (void)purge_all();
    assert_int_equal(*(char *)page_address(page), 0);
}

/* There each page that is taken counts, and the program could be refused what it may have. */
static void nothing_clean_is_taken_close_to_a_hard_limit(void **state)
{
    uint32_t page;
    size_t room;

    (void)state;
    page = clean_after_a_wish();
    stain(page, 3, 1);
    room = bytes_with_records(2 * pages_of_huge_page());
    commit.limit_bytes = commit_taken_bytes() + room - page_bytes();
    page_heaps_follow_limits();
    (void)purge_all();
    assert_int_equal(*(char *)page_address(page), 1);
    commit.limit_bytes = commit_taken_bytes() + room;
    (void)purge_all();
    assert_int_equal(*(char *)page_address(page), 0);
}

UNIT_MAIN(UNIT_TEST(clean_pages_beside_used_ones_go_when_the_wish_ends),
          UNIT_TEST(who_is_stopped_leaves_the_rest), UNIT_TEST(what_cannot_go_now_goes_later),
          UNIT_TEST(only_their_edges_share_a_huge_page),
          UNIT_TEST(what_they_left_stays_while_they_are_wanted),
          UNIT_TEST(nothing_clean_is_taken_close_to_a_hard_limit))
