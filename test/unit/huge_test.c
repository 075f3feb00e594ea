/* huge_test.c - when the address space wants huge pages, when it does not, and where it opens and
 * is cut then. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "pages.h"

static size_t pages_from(void) { return HUGE_FROM_BYTES >> space.page_shift; }

static void tell_purge(size_t pages) { huge_before_purge(page_heap, pages); }

static void purge_short_until_refused(void)
{
    while (huge.wanted) tell_purge(1);
}

static bool ends_at_a_huge_page(void)
{
    return (uintptr_t)page_address(space_open_end() - 1) % HUGE_PAGE_BYTES
        == HUGE_PAGE_BYTES - page_bytes();
}

static void a_small_space_is_refused_them(void **state)
{
    (void)state;
    start_pages();
    assert_true(fake_calls(FAKE_HUGE_REFUSE) >= 1);
    (void)lease(pages_from() / 2);
    assert_int_equal(fake_calls(FAKE_HUGE_WANT), 0);
    assert_int_equal(huge_pages_each(), 1);
}

static void a_space_that_has_grown_wants_them_once(void **state)
{
    (void)state;
    need_huge_pages();
    start_pages();
    for (unsigned i = 0; i < 8; i++) (void)lease(pages_from() / 2);
    assert_int_equal(fake_calls(FAKE_HUGE_WANT), 1);
    assert_int_equal(huge_pages_each(), pages_of_huge_page());
    assert_true(ends_at_a_huge_page());
    (void)lease(pages_of_huge_page() + 1);
    assert_true(ends_at_a_huge_page());
}

static void never_means_never(void **state)
{
    (void)state;
    huge.policy = HUGE_NEVER;
    start_pages();
    (void)lease(4 * pages_from());
    assert_int_equal(fake_calls(FAKE_HUGE_WANT), 0);
}

/* Heaps that grow before options are read may have a wish by then. */
static void never_ends_what_was_wished(void **state)
{
    (void)state;
    need_huge_pages();
    start_pages();
    (void)lease(2 * pages_from());
    assert_true(huge.wanted);
    huge_obey_option(HUGE_NEVER);
    assert_false(huge.wanted);
    for (unsigned i = 0; i < 20; i++) (void)lease(pages_from());
    assert_false(huge.wanted);
    assert_int_equal(fake_calls(FAKE_HUGE_WANT), 1);
}

/* What is closed is mapped anew, without what was wished of it. */
static void a_tail_that_was_closed_is_wished_the_same(void **state)
{
    uint64_t refused;
    uint32_t page;

    (void)state;
    need_huge_pages();
    start_pages();
    page = lease(pages_from() / 2);
    give_back(page);
    refused = fake_calls(FAKE_HUGE_REFUSE);
    assert_true(page_heaps_close_tail(true));
    assert_int_equal(fake_calls(FAKE_HUGE_WANT), 0);
    assert_int_equal(fake_calls(FAKE_HUGE_REFUSE), refused + 1);
    (void)lease(2 * pages_from());
    page = lease(pages_of_huge_page());
    give_back(page);
    assert_true(huge.wanted);
    assert_true(page_heaps_close_tail(true));
    assert_int_equal(fake_calls(FAKE_HUGE_WANT), 2); /* when it had grown, and now */
}

static void always_means_from_the_first_page(void **state)
{
    (void)state;
    need_huge_pages();
    huge.policy = HUGE_ALWAYS;
    start_pages();
    (void)lease(1);
    assert_int_equal(fake_calls(FAKE_HUGE_WANT), 1);
    tell_purge(1);
    tell_purge(100 * pages_from() - 1);
    assert_true(huge.wanted);
}

static void larger_pages_have_none(void **state)
{
    (void)state;
    fake_page_bytes(64 * KiB);
    start_pages();
    (void)lease(2 * pages_from());
    assert_int_equal(fake_calls(FAKE_HUGE_WANT), 0);
}

static void narrow_regions_have_none(void **state)
{
    uint64_t refused;

    (void)state;
    fake_address_space(64 * MiB, 0);
    start_pages();
    refused = fake_calls(FAKE_HUGE_REFUSE);
    while (space.region_count < 4) (void)lease(pages_from() / 2);
    assert_int_equal(fake_calls(FAKE_HUGE_WANT), 0);
    assert_int_equal(fake_calls(FAKE_HUGE_REFUSE), refused + 3); /* each of them */
}

/* Whole huge pages may go; when much went in shorter runs the kernel would fill them up again. */
static void short_runs_end_it_and_growth_begins_it(void **state)
{
    size_t gone = 0, used;

    (void)state;
    need_huge_pages();
    start_pages();
    (void)lease(2 * pages_from());
    used = page_heap_used_pages(page_heap);
    tell_purge(8 * used);
    assert_true(huge.wanted);
    for (; huge.wanted; gone += 2) tell_purge(2);
    assert_true(gone >= pages_from() && gone >= used / HUGE_SHORT_SHARE);
    assert_true(gone <= max_size(pages_from(), used / HUGE_SHORT_SHARE) + 2);
    assert_int_equal(fake_calls(FAKE_HUGE_WANT), 1);
    (void)lease(pages_from() - 1);
    assert_false(huge.wanted);
    (void)lease(1);
    assert_true(huge.wanted);
    assert_int_equal(fake_calls(FAKE_HUGE_WANT), 2);
}

/* Less is enough where nothing goes back any more: a huge page, and a share of what is in use. */
static void rest_ends_it_after_less(void **state)
{
    size_t enough, gone = 0;

    (void)state;
    need_huge_pages();
    if (pages_from() <= pages_of_huge_page()) skip();
    start_pages();
    (void)lease(4 * pages_from());
    assert_true(huge.wanted);
    enough = page_heap_used_pages(page_heap) / HUGE_SHORT_SHARE;
    if (enough < pages_of_huge_page()) enough = pages_of_huge_page();
    for (; gone + 1 < enough; gone++) tell_purge(1);
    assert_false(huge_note_rest());
    tell_purge(1);
    assert_true(huge.wanted);
    huge.policy = HUGE_ALWAYS;
    assert_false(huge_note_rest());
    huge.policy = HUGE_WHEN_DENSE;
    assert_true(huge_note_rest());
    assert_false(huge.wanted);
    assert_true(huge.left_behind);
    assert_false(huge_note_rest());
    (void)lease(pages_from());
    assert_true(huge.wanted);
    assert_false(huge_note_rest());
}

/* An address space that is nearly empty and leases clean pages again and again stays small, without
 * them. */
static void an_empty_space_does_not_want_them_again(void **state)
{
    uint32_t page;

    (void)state;
    start_pages();
    page = lease(2 * pages_from());
    purge_short_until_refused();
    give_back(page);
    for (unsigned i = 0; i < 8; i++) {
        assert_true(purge_all() > 0);
        give_back(lease(pages_from() / 2));
    }
    assert_false(huge.wanted);
}

static void long_runs_are_cut_between_huge_pages(void **state)
{
    uint32_t page;
    uintptr_t at;
    size_t each;

    (void)state;
    need_huge_pages();
    start_pages();
    page = fenced(16 * pages_of_huge_page() + 3);
    assert_true(huge.wanted);
    run_return(page);
    page = run_take_dirty(page_heap, pages_of_huge_page(), 4 * pages_of_huge_page() + 1);
    at = (uintptr_t)page_address(page);
    assert_int_equal(at % HUGE_PAGE_BYTES, 0);
    assert_int_equal(page_record(page)->run_pages, 4 * pages_of_huge_page());
    run_put_free(page, PAGE_CLEAN);
    each = pages_of_huge_page();
    page = run_take_dirty(page_heap, each, each + each / 2);
    at -= HUGE_PAGE_BYTES;
    assert_int_equal((uintptr_t)page_address(page), at);
    assert_int_equal(page_record(page)->run_pages, each);
    run_put_free(page, PAGE_CLEAN);
    page = run_take_dirty(page_heap, each, SIZE_MAX);
    assert_int_equal((uintptr_t)page_address(page) % HUGE_PAGE_BYTES, 0);
    assert_int_equal((uintptr_t)page_address(page) + bytes_of(page_record(page)->run_pages), at);
    run_put_free(page, PAGE_CLEAN);
    check_runs();
}

/* ---- what is left behind ---- */

/* A used page, `pages` clean ones, and another used page, from the start of a huge page on. */
static uint32_t clean_between(size_t pages)
{
    uint32_t page = run_lease(pages + 2, pages_of_huge_page(), PAGE_LARGE).page;

    assert_true(page >= space.region[0].first_page);
    assert_true(page + pages + 2 <= space.region[0].first_page + space.region[0].open_pages);
    page = fence_off(page, pages);
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

/* ---- how quick the kernel finds them ---- */

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
    assert_true(purge_put_off_wanted());
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

UNIT_MAIN(UNIT_TEST(a_small_space_is_refused_them),
          UNIT_TEST(a_space_that_has_grown_wants_them_once), UNIT_TEST(never_means_never),
          UNIT_TEST(never_ends_what_was_wished),
          UNIT_TEST(a_tail_that_was_closed_is_wished_the_same),
          UNIT_TEST(always_means_from_the_first_page), UNIT_TEST(larger_pages_have_none),
          UNIT_TEST(narrow_regions_have_none), UNIT_TEST(short_runs_end_it_and_growth_begins_it),
          UNIT_TEST(rest_ends_it_after_less), UNIT_TEST(an_empty_space_does_not_want_them_again),
          UNIT_TEST(long_runs_are_cut_between_huge_pages),
          UNIT_TEST(clean_pages_beside_used_ones_go_when_the_wish_ends),
          UNIT_TEST(who_is_stopped_leaves_the_rest), UNIT_TEST(what_cannot_go_now_goes_later),
          UNIT_TEST(only_their_edges_share_a_huge_page),
          UNIT_TEST(what_they_left_stays_while_they_are_wanted),
          UNIT_TEST(nothing_clean_is_taken_close_to_a_hard_limit),
          UNIT_TEST(slow_ones_end_the_wish), UNIT_TEST(what_they_left_goes_when_others_are_put_off),
          UNIT_TEST(some_are_timed), UNIT_TEST(what_was_there_is_no_answer),
          UNIT_TEST(one_that_begins_with_the_run_is_timed_once),
          UNIT_TEST(what_is_not_fresh_is_not_timed), UNIT_TEST(batches_are_timed),
          UNIT_TEST(each_wait_is_longer_than_the_last),
          UNIT_TEST(who_always_wants_them_is_not_asked), UNIT_TEST(who_has_none_is_not_asked),
          UNIT_TEST(no_answer_shortens_no_wait), UNIT_TEST(a_late_answer_is_of_an_ended_wish))
