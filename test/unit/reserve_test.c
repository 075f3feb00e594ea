/* reserve_test.c - the reserve: real pages that only a release gives away. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "pages.h"

#include <sys/wait.h>

static void start(void) { start_pages(); }

static void check_reserve(void)
{
    lock_take(&reserve.lock);
    take_page_heaps();
    reserve_check();
    page_heaps_check();
    give_page_heaps();
    lock_give(&reserve.lock);
}

static void filling_touches_every_page(void **state)
{
    (void)state;
    start();
    assert_true(reserve_resize(10 * page_bytes() - 1));
    assert_int_equal(reserve.pages, 10);
    assert_int_equal(reserve.run_count, 1);
    assert_true(fake_touched_bytes() >= 10 * page_bytes());
    assert_false(reserve_is_short());
    check_reserve();
}

/* What is kept is nobody's: leases that take all that is free do not get it. */
static void nobody_is_given_it_in_ordinary_life(void **state)
{
    size_t others = 0;

    (void)state;
    start();
    give_back(lease(64));
    assert_true(reserve_resize(32 * page_bytes()));
    fake_fail_kind(FAKE_COMMIT, true);
    while (run_lease(1, 1, PAGE_LARGE).page != 0) others++;
    assert_true(others > 0);
    assert_int_equal(reserve.pages, 32);
    assert_true(reserve_release(5));
    assert_int_equal(reserve.pages, 27);
    assert_int_not_equal(run_lease(5, 1, PAGE_LARGE).page, 0);
    assert_int_equal(run_lease(1, 1, PAGE_LARGE).page, 0);
    check_reserve();
}

static void a_release_is_in_one_run_or_does_nothing(void **state)
{
    (void)state;
    start();
    assert_true(reserve_resize(16 * page_bytes()));
    assert_false(reserve_release(17));
    assert_int_equal(reserve.pages, 16);
    assert_int_equal(reserve.releases, 0);
    assert_true(reserve_release(16));
    assert_int_equal(reserve.pages, 0);
    assert_int_equal(reserve.run_count, 0);
    assert_int_equal(reserve.releases, 1);
    assert_int_equal(meta.held_back_bytes, 0);
    assert_false(reserve_release(1));
    assert_true(reserve_refill());
    assert_int_equal(reserve.refills, 2);
    assert_true(meta.held_back_bytes > 0);
    check_reserve();
}

static void a_refill_grows_the_run_where_it_was(void **state)
{
    uint32_t page;

    (void)state;
    start();
    assert_true(reserve_resize(16 * page_bytes()));
    page = reserve.run[0];
    assert_true(reserve_release(6));
    assert_true(reserve_is_short());
    assert_true(reserve_refill());
    assert_int_equal(reserve.run_count, 1);
    assert_int_equal(reserve.run[0], page);
    assert_int_equal(page_record(page)->run_pages, 16);
    check_reserve();
}

static void without_neighbours_it_takes_short_runs(void **state)
{
    uint32_t taken;

    (void)state;
    start();
    assert_true(reserve_resize(16 * page_bytes()));
    assert_true(reserve_release(6));
    taken = lease(6); /* those very pages: dirty, of that length */
    fake_fail_kind(FAKE_COMMIT, true);
    while (run_lease(8, 1, PAGE_LARGE).page != 0) {}
    (void)reserve_refill();
    fake_fail_kind(FAKE_COMMIT, false);
    assert_true(reserve_refill());
    assert_true(reserve.run_count >= 2);
    give_back(taken);
    check_reserve();
}

/* A full array of short runs gives one up for a longer one. */
static void many_short_runs_become_fewer(void **state)
{
    (void)state;
    start();
    assert_true(reserve_resize(16 * page_bytes()));
    reserve.wanted_pages = 64;
    for (unsigned i = 1; i < RESERVE_RUNS_MAX; i++) assert_true(inside_add_run(2, false));
    assert_int_equal(reserve.run_count, RESERVE_RUNS_MAX);
    assert_true(reserve_refill());
    assert_int_equal(reserve.pages, 64);
    check_reserve();
}

/* One run for several, once so much is free; until its pages are real, the short ones stay. */
static void short_runs_are_joined_where_a_long_one_is_free(void **state)
{
    uint32_t long_one;

    (void)state;
    start();
    long_one = lease(64);
    assert_true(reserve_resize(8 * page_bytes()));
    reserve.wanted_pages = 16;
    assert_true(inside_add_run(4, false) && inside_add_run(4, false));
    give_back(long_one);
    fake_fail_kind(FAKE_TOUCH, true);
    assert_true(reserve_refill());
    assert_int_equal(reserve.run_count, 3);
    assert_int_equal(reserve.pages, 16);
    check_reserve();
    fake_fail_kind(FAKE_TOUCH, false);
    assert_true(reserve_refill());
    assert_int_equal(reserve.run_count, 1);
    assert_int_equal(reserve.pages, 16);
    check_reserve();
}

static void shrinking_gives_pages_back(void **state)
{
    size_t used;

    (void)state;
    start();
    assert_true(reserve_resize(40 * page_bytes()));
    used = page_heap_used_pages(page_heap);
    assert_true(reserve_resize(10 * page_bytes()));
    assert_int_equal(page_heap_used_pages(page_heap), used - 30);
    assert_int_equal(reserve.refills, 1); /* what stays was never given away */
    assert_true(reserve_resize(0));
    assert_int_equal(page_heap_used_pages(page_heap), used - 40);
    assert_int_equal(meta.held_back_bytes, 0);
    check_reserve();
}

static void what_cannot_be_touched_is_not_counted(void **state)
{
    (void)state;
    start();
    fake_fail_kind(FAKE_TOUCH, true);
    assert_false(reserve_resize(16 * page_bytes()));
    assert_int_equal(reserve.pages, 0);
    assert_int_equal(page_heap_used_pages(page_heap), 0);
    fake_fail_kind(FAKE_TOUCH, false);
    assert_true(reserve_refill());
    check_reserve();
    assert_true(reserve_release(6));
    fake_fail_kind(FAKE_TOUCH, true);
    assert_false(reserve_refill()); /* nor is the run longer by it */
    assert_int_equal(reserve.pages, 10);
    assert_int_equal(page_record(reserve.run[0])->run_pages, 10);
    assert_int_equal(page_heap_used_pages(page_heap), 10);
    check_reserve();
}

/* Pages that a child would find empty must not go to the program. */
static void pages_that_stay_special_stay(void **state)
{
    (void)state;
    start();
    assert_true(reserve_resize(16 * page_bytes()));
    fake_fail_kind(FAKE_KEEP_FROM_CHILD, true);
    assert_false(reserve_release(4));
    assert_int_equal(reserve.pages, 16);
    fake_fail_kind(FAKE_KEEP_FROM_CHILD, false);
    fake_fail_nth(1); /* the tail alone cannot be split off, the whole run can */
    assert_true(reserve_release(4));
    assert_int_equal(reserve.pages, 0);
    check_reserve();
}

/* Several runs that the kernel does not let go, and nothing is wanted any more. */
static void what_cannot_be_given_back_is_no_reason_for_more(void **state)
{
    (void)state;
    start();
    assert_true(reserve_resize(16 * page_bytes()));
    assert_true(inside_add_run(2, false) && inside_add_run(2, false));
    fake_fail_kind(FAKE_KEEP_FROM_CHILD, true);
    for (size_t pages = 0; pages < 10; pages += 3) {
        (void)reserve_resize(pages * page_bytes());
        assert_int_equal(reserve.pages, 20);
        assert_int_equal(reserve.run_count, 3);
    }
    check_reserve();
    fake_fail_kind(FAKE_KEEP_FROM_CHILD, false);
    assert_true(reserve_resize(0));
    assert_int_equal(reserve.pages, 0);
    check_reserve();
}

/* What it gave away, a child gets with its contents. */
static void released_pages_are_ordinary(void **state)
{
    uint32_t page;
    int status;

    (void)state;
    start();
    assert_true(reserve_resize(16 * page_bytes()));
    assert_true(reserve_release(16));
    page = lease(16);
    stain(page, 16, 0x5A);
    if (fork() == 0) _exit(all_bytes_are(page_address(page), 0x5A, bytes_of(16)) ? 0 : 1);
    wait(&status);
    assert_int_equal(status, 0);
}

/* Of the pages in which the records are that are held back, and a part of the last one given. */
static size_t held_back_pages_bytes(void)
{
    return round_up((uintptr_t)meta.next, page_bytes())
         - round_down((uintptr_t)meta.next - meta.held_back_bytes, page_bytes());
}

static void a_child_touches_its_own(void **state)
{
    int status;

    (void)state;
    start();
    assert_true(reserve_resize(16 * page_bytes()));
    stain(reserve.run[0], 16, 0x5A);
    if (fork() == 0) {
        bool wiped = all_bytes_are(page_address(reserve.run[0]), 0, bytes_of(16));
        uint64_t touched;
        reserve_forget_pages();
        touched = fake_touched_bytes();
        if (!wiped || !reserve_is_short() || !reserve_refill() || reserve_is_short()) _exit(1);
        _exit(fake_touched_bytes() - touched == bytes_of(16) + held_back_pages_bytes() ? 0 : 2);
    }
    wait(&status);
    assert_int_equal(status, 0);
}

static void a_child_without_a_reserve_lacks_nothing(void **state)
{
    (void)state;
    start();
    reserve_forget_pages();
    assert_false(reserve_is_short());
    assert_false(reserve.untouched || reserve.records_short);
}

/* Records are held back, too, so that what is released can be used. */
static void records_are_there_after_a_release(void **state)
{
    (void)state;
    start();
    assert_true(reserve_resize(64 * page_bytes()));
    assert_true(meta.held_back_bytes >= inside_records_bytes_min);
    fake_fail_kind(FAKE_COMMIT, true);
    while (meta_take(64) != NULL) {}
    assert_true(reserve_release(1));
    for (size_t bytes = 64; bytes <= inside_records_bytes_min; bytes += 64)
        assert_non_null(meta_take(64));
    assert_false(reserve_refill());
    fake_fail_kind(FAKE_COMMIT, false);
    assert_true(reserve_refill());
    check_reserve();
}

/* Pages that the kernel did not let go are more than is wanted, so that none are missing then. */
static void records_are_held_back_anew_where_no_pages_are_missing(void **state)
{
    (void)state;
    start();
    assert_true(reserve_resize(16 * page_bytes()));
    fake_fail_kind(FAKE_KEEP_FROM_CHILD, true);
    assert_true(reserve_resize(4 * page_bytes()));
    assert_int_equal(reserve.pages, 16);
    fake_fail_kind(FAKE_KEEP_FROM_CHILD, false);
    assert_true(reserve_release(2));
    assert_int_equal(reserve.pages, 14);
    assert_int_equal(meta.held_back_bytes, 0);
    assert_true(reserve_is_short());
    assert_true(reserve_refill());
    assert_true(meta.held_back_bytes >= inside_records_bytes_min);
    check_reserve();
}

/* However many were taken since: those held back are others then. */
static void records_held_back_are_real(void **state)
{
    uint64_t touched;
    size_t held_back;

    (void)state;
    start();
    assert_true(reserve_resize(64 * page_bytes()));
    held_back = meta.held_back_bytes;
    touched = fake_touched_bytes();
    for (size_t bytes = 0; bytes < 4 * held_back; bytes += 1024) assert_non_null(meta_take(1024));
    assert_int_equal(meta.held_back_bytes, held_back);
    assert_int_equal(fake_touched_bytes() - touched, 4 * held_back);
    fake_fail_kind(FAKE_TOUCH, true);
    for (size_t bytes = 0; bytes < page_bytes(); bytes += 1024)
        if (meta_take(1024) == NULL) break;
    assert_null(meta_take(1024));
    fake_fail_kind(FAKE_TOUCH, false);
    assert_non_null(meta_take(1024));
}

static void a_crowded_group_is_not_filled_up(void **state)
{
    (void)state;
    start();
    RELAXED_STORE(limits.follows_group, true);
    fake_group(64 * MiB, 64 * MiB - 10 * page_bytes());
    (void)limits_look(0);
    assert_false(reserve_resize(16 * page_bytes()));
    assert_int_equal(reserve.pages, 0);
    fake_group(64 * MiB, 32 * MiB);
    fake_clock_ms(100);
    (void)limits_look(0);
    assert_true(reserve_refill());
}

/* What is missing may take half of the room, however much there is already. */
static void what_is_missing_may_take_half_of_the_room(void **state)
{
    (void)state;
    start();
    assert_true(reserve_resize(16 * page_bytes()));
    assert_true(reserve_release(6));
    (void)lease(6); /* the pages that the group has counted */
    RELAXED_STORE(limits.follows_group, true);
    fake_group(64 * MiB, 64 * MiB - 11 * page_bytes());
    (void)limits_look(0);
    assert_false(reserve_refill());
    assert_int_equal(reserve.pages, 10);
    fake_group(64 * MiB, 64 * MiB - 12 * page_bytes());
    fake_clock_ms(100);
    (void)limits_look(0);
    assert_true(reserve_refill());
    assert_int_equal(reserve.pages, 16);
    check_reserve();
}

/* Where the kernel promises more than there is, it kills when what was promised is touched. */
static void what_the_machine_has_not_got_is_not_touched(void **state)
{
    size_t bytes = 2 * RESERVE_ASKS_FROM_BYTES;

    (void)state;
    start();
    fake_machine_room(bytes + bytes / RESERVE_LEAVES_SHARE);
    assert_false(reserve_resize(bytes));
    assert_int_equal(reserve.pages, 0);
    fake_machine_room(bytes + bytes / (RESERVE_LEAVES_SHARE - 1));
    assert_true(reserve_refill());
    assert_int_equal(reserve.pages, pages_of_bytes(bytes));
    fake_machine_room(0);
    assert_true(reserve_resize(bytes + RESERVE_ASKS_FROM_BYTES
                               - page_bytes())); /* little more is not asked for */
    check_reserve();
}

static void a_lost_page(void)
{
    start();
    (void)reserve_resize(16 * page_bytes());
    reserve.pages++;
    check_reserve();
}

static void a_run_of_somebody_else(void)
{
    start();
    (void)reserve_resize(16 * page_bytes());
    page_record(reserve.run[0])->state = PAGE_LARGE;
    check_reserve();
}

static void the_walker_sees_damage(void **state)
{
    (void)state;
    expect_abort(a_lost_page, "prairie: broken invariant: pages == reserve.pages at ");
    expect_abort(a_run_of_somebody_else, "prairie: broken invariant: record->state == PAGE_USED");
}

static void every_refused_call_leaves_it_whole(void **state)
{
    (void)state;
    start();
    for (uint64_t n = 1; n < 40; n++) {
        fake_fail_nth(n);
        (void)reserve_resize((n % 7 + 3) * 16 * page_bytes());
        check_reserve();
        fake_fail_nth(n % 5 + 1);
        (void)reserve_release(n % 3 + 1);
        (void)reserve_refill();
        fake_fail_nth(0);
        check_reserve();
    }
    assert_true(reserve_refill());
    assert_true(reserve_resize(0));
    assert_int_equal(page_heap_used_pages(page_heap), 0);
}

UNIT_MAIN(UNIT_TEST(filling_touches_every_page), UNIT_TEST(nobody_is_given_it_in_ordinary_life),
          UNIT_TEST(a_release_is_in_one_run_or_does_nothing),
          UNIT_TEST(a_refill_grows_the_run_where_it_was),
          UNIT_TEST(without_neighbours_it_takes_short_runs),
          UNIT_TEST(many_short_runs_become_fewer),
          UNIT_TEST(short_runs_are_joined_where_a_long_one_is_free),
          UNIT_TEST(shrinking_gives_pages_back), UNIT_TEST(what_cannot_be_touched_is_not_counted),
          UNIT_TEST(pages_that_stay_special_stay),
          UNIT_TEST(what_cannot_be_given_back_is_no_reason_for_more),
          UNIT_TEST(released_pages_are_ordinary), UNIT_TEST(a_child_touches_its_own),
          UNIT_TEST(a_child_without_a_reserve_lacks_nothing),
          UNIT_TEST(records_are_there_after_a_release),
          UNIT_TEST(records_are_held_back_anew_where_no_pages_are_missing),
          UNIT_TEST(records_held_back_are_real), UNIT_TEST(a_crowded_group_is_not_filled_up),
          UNIT_TEST(what_is_missing_may_take_half_of_the_room),
          UNIT_TEST(what_the_machine_has_not_got_is_not_touched), UNIT_TEST(the_walker_sees_damage),
          UNIT_TEST(every_refused_call_leaves_it_whole))
