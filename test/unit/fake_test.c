/* fake_test.c - the kernel of the unit tests: what it gives, refuses, and will not stand. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

enum { PAGE = 4096 };

static struct os_range range;

static struct os_range part(size_t first_page, size_t pages)
{
    return (struct os_range){ range.base + first_page * PAGE, pages * PAGE };
}

static void reserve_ten(void) { range = os_reserve(10 * PAGE, PAGE); }

/* ---- what memory does ---- */

static void touch_the_first(void) { *(volatile char *)range.base = 1; }
static void read_the_first(void) { (void)*(volatile char *)range.base; }

static void reserved_memory_cannot_be_touched(void **state)
{
    (void)state;
    reserve_ten();
    assert_non_null(range.base);
    assert_int_equal(fake_reserved_bytes(), 10 * PAGE);
    assert_int_equal(fake_committed_bytes(), 0);
    expect_fault(read_the_first);
    range = os_reserve_readable(10 * PAGE);
    assert_true(all_bytes_are(range.base, 0, range.bytes));
    expect_fault(touch_the_first);
}

static void committed_memory_reads_as_zero(void **state)
{
    (void)state;
    reserve_ten();
    assert_true(os_commit(part(2, 3)));
    assert_int_equal(fake_committed_bytes(), 3 * PAGE);
    assert_true(fake_is_committed(part(2, 3).base, 3 * PAGE));
    assert_false(fake_is_committed(part(1, 2).base, 2 * PAGE));
    assert_true(all_bytes_are(part(2, 3).base, 0, 3 * PAGE));
    memset(part(2, 3).base, 7, 3 * PAGE);
    assert_true(os_commit(part(1, 3))); /* a second commit keeps what is there */
    assert_int_equal(fake_committed_bytes(), 4 * PAGE);
    assert_true(all_bytes_are(part(2, 3).base, 7, 3 * PAGE));
    expect_fault(read_the_first);
}

static void alignments_are_kept(void **state)
{
    (void)state;
    for (size_t align = PAGE; align <= 64 * MiB; align *= 2) {
        struct os_range aligned = os_reserve(3 * PAGE, align);
        assert_non_null(aligned.base);
        assert_true(is_aligned((uintptr_t)aligned.base, align));
        os_release(aligned);
    }
    assert_int_equal(fake_reserved_bytes(), 0);
}

static void pages_may_be_larger(void **state)
{
    (void)state;
    fake_page_bytes(64 * KiB);
    assert_int_equal(os_page_bytes(), 64 * KiB);
    range = os_reserve(128 * KiB, 1);
    assert_true(is_aligned((uintptr_t)range.base, 64 * KiB));
    assert_true(os_commit((struct os_range){ range.base + 64 * KiB, 64 * KiB }));
    assert_int_equal(fake_committed_bytes(), 64 * KiB);
}

static void purging_leaves_zeros_or_what_was_asked_for(void **state)
{
    (void)state;
    reserve_ten();
    assert_true(os_commit(part(0, 10)));
    memset(range.base, 7, range.bytes);
    assert_true(os_purge(part(0, 2)));
    assert_true(all_bytes_are(range.base, 0, 2 * PAGE));
    assert_true(all_bytes_are(part(2, 8).base, 7, 8 * PAGE));
    fake_purge_does(FAKE_PURGE_SCRIBBLES);
    assert_true(os_purge(part(2, 1)));
    assert_true(all_bytes_are(part(2, 1).base, FAKE_SCRIBBLE, PAGE));
    assert_int_equal(fake_purged_bytes(), 3 * PAGE);
    assert_int_equal(fake_committed_bytes(), 10 * PAGE);
    fake_fail_kind(FAKE_PURGE, true);
    assert_false(os_purge(part(3, 1)));
    assert_true(all_bytes_are(part(3, 7).base, 7, 7 * PAGE));
    assert_int_equal(fake_purged_bytes(), 3 * PAGE);
}

static void closing_undoes_a_commit(void **state)
{
    (void)state;
    reserve_ten();
    assert_true(os_commit(part(0, 10)));
    memset(range.base, 7, range.bytes);
    assert_true(os_close(part(0, 4)));
    assert_int_equal(fake_committed_bytes(), 6 * PAGE);
    expect_fault(read_the_first);
    assert_true(all_bytes_are(part(4, 6).base, 7, 6 * PAGE));
    assert_true(os_commit(part(0, 2)));
    assert_true(all_bytes_are(range.base, 0, 2 * PAGE));
}

static void moving_leaves_zeros(void **state)
{
    (void)state;
    reserve_ten();
    assert_true(os_commit(part(0, 10)));
    memset(range.base, 7, 3 * PAGE);
    assert_true(os_move(part(0, 3), part(5, 3)));
    assert_true(all_bytes_are(range.base, 0, 5 * PAGE));
    assert_true(all_bytes_are(part(5, 3).base, 7, 3 * PAGE));
    assert_int_equal(fake_moved_bytes(), 3 * PAGE);
}

/* ---- what it refuses ---- */

static void the_nth_call_fails_once(void **state)
{
    (void)state;
    reserve_ten();
    for (uint64_t n = 1; n <= 5; n++) {
        uint64_t failures = fake_failures();
        fake_fail_nth(n);
        for (uint64_t call = 1; call <= 8; call++)
            assert_int_equal(os_commit(part(call, 1)), call != n);
        assert_int_equal(fake_failures(), failures + 1);
    }
    assert_int_equal(fake_calls(FAKE_COMMIT), 40);
    assert_int_equal(fake_calls_that_can_fail(), 41);
}

static void calls_fail_in_a_row(void **state)
{
    (void)state;
    reserve_ten();
    fake_fail_row(3, 4);
    for (uint64_t call = 1; call <= 9; call++)
        assert_int_equal(os_commit(part(call, 1)), call < 3 || call > 6);
    assert_int_equal(fake_failures(), 4);
    fake_fail_row(2, 100);
    assert_true(os_commit(part(0, 1)));
    assert_false(os_commit(part(0, 1)));
    fake_fail_nth(0);
    assert_true(os_commit(part(0, 1)));
}

static void kinds_fail_until_they_are_let_go(void **state)
{
    (void)state;
    reserve_ten();
    fake_fail_kind(FAKE_COMMIT, true);
    assert_false(os_commit(part(0, 1)));
    assert_false(os_commit(part(0, 1)));
    assert_non_null(os_reserve(PAGE, PAGE).base);
    fake_fail_all(true);
    assert_null(os_reserve(PAGE, PAGE).base);
    assert_null(os_reserve_readable(PAGE).base);
    assert_false(os_thread_start(NULL));
    assert_false(os_thread_end_hook(NULL));
    assert_int_equal(fake_failures(), 6);
    fake_fail_all(false);
    assert_true(os_commit(part(0, 1)));
}

static void limits_are_limits(void **state)
{
    (void)state;
    fake_address_space(100 * PAGE, 60 * PAGE);
    assert_int_equal(os_address_space_limit(), 100 * PAGE);
    assert_true(os_address_space_has_room(40 * PAGE));
    assert_false(os_address_space_has_room(41 * PAGE));
    assert_null(os_reserve(41 * PAGE, PAGE).base);
    range = os_reserve(40 * PAGE, PAGE);
    assert_non_null(range.base);
    assert_int_equal(os_address_space_used(), 100 * PAGE);
    assert_null(os_reserve(PAGE, PAGE).base);
    fake_commit_bytes_max(3 * PAGE);
    assert_true(os_commit(part(0, 3)));
    assert_false(os_commit(part(3, 1)));
    assert_true(os_commit(part(0, 3)));
    os_release(range);
    assert_int_equal(fake_committed_bytes(), 0);
    fake_reserve_bytes_max(10 * PAGE);
    assert_null(os_reserve(11 * PAGE, PAGE).base);
    assert_non_null(os_reserve(10 * PAGE, PAGE).base);
    assert_null(os_reserve(SIZE_MAX - PAGE + 1, 2 * PAGE).base);
}

/* ---- what it will not stand ---- */

static void commit_too_much(void) { (void)os_commit(part(8, 3)); }
static void commit_nothing(void) { (void)os_commit(part(0, 0)); }
static void commit_elsewhere(void) { (void)os_commit((struct os_range){ (char *)PAGE, PAGE }); }
static void commit_half_a_page(void) { (void)os_commit((struct os_range){ range.base, PAGE / 2 }); }
static void commit_across(void) { (void)os_commit((struct os_range){ range.base + 16, PAGE }); }
static void purge_the_reserved(void) { (void)os_purge(part(4, 2)); }
static void close_the_reserved(void) { (void)os_close(part(4, 2)); }
static void purge_too_much(void) { (void)os_purge(part(0, 11)); }
static void move_from_the_reserved(void) { (void)os_move(part(5, 1), part(0, 1)); }
static void move_to_the_reserved(void) { (void)os_move(part(0, 1), part(5, 1)); }
static void move_onto_itself(void) { (void)os_move(part(0, 2), part(1, 2)); }
static void move_unequally(void) { (void)os_move(part(0, 1), part(2, 2)); }
static void release_a_part(void) { os_release(part(0, 9)); }
static void release_twice(void) { os_release(range), os_release(range); }
static void reserve_oddly(void) { (void)os_reserve(PAGE, 3 * PAGE); }
static void reserve_half_a_page(void) { (void)os_reserve(PAGE / 2, PAGE); }
static void touch_first_the_reserved(void) { (void)os_first_touch_us(range.base + 5 * PAGE); }
static void touch_first_the_written(void)
{
    range.base[PAGE - 1] = 1;
    (void)os_first_touch_us(range.base);
}
static void late_page_size(void) { fake_page_bytes(16 * KiB); }

static void impossible_calls_abort(void **state)
{
    static const struct {
        void (*call)(void);
        const char *complaint;
    } calls[] = {
        { commit_too_much, "a commit outside" },
        { commit_nothing, "a commit outside" },
        { commit_elsewhere, "a commit outside" },
        { commit_half_a_page, "a range that is not whole pages" },
        { commit_across, "a range that is not whole pages" },
        { purge_the_reserved, "a purge of memory that is not committed" },
        { close_the_reserved, "a close of memory that is not committed" },
        { purge_too_much, "a purge outside" },
        { move_from_the_reserved, "a move of memory that is not committed" },
        { move_to_the_reserved, "a move to memory that is not committed" },
        { move_onto_itself, "a move onto itself" },
        { move_unequally, "a move between unequal ranges" },
        { release_a_part, "a release of a part" },
        { release_twice, "a release outside" },
        { reserve_oddly, "a reservation with an odd alignment" },
        { reserve_half_a_page, "a reservation of no whole pages" },
        { touch_first_the_reserved, "a first touch of memory that is not committed" },
        { touch_first_the_written, "a first touch of a page that is not zero" },
        { late_page_size, "the page size changes after the start" },
    };
    char line[100];

    (void)state;
    reserve_ten();
    assert_true(os_commit(part(0, 5)));
    for (unsigned i = 0; i < ARRAY_COUNT(calls); i++) {
        snprintf(line, sizeof line, "fake kernel: %s", calls[i].complaint);
        expect_abort(calls[i].call, line);
    }
    fake_fail_all(true); /* the impossible is impossible on a bad day too */
    expect_abort(purge_the_reserved, "fake kernel: a purge of memory");
    expect_abort(move_to_the_reserved, "fake kernel: a move to memory");
}

/* ---- time and threads ---- */

static unsigned bodies_run, sleeps;
static const uint32_t word_of_sleep = 0;

static void count_sleep(void) { sleeps++; }

static void *sleep_twice(void *unused)
{
    bodies_run++;
    assert_false(os_thread_start(sleep_twice)); /* one at a time */
    os_sleep(&word_of_sleep, 0, 500);
    os_sleep(&word_of_sleep, 0, 700);
    os_sleep(&word_of_sleep, 1, 900); /* the word has changed: no sleep */
    return unused;
}

static void the_clock_and_the_thread_wait_for_the_test(void **state)
{
    uint64_t start = os_now_ms();

    (void)state;
    assert_int_equal(os_now_ms(), start);
    fake_clock_ms(30);
    assert_int_equal(os_now_ms(), start + 30);
    fake_on_sleep(count_sleep);
    assert_false(fake_thread_run());
    assert_true(os_thread_start(sleep_twice));
    assert_false(os_thread_start(sleep_twice));
    assert_true(fake_thread_waits());
    assert_int_equal(bodies_run, 0);
    assert_true(fake_thread_run());
    assert_int_equal(bodies_run, 1);
    assert_int_equal(sleeps, 2);
    assert_int_equal(os_now_ms(), start + 30 + 1200);
    assert_false(fake_thread_waits());
    fake_thread_allow(false);
    assert_false(os_thread_start(sleep_twice));
}

static void errno_is_kept_by_all(void **state)
{
    (void)state;
    errno = 4711;
    fake_reserve_bytes_max(20 * PAGE);
    reserve_ten();
    (void)os_reserve(100 * PAGE, PAGE);
    assert_true(os_commit(part(0, 10)));
    assert_true(os_purge(part(0, 1)));
    assert_true(os_move(part(0, 1), part(1, 1)));
    os_release(range);
    port_wait(&word_of_sleep, 1);
    port_wake((uint32_t *)(uintptr_t)&word_of_sleep, 1);
    port_write_error("", 0);
    assert_int_equal(errno, 4711);
}

UNIT_MAIN(UNIT_TEST(reserved_memory_cannot_be_touched), UNIT_TEST(committed_memory_reads_as_zero),
          UNIT_TEST(alignments_are_kept), UNIT_TEST(pages_may_be_larger),
          UNIT_TEST(purging_leaves_zeros_or_what_was_asked_for), UNIT_TEST(closing_undoes_a_commit),
          UNIT_TEST(moving_leaves_zeros), UNIT_TEST(the_nth_call_fails_once),
          UNIT_TEST(calls_fail_in_a_row), UNIT_TEST(kinds_fail_until_they_are_let_go),
          UNIT_TEST(limits_are_limits), UNIT_TEST(impossible_calls_abort),
          UNIT_TEST(the_clock_and_the_thread_wait_for_the_test), UNIT_TEST(errno_is_kept_by_all))
