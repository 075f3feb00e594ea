/* quarantine_test.c - where what was freed in a hardened process waits: closed or open, how much of
 * it, and what becomes of it where the kernel refuses. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "hardened.h"
#include "harms.h"

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

/* It may be another thread that is refused. */
static void less_waits_below_a_hard_limit(void **state)
{
    const size_t most = WAITING_RUN_BYTES / WAITING_LIMIT_SHARE;
    char *blocks[WAITING_RUNS];

    (void)state;
    harden();
    may_close(UINT32_MAX);
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) blocks[i] = taken(most / 6);
    limits_set_hard(WAITING_RUN_BYTES);
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) prairie_free(blocks[i]);
    assert_in_range((size_t)quarantine()->run_pages << space.page_shift, most / 2, most);
    limits_set_hard(0);
    thread_flush();
    prairie_check_all();
}

/* Its thread may be the only one that frees large blocks, and all of them long ones. */
static void what_came_first_leaves_for_what_comes(void **state)
{
    enum { ALL = 8, FIT = 4 };
    char *blocks[ALL];

    (void)state;
    harden();
    (void)taken(2 * WAITING_RUN_BYTES); /* the program does not shrink */
    may_close(UINT32_MAX);
    for (unsigned i = 0; i < ALL; i++) blocks[i] = taken(WAITING_RUN_BYTES / (FIT + 1));
    for (unsigned i = 0; i < ALL; i++) {
        prairie_free(blocks[i]);
        assert_int_equal(quarantine()->run_count, min_size(i + 1, FIT));
        assert_true(page_is_cached(page_record(page_at(blocks[i]))));
    }
    assert_false(page_is_cached(page_record(page_at(blocks[ALL - FIT - 1]))));
    for (unsigned i = ALL - FIT; i < ALL; i++) {
        block = blocks[i];
        expect_fault(touch_it);
    }
    prairie_check_all();
}

static void closed_runs_leave_for_an_open_one(void **state)
{
    char *blocks[WAITING_RUNS];

    (void)state;
    harden();
    (void)taken(2 * WAITING_RUN_BYTES); /* the program does not shrink */
    block = taken(LARGE);
    for (unsigned i = 0; i < WAITING_RUNS; i++)
        blocks[i] = taken(WAITING_RUN_BYTES / WAITING_RUNS - 2 * page_bytes());
    may_close(UINT32_MAX);
    for (unsigned i = 0; i < WAITING_RUNS; i++) prairie_free(blocks[i]);
    assert_int_equal(quarantine()->run_count, WAITING_RUNS);
    may_close(0);
    prairie_free(block);
    assert_int_equal(quarantine()->all_open_pages, page_record(page_at(block))->run_pages);
    assert_int_equal(quarantine()->run_count, WAITING_RUNS);
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

/* Of a block that has room behind it, and of which two would be too much. */
static void what_waits_leaves_before_growth_is_refused(void **state)
{
    char *last, *after, *blocks[4];

    (void)state;
    harden();
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) blocks[i] = taken(LARGE);
    last = taken(2 * MiB);
    after = taken(1 * MiB);
    assert_ptr_equal(after, last + 2 * MiB + page_bytes());
    prairie_free(after);
    thread_flush();
    (void)prairie_purge();
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) prairie_free(blocks[i]);
    assert_int_equal(quarantine()->run_count, ARRAY_COUNT(blocks));
    limits_set_hard(commit_taken_bytes() + 64 * KiB);
    errno = 0;
    assert_ptr_equal(prairie_realloc(last, 2 * MiB + 256 * KiB), last);
    assert_int_equal(errno, 0);
    assert_int_equal(prairie_usable_size(last), 2 * MiB + 256 * KiB);
    assert_null(prairie_realloc(last, 4 * MiB));
    assert_int_equal(errno, ENOMEM);
    limits_set_hard(0);
    prairie_free(last);
    prairie_check_all();
}

/* The statistics may read what is another record by then. */
static void no_more_is_counted_than_may_wait(void **state)
{
    const size_t most = WAITING_RUN_BYTES + OPEN_RUNS_BYTES_MAX;
    struct prairie_stats before = { .struct_bytes = sizeof before }, stats = before;
    struct quarantine *waits, kept;

    (void)state;
    harden();
    block = taken(2 * most);
    prairie_free(taken(LARGE));
    waits = quarantine();
    kept = *waits;
    (void)prairie_stats_read(&before);
    waits->run_pages = waits->all_open_pages = UINT32_MAX / 2;
    (void)prairie_stats_read(&stats);
    *waits = kept;
    assert_in_range(stats.dirty, before.dirty, before.dirty + OPEN_RUNS_BYTES_MAX);
    assert_in_range(stats.allocated, before.allocated - most, before.allocated);
    prairie_check_all();
}

/* A fork in a handler that came in the middle of a drain counts nothing of what the child still
 * gives back. */
static void what_was_not_counted_is_not_taken_off(void **state)
{
    (void)state;
    harden();
    prairie_free(taken(LARGE));
    quarantines_forget_others(NULL);
    thread_flush();
    prairie_free(taken(LARGE / 2));
    assert_int_equal(quarantine()->run_count, 1);
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

/* ---- the walk ---- */

/* Of blocks of 100 bytes, all places of which are taken but one; and two runs, the second one
 * open. */
enum { HELD_BYTES = 100 };
enum { CLOSED_RUN, OPEN_RUN };

static void let_some_wait(void)
{
    char *blocks[WAITING_BLOCKS_WANTED - 1], *first, *second;

    harden();
    fake_clock_ms(1);
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) blocks[i] = taken(HELD_BYTES);
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) prairie_free(blocks[i]);
    first = taken(LARGE);
    second = taken(LARGE);
    prairie_free(first);
    may_close(0);
    prairie_free(second);
    assert_int_equal(quarantine()->run_count, 2);
}

static struct held_class *held_class(void)
{
    return &quarantine_of(thread_front()->cache)->held[hardened_class(HELD_BYTES, 1)];
}

static void **waiting_block(void)
{
    void **place = held_class()->waiting;

    while (*place == NULL) place++;
    return place;
}

static void **empty_place(void)
{
    void **place = held_class()->waiting;

    while (*place != NULL) place++;
    return place;
}

static struct slab *slab_of_waiting(void)
{
    return slab_of(*waiting_block(), hardened_class(HELD_BYTES, 1));
}

static struct quarantine *walked(void) { return quarantine_of(thread_front()->cache); }
static struct page *first_record(unsigned place) { return page_record(walked()->run[place]); }
static struct page *last_record(unsigned place)
{
    return first_record(place) + first_record(place)->run_pages - 1;
}

static void q1_of_another_class(void) { *waiting_block() = prairie_malloc(2 * HELD_BYTES); }
static void q1_a_large_block(void) { *waiting_block() = prairie_malloc(LARGE); }
static void q1_foreign(void) { *waiting_block() = &block; }
static void q1_amid_a_block(void) { *waiting_block() = (char *)*waiting_block() + 16; }
static void q1_of_a_manual_arena(void) { slab_of_waiting()->hidden |= SLAB_MANUAL; }
static void q1_of_no_hardened_arena(void)
{
    slab_of_waiting()->hidden &= (uint8_t) ~(unsigned)SLAB_HARDENED;
}
static void q1_twice(void)
{
    *empty_place() = *waiting_block();
    held_class()->waiting_count++;
}
static void q1_one_too_few(void) { *waiting_block() = NULL; }
static void q1_one_too_many(void) { *empty_place() = prairie_malloc(HELD_BYTES); }
static void q1_without_places(void) { walked()->held[CLASS_COUNT - 1].waiting_count = 1; }
static void an_order_of_other_places(void) { held_class()->order = held_class()->waiting_max + 1u; }
static void places_of_no_power_of_two(void) { held_class()->waiting_max--; }
static void q2_not_marked(void) { page_unmark_cached(first_record(CLOSED_RUN)); }
static void q2_amid_a_run(void) { walked()->run[CLOSED_RUN]++; }
static void q2_twice(void)
{
    walked()->run[2] = walked()->run[CLOSED_RUN];
    walked()->run_count++;
    walked()->run_pages += first_record(CLOSED_RUN)->run_pages;
}
static void q2_one_too_many(void) { walked()->run_count++; }
static void q2_another_sum(void) { walked()->run_pages++; }
static void q3_of_another_length(void)
{
    walked()->open_pages[OPEN_RUN]--;
    walked()->all_open_pages--;
}
static void q3_without_a_run(void)
{
    walked()->open_pages[2] = 1;
    walked()->all_open_pages++;
}
static void q3_another_sum(void) { walked()->all_open_pages--; }
static void q3_a_slack(void) { last_record(OPEN_RUN)->bin.next = 1; }
static void q3_a_door(void) { last_record(OPEN_RUN)->bin.previous |= DOOR_NEW; }
static void q3_a_guard_of_a_closed_run(void)
{
    last_record(CLOSED_RUN)->bin.previous = RUN_GUARDED;
}
static void another_oldest_run(void) { walked()->oldest_run = WAITING_RUNS; }
static void q3_written_to_the_first_byte(void) { *page_address(walked()->run[OPEN_RUN]) = 1; }
static void q3_written_to_the_last_byte(void)
{
    page_address(walked()->run[OPEN_RUN])[hardened_large_room(walked()->run[OPEN_RUN]) - 1] = 1;
}
static void walk_mine(void) { cache_check(thread_front()->cache); }

static void broken_invariants_are_found(void **state)
{
    static const struct harm harms[] = {
        HARM(q1_of_another_class),
        HARM(q1_a_large_block),
        HARM(q1_foreign),
        HARM(q1_amid_a_block),
        HARM(q1_of_a_manual_arena),
        HARM(q1_of_no_hardened_arena),
        HARM(q1_twice),
        HARM(q1_one_too_few),
        HARM(q1_one_too_many),
        HARM(q1_without_places),
        HARM(an_order_of_other_places),
        HARM(places_of_no_power_of_two),
        HARM(q2_not_marked),
        HARM(q2_amid_a_run),
        HARM(q2_twice),
        HARM(q2_one_too_many),
        HARM(q2_another_sum),
        HARM(q3_of_another_length),
        HARM(q3_without_a_run),
        HARM(q3_another_sum),
        HARM(q3_a_slack),
        HARM(q3_a_door),
        HARM(another_oldest_run),
        HARM(q3_a_guard_of_a_closed_run),
    };

    (void)state;
    let_some_wait();
    expect_harms_found(harms, ARRAY_COUNT(harms), walk_mine);
    expect_harm_found(q3_written_to_the_first_byte, walk_mine, "prairie: write after free: ");
    expect_harm_found(q3_written_to_the_last_byte, walk_mine, "prairie: write after free: ");
}

UNIT_MAIN(
    UNIT_TEST(a_freed_large_block_is_closed_and_waits),
    UNIT_TEST(beyond_that_large_blocks_stay_open), UNIT_TEST(time_lets_more_be_closed),
    UNIT_TEST(a_child_may_close_less), UNIT_TEST(only_so_much_stays_open),
    UNIT_TEST(what_is_too_long_to_wait_does_not), UNIT_TEST(what_leaves_for_others_is_given_back),
    UNIT_TEST(only_so_much_waits), UNIT_TEST(less_waits_below_a_hard_limit),
    UNIT_TEST(what_came_first_leaves_for_what_comes), UNIT_TEST(closed_runs_leave_for_an_open_one),
    UNIT_TEST(what_waits_leaves_before_a_request_is_refused),
    UNIT_TEST(what_waits_leaves_before_growth_is_refused),
    UNIT_TEST(no_more_is_counted_than_may_wait), UNIT_TEST(what_was_not_counted_is_not_taken_off),
    UNIT_TEST(broken_invariants_are_found), UNIT_TEST(what_waits_is_not_allocated),
    UNIT_TEST(what_cannot_be_guarded_is_wiped), UNIT_TEST(a_run_that_stays_closed_is_lost),
    UNIT_TEST(a_child_counts_what_waits_of_its_own), UNIT_TEST(a_run_whose_guard_stays_is_nobodys),
    UNIT_TEST(large_blocks_without_a_cache_are_wiped_at_once),
    UNIT_TEST(the_first_page_is_closed_out_of_all_of_them))
