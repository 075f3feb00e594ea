/* huge_touch_test.c - how long the kernel takes for a huge page is timed, and slow ones end the
 * wish. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "wishes.h"

static uint64_t touches(void) { return fake_calls(FAKE_FIRST_TOUCH); }

/* Leases clean pages, a huge page at a time, until one is timed. Returns how many that took. */
static uint64_t lease_until_timed(void)
{
    uint64_t leased = page_heap->clean_leased, timed = touches();

    while (touches() == timed) {
        assert_true(page_heap->clean_leased - leased < 1000 * pages_from());
        (void)run_lease(pages_of_huge_page(), 1, PAGE_LARGE);
    }
    check_runs();
    return page_heap->clean_leased - leased;
}

static void start_and_wish(void)
{
    need_huge_pages();
    start_pages();
    while (!huge.wanted) (void)lease(1);
}

static void slow_ones_end_the_wish(void **state)
{
    uint64_t refused;

    (void)state;
    start_and_wish();
    refused = fake_calls(FAKE_HUGE_REFUSE);
    fake_first_touch_us(HUGE_SLOW_US + 1);
    (void)lease_until_timed();
    assert_false(huge.wanted);
    assert_int_equal(fake_calls(FAKE_HUGE_REFUSE), refused + 1);
    assert_int_equal(huge_pages_each(), 1);
    assert_true(huge_take_left_behind());
}

static void what_they_left_goes_when_others_are_put_off(void **state)
{
    (void)state;
    start_and_wish();
    fake_first_touch_us(HUGE_SLOW_US + 1);
    (void)lease_until_timed();
    assert_false(huge.wanted);
    assert_true(purge_raise_triggers_within_budget());
    assert_false(huge_take_left_behind());
}

/* The first that begins, and then each so many-th; a larger heap has fewer. */
static void some_are_timed(void **state)
{
    uint64_t before;

    (void)state;
    start_and_wish();
    fake_first_touch_us(HUGE_SLOW_US);
    (void)lease_until_timed();
    before = touches();
    for (unsigned i = 0; i < 3 * HUGE_TRY_MIN; i++) {
        uint64_t timed = touches();
        uint32_t page = lease(pages_of_huge_page());

        if (touches() != timed) assert_ptr_equal(fake_first_touched(), page_address(page));
    }
    assert_int_equal(touches(), before + 3);
    assert_true(huge.wanted);
    (void)lease(3 * HUGE_TRY_MIN * HUGE_TRY_SHARE
                * pages_of_huge_page()); /* one look at all of these */
    assert_int_equal(touches(), before + 4);
    for (unsigned i = 0; i < 2 * HUGE_TRY_MIN; i++) (void)lease(pages_of_huge_page());
    assert_int_equal(touches(), before + 4);
}

/* Clean pages between used ones: as many as a huge page has, so many behind the start of one. To
 * make them, nothing is timed. */
static uint32_t clean_behind(size_t pages)
{
    size_t each = pages_of_huge_page();
    uint32_t first, page;

    huge.until_try = SIZE_MAX;
    first = run_lease(3 * each, each, PAGE_LARGE).page;
    page = first + (uint32_t)(each + pages);
    lock_take(&page_heap->lock);
    tag_as(first, each + pages, PAGE_USED);
    tag_as(page, each, PAGE_LARGE);
    tag_as(page + (uint32_t)each, each - pages, PAGE_USED);
    page_heap->large_pages -= 2 * each;
    lock_give(&page_heap->lock);
    run_return_clean(page);
    check_runs();
    return page;
}

/* Leases such pages, timed, where each first touch takes so long. Returns their first one. */
static uint32_t lease_behind(size_t pages, uint64_t touch_us)
{
    uint32_t page = clean_behind(pages);

    huge.until_try = 0;
    fake_first_touch_us(touch_us);
    assert_int_equal(lease(pages_of_huge_page()), page);
    return page;
}

/* A page that was there, with what lies before it, tells nothing; one that begins in the run
 * does. */
static void what_was_there_is_no_answer(void **state)
{
    uint32_t page;

    (void)state;
    start_and_wish();
    page = lease_behind(7, HUGE_FOUND_US - 1);
    assert_int_equal(touches(), 2);
    assert_ptr_equal(fake_first_touched(), page_address(page + (uint32_t)pages_of_huge_page() - 7));
    page = lease_behind(7, HUGE_FOUND_US);
    assert_int_equal(touches(), 3);
    assert_ptr_equal(fake_first_touched(), page_address(page));
}

static void one_that_begins_with_the_run_is_timed_once(void **state)
{
    (void)state;
    start_and_wish();
    (void)lease_behind(0, HUGE_FOUND_US - 1);
    assert_int_equal(touches(), 1);
}

static void what_is_not_fresh_is_not_timed(void **state)
{
    uint32_t page;

    (void)state;
    start_and_wish();
    page = lease(4 * pages_of_huge_page());
    give_back(page);
    stain(page, 4 * pages_of_huge_page(), 1);
    huge.until_try = 0;
    for (unsigned i = 0; i < 4; i++) (void)run_lease_dirty(pages_of_huge_page());
    page = lease(pages_of_huge_page());
    assert_true(huge.until_try > 0); /* fresh again */
    give_back(page);
    huge.until_try = 0;
    page = lease(pages_of_huge_page());
    assert_int_equal(huge.until_try, 0);
}

/* Slabs' runs come in batches. */
static void batches_are_timed(void **state)
{
    uint32_t leased[4];
    size_t pages;

    (void)state;
    start_and_wish();
    pages = pages_for(SLAB_BYTES_MIN);
    (void)lease(1);
    run_return_clean(lease(2 * pages_of_huge_page()));
    huge.until_try = 0;
    fake_first_touch_us(HUGE_SLOW_US + 1);
    for (size_t i = 0; i < 2 * pages_of_huge_page() && huge.wanted; i += 4 * pages)
        assert_int_equal(run_lease_batch(page_heap, pages, 4, leased), 4);
    assert_false(huge.wanted);
    check_runs();
}

/* Each time twice as long, up to a point; one that was quick forgets that. */
static void each_wait_is_longer_than_the_last(void **state)
{
    uint64_t wait;

    (void)state;
    start_and_wish();
    fake_first_touch_us(HUGE_SLOW_US + 1);
    (void)lease_until_timed();
    for (unsigned i = 1; i < HUGE_BACKOFF_MAX + 3; i++) {
        wait = lease_until_timed() >> min_size(i, HUGE_BACKOFF_MAX);
        assert_in_range(wait, pages_from(), pages_from() + 2 * pages_of_huge_page());
        assert_false(huge.wanted);
    }
    fake_first_touch_us(HUGE_SLOW_US);
    (void)lease_until_timed();
    assert_true(huge.wanted);
    fake_first_touch_us(HUGE_SLOW_US + 1);
    (void)lease_until_timed();
    assert_in_range(lease_until_timed(), 2 * pages_from(),
                    2 * pages_from() + 2 * pages_of_huge_page());
}

/* What was there, and what came after the wish had ended: the wait is as long as before. */
static void no_answer_shortens_no_wait(void **state)
{
    uint32_t page;

    (void)state;
    start_and_wish();
    huge.backoff = 3;
    page = lease_behind(7, HUGE_FOUND_US - 1);
    assert_int_equal(touches(), 2);
    assert_int_equal(huge.backoff, 3);
    purge_short_until_refused();
    huge.until_try = 0;
    fake_first_touch_us(HUGE_SLOW_US);
    huge_try(page, pages_of_huge_page());
    assert_int_equal(touches(), 3);
    assert_int_equal(huge.backoff, 3);
}

/* Meanwhile another thread's answer has ended the wish, and growth has begun it anew. */
static void end_and_wish_anew(enum fake_call kind)
{
    if (kind == FAKE_FIRST_TOUCH) huge.withdrawals++;
}

static void a_late_answer_is_of_an_ended_wish(void **state)
{
    (void)state;
    start_and_wish();
    huge.backoff = 3;
    fake_on_call(end_and_wish_anew);
    (void)lease_behind(0, HUGE_SLOW_US + 1);
    assert_int_equal(touches(), 1);
    assert_true(huge.wanted);
    assert_int_equal(huge.backoff, 3);
    (void)lease_behind(0, HUGE_SLOW_US);
    assert_int_equal(huge.backoff, 3);
    fake_on_call(NULL);
    (void)lease_behind(0, HUGE_SLOW_US + 1);
    assert_false(huge.wanted);
}

static void who_always_wants_them_is_not_asked(void **state)
{
    (void)state;
    need_huge_pages();
    huge.policy = HUGE_ALWAYS;
    fake_first_touch_us(HUGE_SLOW_US + 1);
    start_pages();
    for (unsigned i = 0; i < 20; i++) (void)lease(pages_of_huge_page());
    assert_true(huge.wanted);
    assert_int_equal(touches(), 0);
}

static void who_has_none_is_not_asked(void **state)
{
    (void)state;
    huge.policy = HUGE_NEVER;
    start_pages();
    for (unsigned i = 0; i < 20; i++) (void)lease(pages_of_huge_page());
    assert_int_equal(touches(), 0);
}

UNIT_MAIN(UNIT_TEST(slow_ones_end_the_wish), UNIT_TEST(what_they_left_goes_when_others_are_put_off),
          UNIT_TEST(some_are_timed), UNIT_TEST(what_was_there_is_no_answer),
          UNIT_TEST(one_that_begins_with_the_run_is_timed_once),
          UNIT_TEST(what_is_not_fresh_is_not_timed), UNIT_TEST(batches_are_timed),
          UNIT_TEST(each_wait_is_longer_than_the_last),
          UNIT_TEST(who_always_wants_them_is_not_asked), UNIT_TEST(who_has_none_is_not_asked),
          UNIT_TEST(no_answer_shortens_no_wait), UNIT_TEST(a_late_answer_is_of_an_ended_wish))
