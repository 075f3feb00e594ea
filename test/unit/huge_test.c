/* huge_test.c - when the address space wants huge pages, when it does not, and where it opens and
 * is cut then. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "wishes.h"

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

/* What alignments leave between blocks is open, and is touched by nobody. */
static void room_between_blocks_is_no_reason(void **state)
{
    (void)state;
    need_huge_pages();
    start_pages();
    for (unsigned i = 0; i < 8; i++)
        assert_int_not_equal(run_lease(1, pages_from() / 2, PAGE_LARGE).page, 0);
    assert_true(space.open_bytes > 3 * bytes_of(pages_from()));
    assert_false(huge.wanted);
    (void)lease(4 * pages_from());
    assert_true(huge.wanted);
}

/* Nor does what ended the wish before. */
static void always_is_at_once(void **state)
{
    (void)state;
    need_huge_pages();
    start_pages();
    (void)lease(2 * pages_from());
    huge_bar(true);
    huge_bar(false);
    assert_false(huge.wanted);
    huge_obey_option(HUGE_ALWAYS);
    assert_true(huge.wanted);
    huge_bar(true);
    huge_bar(false);
    assert_false(huge.wanted);
    for (uint64_t grows = page_heap->grows; page_heap->grows == grows;) (void)lease(1);
    assert_true(huge.wanted);
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
    page = between_used(16 * pages_of_huge_page() + 3);
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

/* A block beyond oversize_threshold goes back with the parts of huge pages at its ends. */
static void what_is_oversize_goes_as_a_whole(void **state)
{
    size_t pages = 6 * pages_of_huge_page() + 3;
    uint32_t page;

    (void)state;
    need_huge_pages();
    start_pages();
    options_parse("oversize_threshold:8388608", "MALLOC_CONF");
    page = between_used(pages);
    assert_true(huge.wanted);
    assert_true((uintptr_t)page_address(page) % HUGE_PAGE_BYTES != 0);
    run_return(page);
    assert_int_equal(page_heap->free_pages[FREE_DIRTY], pages);
    (void)purge_oversize();
    assert_int_equal(page_heap->free_pages[FREE_DIRTY], 0);
    check_runs();
}

UNIT_MAIN(UNIT_TEST(a_small_space_is_refused_them),
          UNIT_TEST(a_space_that_has_grown_wants_them_once), UNIT_TEST(never_means_never),
          UNIT_TEST(never_ends_what_was_wished), UNIT_TEST(always_is_at_once),
          UNIT_TEST(room_between_blocks_is_no_reason),
          UNIT_TEST(a_tail_that_was_closed_is_wished_the_same),
          UNIT_TEST(always_means_from_the_first_page), UNIT_TEST(larger_pages_have_none),
          UNIT_TEST(narrow_regions_have_none), UNIT_TEST(short_runs_end_it_and_growth_begins_it),
          UNIT_TEST(rest_ends_it_after_less), UNIT_TEST(an_empty_space_does_not_want_them_again),
          UNIT_TEST(long_runs_are_cut_between_huge_pages),
          UNIT_TEST(what_is_oversize_goes_as_a_whole))
