/* quarantine_test.c - where what was freed in a hardened process waits: closed or open, how much of
 * it, and what becomes of it where the kernel refuses. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "hardened.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_freed_large_block_is_closed_and_waits(void **state)
{
    size_t used;

    (void)state;
    harden();
    block = taken(LARGE);
    used = page_heap_used_pages(page_heap);
    prairie_free(block);
    expect_fault(touch_it);
    assert_ptr_not_equal(taken(LARGE), block);
    for (unsigned i = 0; i < WAITING_RUNS; i++) prairie_free(taken(LARGE));
    assert_false(page_is_cached(page_record(page_at(block)))); /* it went first */
    thread_flush();
    assert_int_equal(page_heap_used_pages(page_heap), used);
    prairie_check_all();
}

static void take_large(void) { (void)prairie_malloc(LARGE); }

/* It is wiped and looked at, and its guard stays. */
static void beyond_that_large_blocks_stay_open(void **state)
{
    char *first, *other;

    (void)state;
    harden();
    fake_clock_ms(1);
    may_close(1 + CLOSING_COSTS_PAGES); /* of the first block the guard, and nothing else */
    block = first = taken(LARGE);
    memset(block, 0xee, LARGE);
    prairie_free(block);
    assert_true(all_bytes_are(block, 0, LARGE));
    expect_abort(free_it, "prairie: double free: ");
    other = taken(LARGE);
    assert_ptr_not_equal(other, first); /* it was freed last */
    prairie_free(other);
    for (unsigned at = 0; at < LARGE; at += 1 + LARGE / 7) {
        first[at] = 1;
        expect_abort(take_large, "prairie: write after free: ");
        first[at] = 0;
    }
    assert_ptr_equal(taken(LARGE), first);
    expect_fault(touch_behind);
    first[LARGE] ^= 1;
    expect_abort(free_it, "prairie: write past the end of a block: ");
    first[LARGE] ^= 1;
    prairie_free(first);
    prairie_check_all();
    thread_flush();
    prairie_check_all();
    block = taken(LARGE + 4096); /* the guard that was there is gone */
    memset(block, 0xee, LARGE + 4096);
    prairie_free(block);
}

static void time_lets_more_be_closed(void **state)
{
    const uint64_t ms = (LARGE / 4096 + 2) / CLOSED_PAGES_PER_MS + 2;

    (void)state;
    harden();
    fake_clock_ms(1);
    may_close(0);
    block = taken(LARGE);
    touch_behind();
    prairie_free(block);
    touch_it();
    *block = 0;
    fake_clock_ms(ms);
    block = taken(LARGE); /* now it has a guard */
    expect_fault(touch_behind);
    fake_clock_ms(ms);
    prairie_free(block);
    expect_fault(touch_it);
    fake_clock_ms(3600 * 1000);
    assert_false(quarantine_may_close(CLOSED_PAGES_AT_ONCE));
    assert_int_equal(closing_left, CLOSED_PAGES_AT_ONCE);
}

/* Of many children that do not live for long each closes little. */
static void a_child_may_close_less(void **state)
{
    int status;

    (void)state;
    harden();
    fake_clock_ms(1);
    prairie_free(taken(LARGE));
    assert_in_range(closing_left, CLOSED_PAGES_AT_ONCE / 2, CLOSED_PAGES_AT_ONCE);
    if (fake_fork() == 0) _exit(closing_left == CLOSED_PAGES_OF_CHILD ? 0 : 1);
    assert_true(wait(&status) > 0 && status == 0);
    assert_in_range(closing_left, CLOSED_PAGES_AT_ONCE / 2, CLOSED_PAGES_AT_ONCE);
}

static void only_so_much_stays_open(void **state)
{
    char *blocks[WAITING_RUNS];
    size_t most = 0;

    (void)state;
    harden();
    fake_clock_ms(1);
    may_close(0);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < WAITING_RUNS; i++)
            blocks[i] = taken(OPEN_RUNS_BYTES_MAX / 5 + i % 3 * 4096);
        for (unsigned i = 0; i < WAITING_RUNS; i++) {
            size_t open;

            prairie_free(blocks[i]); /* some empty it all, for the program shrinks */
            open = (size_t)quarantine()->all_open_pages << space.page_shift;
            assert_in_range(open, 0, OPEN_RUNS_BYTES_MAX);
            assert_int_equal(quarantine()->all_open_pages, quarantine()->run_pages);
            most = max_size(most, open);
        }
    }
    assert_in_range(most, OPEN_RUNS_BYTES_MAX / 2, OPEN_RUNS_BYTES_MAX);
    thread_flush();
    assert_int_equal(page_heap->large_pages, 0);
    prairie_check_all();
}

/* They are wiped all the same, and the longest give their pages back for it. */
static void what_is_too_long_to_wait_does_not(void **state)
{
    const size_t sizes[] = { OPEN_RUNS_BYTES_MAX, WIPED_RUN_BYTES_MAX, WIPED_RUN_BYTES_MAX + 1 };

    (void)state;
    options_parse("dirty_decay_ms:-1", "test");
    harden();
    fake_clock_ms(1);
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        uint64_t purges;

        may_close(0);
        block = taken(sizes[i]);
        memset(block, 1, sizes[i]);
        purges = fake_calls(FAKE_PURGE);
        prairie_free(block);
        assert_true(all_bytes_are(block, 0, sizes[i]));
        assert_int_equal(quarantine()->run_count, 0);
        assert_int_equal(fake_calls(FAKE_PURGE) - purges, sizes[i] > WIPED_RUN_BYTES_MAX);
    }
    assert_int_equal(page_heap->large_pages, 0);
    prairie_check_all();
}

/* Open runs leave for closed ones, and their pages are dirty. */
static void what_leaves_for_others_is_given_back(void **state)
{
    enum { OPEN = 8 };
    char *blocks[OPEN + WAITING_RUNS];
    size_t bytes;

    (void)state;
    harden();
    fake_clock_ms(1);
    bytes = OPEN_RUNS_BYTES_MAX / OPEN - os_page_bytes();
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) blocks[i] = taken(bytes);
    may_close(0);
    for (unsigned i = 0; i < OPEN; i++) prairie_free(blocks[i]);
    assert_int_equal(quarantine()->all_open_pages << space.page_shift, OPEN_RUNS_BYTES_MAX);
    run_return(run_lease(pages_for(PURGE_KEEP_BYTES * 3 / 2), 1, PAGE_USED).page);
    assert_int_equal(fake_calls(FAKE_PURGE), 0);
    may_close(UINT32_MAX);
    for (unsigned i = OPEN; i < ARRAY_COUNT(blocks); i++) prairie_free(blocks[i]);
    assert_int_equal(quarantine()->all_open_pages, 0);
    assert_true(fake_calls(FAKE_PURGE) > 0);
    prairie_check_all();
}

static void only_so_much_waits(void **state)
{
    char *blocks[8];

    (void)state;
    harden();
    may_close(UINT32_MAX);
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) blocks[i] = taken(WAITING_RUN_BYTES / 5);
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) prairie_free(blocks[i]);
    assert_in_range((size_t)quarantine()->run_pages << space.page_shift, WAITING_RUN_BYTES / 2,
                    WAITING_RUN_BYTES);
    thread_flush();
    prairie_check_all();
}

/* There is room for one block, and that waits. */
static void what_waits_leaves_before_a_request_is_refused(void **state)
{
    (void)state;
    harden();
    block = taken(LARGE);
    prairie_free(block);
    assert_int_equal(quarantine()->run_count, 1);
    limits_set_hard(commit_taken_bytes());
    assert_ptr_equal(taken(LARGE), block);
    assert_null(prairie_malloc(LARGE));
    limits_set_hard(0);
    prairie_check_all();
}

static void what_waits_is_not_allocated(void **state)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };

    (void)state;
    harden();
    for (unsigned i = 0; i < 100; i++) {
        block = taken(100);
        prairie_free(taken(100 + 50 * i));
        prairie_free(taken(LARGE));
        prairie_free(block);
    }
    (void)prairie_stats_read(&stats);
    assert_int_equal(stats.allocated, 0);
}

/* Where the kernel closes nothing, what was freed is wiped: by a purge, or by hand. */
static void what_cannot_be_guarded_is_wiped(void **state)
{
    (void)state;
    harden();
    for (unsigned refused = 0; refused < 4; refused++) {
        char *again;

        fake_fail_kind(FAKE_CLOSE, refused % 2 == 0);
        block = taken(LARGE);
        memset(block, 0xee, LARGE);
        fake_fail_kind(FAKE_CLOSE, true);
        fake_fail_kind(FAKE_PURGE, refused >= 2);
        prairie_free(block);
        expect_abort(free_it, "prairie: double free");
        fake_fail_kind(FAKE_CLOSE, false);
        fake_fail_kind(FAKE_PURGE, false);
        again = taken(LARGE);
        assert_true(all_bytes_are(again, 0, LARGE));
        prairie_free(again);
        prairie_check_all();
    }
}

/* Its guard cannot be opened again: the run is lost, and nothing else. */
static void a_run_that_stays_closed_is_lost(void **state)
{
    char *others[4];

    (void)state;
    harden();
    block = taken(LARGE);
    memset(block, 0xee, LARGE);
    fake_fail_kind(FAKE_CLOSE, true);
    fake_fail_kind(FAKE_COMMIT, true);
    prairie_free(block);
    fake_fail_kind(FAKE_CLOSE, false);
    fake_fail_kind(FAKE_COMMIT, false);
    for (unsigned i = 0; i < 4; i++) {
        others[i] = taken(LARGE);
        assert_true(others[i] + LARGE <= block || others[i] >= block + LARGE);
        memset(others[i], 0xdd, LARGE);
    }
    for (unsigned i = 0; i < 4; i++) prairie_free(others[i]);
    prairie_check_all();
}

/* Another thread's quarantine has as much as all may have, until that is ended. */
static pthread_t other;
static pthread_barrier_t filled, ends;

static void *let_as_much_wait_as_may(void *unused)
{
    char *blocks[WAITING_RUNS];

    for (unsigned i = 0; i < WAITING_RUNS; i++)
        blocks[i] = taken(WAITING_RUN_BYTES / WAITING_RUNS - 2 * page_bytes());
    may_close(2 * (WAITING_RUN_BYTES >> space.page_shift));
    for (unsigned i = 0; i < WAITING_RUNS; i++) prairie_free(blocks[i]);
    pthread_barrier_wait(&filled);
    pthread_barrier_wait(&ends);
    return unused;
}

static void begin_waiting(void)
{
    harden();
    (void)taken(2 * WAITING_RUN_BYTES); /* the program does not shrink */
    pthread_barrier_init(&filled, NULL, 2);
    pthread_barrier_init(&ends, NULL, 2);
    assert_int_equal(pthread_create(&other, NULL, let_as_much_wait_as_may, NULL), 0);
    pthread_barrier_wait(&filled);
    prairie_free(taken(LARGE));
    assert_int_equal(quarantine()->run_count, 0);
}

static void end_waiting_of_other(void)
{
    pthread_barrier_wait(&ends);
    assert_int_equal(pthread_join(other, NULL), 0);
}

/* What waits in the quarantines of threads that a child does not have is no part of its budget. */
static void a_child_counts_what_waits_of_its_own(void **state)
{
    int status;

    (void)state;
    begin_waiting();
    if (fake_fork() == 0) {
        prairie_free(taken(LARGE));
        _exit(quarantine()->run_count == 1 ? 0 : 1);
    }
    assert_true(wait(&status) > 0 && status == 0);
    end_waiting_of_other();
}

/* One that may not wait, and whose guard stays, is lost as others are: its second free is told. */
static void a_run_whose_guard_stays_is_nobodys(void **state)
{
    (void)state;
    begin_waiting();
    block = taken(LARGE);
    fake_fail_kind(FAKE_CLOSE, true);
    fake_fail_kind(FAKE_COMMIT, true);
    prairie_free(block);
    fake_fail_kind(FAKE_CLOSE, false);
    fake_fail_kind(FAKE_COMMIT, false);
    expect_abort(free_it, "prairie: double free");
    end_waiting_of_other();
    prairie_check_all();
}

/* A thread without a cache has no quarantine either. */
static void large_blocks_without_a_cache_are_wiped_at_once(void **state)
{
    (void)state;
    harden();
    assert_true(thread_cache_off());
    for (unsigned i = 0; i < 8; i++) {
        block = taken(LARGE);
        assert_true(all_bytes_are(block, 0, LARGE));
        memset(block, 0xee, LARGE);
        prairie_free(block);
        prairie_check_all();
    }
}

/* Whatever the clock says, which may have begun with the machine. */
static void the_first_page_is_closed_out_of_all_of_them(void **state)
{
    (void)state;
    fake_clock_ms(1 - os_now_ms());
    assert_int_equal(os_now_ms(), 1);
    assert_false(quarantine_may_close(CLOSED_PAGES_AT_ONCE + 1));
    assert_int_equal(closing_left, CLOSED_PAGES_AT_ONCE);
}

UNIT_MAIN(UNIT_TEST(a_freed_large_block_is_closed_and_waits),
          UNIT_TEST(beyond_that_large_blocks_stay_open), UNIT_TEST(time_lets_more_be_closed),
          UNIT_TEST(a_child_may_close_less), UNIT_TEST(only_so_much_stays_open),
          UNIT_TEST(what_is_too_long_to_wait_does_not),
          UNIT_TEST(what_leaves_for_others_is_given_back), UNIT_TEST(only_so_much_waits),
          UNIT_TEST(what_waits_leaves_before_a_request_is_refused),
          UNIT_TEST(what_waits_is_not_allocated), UNIT_TEST(what_cannot_be_guarded_is_wiped),
          UNIT_TEST(a_run_that_stays_closed_is_lost),
          UNIT_TEST(a_child_counts_what_waits_of_its_own),
          UNIT_TEST(a_run_whose_guard_stays_is_nobodys),
          UNIT_TEST(large_blocks_without_a_cache_are_wiped_at_once),
          UNIT_TEST(the_first_page_is_closed_out_of_all_of_them))
