/* purge_test.c - when free pages go back to the kernel, how many, and if it refuses. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "purges.h"

#include <pthread.h>

/* ---- one thread: the budget ---- */

static void what_the_budget_keeps_stays(void **state)
{
    (void)state;
    start_small();
    for (unsigned i = 0; i < 50; i++) breathe_within_budget(pages_of_bytes(PURGE_KEEP_BYTES));
    assert_int_equal(fake_calls(FAKE_PURGE), 0);
    assert_int_equal(dirty_pages(), pages_of_bytes(PURGE_KEEP_BYTES));
}

/* So little stays by any budget; where nothing may stay somebody looks at all of it. */
static void nobody_looks_at_what_any_budget_keeps(void **state)
{
    (void)state;
    start_small();
    purge_obey_options();
    assert_true(purge_is_within_budget());
    run_return(lease(pages_of_bytes(PURGE_KEEP_BYTES)));
    assert_false(page_heaps_past_trigger);
    assert_int_equal(purge[0].peak_pages, 0);
    run_return(lease(pages_of_bytes(PURGE_KEEP_BYTES) + 1));
    assert_true(page_heaps_past_trigger);
    purge_keep_none(true);
    run_return(lease(1));
    assert_true(page_heaps_past_trigger);
    assert_false(purge_is_within_budget());
}

static void what_exceeds_the_budget_goes_at_once(void **state)
{
    size_t pages;
    uint32_t page;

    (void)state;
    start_small();
    pages = burst_pages();
    breathe_within_budget(pages);
    assert_true(fake_calls(FAKE_PURGE) > 0);
    assert_int_equal(dirty_pages(), kept_of(pages));
    assert_int_equal(purge[0].purged_pages, pages - dirty_pages());
    assert_int_equal(purge[0].calls, fake_calls(FAKE_PURGE));
    assert_int_equal(fake_purged_bytes(), bytes_of(purge[0].purged_pages));
    page = lease(pages - dirty_pages()); /* the whole clean run */
    assert_true(all_bytes_are(page_address(page), 0, bytes_of(pages - dirty_pages())));
}

/* What is in use entitles to a share of it that may lie free beside it. */
static void the_budget_grows_with_what_is_used(void **state)
{
    size_t pages;

    (void)state;
    start_small();
    pages = burst_pages();
    (void)lease(pages * 4);
    breathe_within_budget(pages);
    assert_int_equal(dirty_pages(), kept_of(pages * 5) + pages * 4 / PURGE_USED_SHARE);
}

/* A peak of long ago entitles to nothing. */
static void a_peak_is_forgotten(void **state)
{
    (void)state;
    start_small();
    breathe_within_budget(16 * burst_pages());
    assert_int_equal(dirty_pages(), kept_of(16 * burst_pages()));
    for (unsigned i = 0; i < 20; i++) {
        fake_clock_ms(10000);
        breathe_within_budget(burst_pages());
    }
    assert_in_range(dirty_pages(), kept_of(burst_pages()), kept_of(2 * burst_pages()));
}

/* Runs shorter than a huge page stay as long as that does not double what is kept. */
static void huge_pages_are_not_broken_for_little(void **state)
{
    enum { SHORT_RUNS = 400 };
    static uint32_t page[SHORT_RUNS];
    size_t pages, budget, most = 0;

    (void)state;
    need_huge_pages();
    start_pages();
    pages = pages_of_bytes(64 * KiB);
    for (unsigned i = 0; i < SHORT_RUNS; i++) page[i] = between_used(pages);
    assert_true(huge.wanted);
    for (unsigned i = 0; i < SHORT_RUNS; i++) {
        run_return(page[i]);
        if (!purge_is_within_budget()) purge_beyond_budget();
        budget =
            kept_of(SHORT_RUNS * (pages + 2)) + page_heap_used_pages(page_heap) / PURGE_USED_SHARE;
        most = max_size(most, dirty_pages() * 100 / budget);
    }
    check_runs();
    assert_in_range(most, 180, 250);
    assert_true(fake_calls(FAKE_PURGE) > 0);
}

/* ---- one thread: what is put off ---- */

/* What is left to somebody else is not looked at again before much more is dirty; where nothing may
 * stay, it is. */
static void put_off_with(const char *options, bool is_put_off)
{
    uint32_t another;

    options_parse(options, "MALLOC_CONF");
    start_small();
    another = between_used(4 * burst_pages());
    run_return(between_used(burst_pages()));
    assert_false(purge_is_within_budget());
    purge_raise_triggers();
    page_heaps_past_trigger = 1; /* as at a return to it */
    assert_int_equal(purge_is_within_live_budget(), is_put_off);
    run_return(another);
    assert_false(purge_is_within_budget());
}

static void put_off(void) { put_off_with("", true); }
static void put_off_for_no_time(void) { put_off_with("dirty_decay_ms:0", false); }

static void what_is_put_off_is_looked_at_later(void **state)
{
    (void)state;
    expect_survival(put_off);
    expect_survival(put_off_for_no_time);
}

/* ---- refusals and short runs ---- */

/* It is not asked again at each free, and asked again when there is more. */
static void a_refused_purge_keeps_the_pages_dirty(void **state)
{
    uint32_t page;
    size_t pages;

    (void)state;
    start_small();
    pages = burst_pages() / 4; /* three times that fits into one region */
    fake_fail_kind(FAKE_PURGE, true);
    breathe_within_budget(pages);
    assert_int_equal(dirty_pages(), pages);
    assert_int_equal(purge[0].purged_pages, 0);
    assert_true(fake_calls(FAKE_PURGE) <= inside_purge_refused_calls_max);
    assert_int_equal(purge_all(), 0);
    page = lease(pages);
    assert_true(all_bytes_are(page_address(page), 1, bytes_of(pages)));
    run_return(page);
    for (unsigned i = 0; i < 100; i++) breathe_within_budget(pages - 1);
    assert_true(fake_calls(FAKE_PURGE)
                <= 2 * inside_purge_refused_calls_max); /* one of them for who asked for all */
    breathe_within_budget(2 * pages);
    assert_true(fake_calls(FAKE_PURGE) <= 3 * inside_purge_refused_calls_max);
    assert_int_equal(dirty_pages(), 2 * pages);
    fake_fail_kind(FAKE_PURGE, false);
    breathe_within_budget(3 * pages);
    assert_int_equal(dirty_pages(), kept_of(3 * pages));
    breathe_within_budget(pages); /* and it is asked each time again */
    assert_in_range(dirty_pages(), 0,
                    kept_of(3 * pages) * 3 / 2 + pages_of_bytes(PURGE_UNATTENDED_BYTES));
}

/* Nor by those that ask for more than the budget, at each free, nor in the background. */
static void a_refusal_counts_where_nothing_may_stay(void **state)
{
    (void)state;
    options_parse("dirty_decay_ms:0", "MALLOC_CONF");
    start_attended();
    fake_fail_kind(FAKE_PURGE, true);
    for (unsigned i = 0; i < 100; i++) breathe_within_budget(burst_pages());
    assert_true(fake_calls(FAKE_PURGE) <= inside_purge_refused_calls_max);
    assert_false(purge_needs_background());
    fake_fail_kind(FAKE_PURGE, false);
    breathe_within_budget(2 * burst_pages());
    assert_int_equal(dirty_pages(), 0);
}

/* What is refused fills the budget for good, and each return of a longer run goes beyond it. */
static void what_is_refused_is_not_asked_for_at_each_return(void **state)
{
    enum { LOCKED = 16 };
    uint32_t locked[LOCKED];
    size_t pages;
    uint64_t calls;

    (void)state;
    start_small();
    pages = burst_pages() / 4 / LOCKED; /* so that all of them lie in one region */
    for (unsigned i = 0; i < LOCKED; i++) locked[i] = between_used(pages);
    fake_lock_memory(page_address(locked[0]), bytes_of(locked[LOCKED - 1] - locked[0] + pages));
    for (unsigned i = 0; i < LOCKED; i++) run_return(locked[i]);
    breathe_within_budget(pages + 1);
    assert_int_equal(purge[0].purged_pages, pages + 1);
    assert_int_equal(dirty_pages(), LOCKED * pages);
    calls = fake_calls(FAKE_PURGE);
    for (unsigned i = 0; i < 10; i++) breathe_within_budget(pages + 1);
    assert_int_equal(fake_calls(FAKE_PURGE), calls);
}

/* One that was is no reason to ask less often, once the kernel takes what it is asked to. */
static void a_refusal_raises_no_trigger_that_is_fixed(void **state)
{
    (void)state;
    options_parse("oversize_threshold:1073741824", "MALLOC_CONF");
    start_small();
    run_return(lease_written(burst_pages()));
    fake_fail_kind(FAKE_PURGE, true);
    purge_beyond_budget();
    assert_int_equal(dirty_pages(), burst_pages());
    fake_fail_kind(FAKE_PURGE, false);
    purge_obey_options();
    purge_beyond_budget();
    assert_int_equal(dirty_pages(), kept_of(burst_pages()));
    assert_int_equal(page_heap->trigger_pages, 0);
}

/* The end of the longest run cannot go: the program locked it in memory. The others go past it. */
static void what_is_refused_does_not_keep_others_from_going(void **state)
{
    uint32_t longest, others[8];
    size_t locked, bytes;

    (void)state;
    start_small();
    longest = between_used(4 * burst_pages());
    bytes = bytes_of(4 * burst_pages());
    for (unsigned i = 0; i < 8; i++) others[i] = between_used(burst_pages());
    run_return(longest);
    for (unsigned i = 0; i < 8; i++) run_return(others[i]);
    locked = bytes / 4;
    fake_lock_memory(page_address(longest) + bytes - locked, locked);
    assert_int_equal(purge_all(), bytes_of(12 * burst_pages()) - locked);
    assert_int_equal(bytes_of(dirty_pages()), locked);
    assert_int_equal(purge[0].calls, fake_calls(FAKE_PURGE));
    check_runs();
}

enum { LOCKED_RUNS = 6 };

/* Runs of a burst each, and a shorter one, which is returned. */
static uint32_t return_runs(uint32_t *runs, unsigned count)
{
    uint32_t shorter = between_used(burst_pages() / 2);

    for (unsigned i = 0; i < count; i++) runs[i] = between_used(burst_pages());
    for (unsigned i = 0; i < count; i++) run_return(runs[i]);
    run_return(shorter);
    return shorter;
}

/* However many of the longest runs have one, at either end or in the middle. */
static void a_locked_page_keeps_little_more_than_itself(void **state)
{
    uint32_t runs[LOCKED_RUNS], shorter, locked;

    (void)state;
    start_small();
    shorter = return_runs(runs, LOCKED_RUNS);
    for (uint32_t i = 0; i < LOCKED_RUNS; i++) {
        locked = runs[i] + i * (uint32_t)(burst_pages() - 1) / (LOCKED_RUNS - 1);
        fake_lock_memory(page_address(locked), page_bytes());
    }
    assert_true(purge_all() > 0);
    expect_run(shorter, burst_pages() / 2, PAGE_CLEAN);
    assert_in_range(bytes_of(dirty_pages()), LOCKED_RUNS * page_bytes(), LOCKED_RUNS * 128 * KiB);
    assert_true(fake_calls(FAKE_PURGE) < 50 * LOCKED_RUNS);
    check_runs();
}

/* Where there are huge pages it is the one that it lies in, and less than one more. */
static void a_locked_page_breaks_no_huge_page(void **state)
{
    size_t pages, unit;
    uint32_t run;

    (void)state;
    need_huge_pages();
    huge.policy = HUGE_ALWAYS; /* also when a few short runs have gone back */
    start_pages();
    pages = burst_pages();
    unit = pages_of_huge_page();
    run = between_used(pages);
    assert_true(huge.wanted);
    run_return(run);
    fake_lock_memory(page_address(run) + bytes_of(pages / 3), page_bytes());
    assert_true(purge_all() > 0);
    assert_in_range(dirty_pages(), min_size(unit, pages / 4), 2 * unit);
    check_runs();
}

/* Runs that are all locked are passed by, also those that are several times what is cut off at
 * once. */
static void locked_runs_do_not_keep_shorter_ones_from_going(void **state)
{
    uint32_t longest, runs[2], shorter;

    (void)state;
    start_small();
    longest = between_used(4 * burst_pages());
    fake_lock_memory(page_address(longest), bytes_of(4 * burst_pages()));
    shorter = return_runs(runs, 2);
    run_return(longest);
    fake_lock_memory(page_address(runs[0]), bytes_of(burst_pages()));
    assert_int_equal(purge_all(), bytes_of(burst_pages() + burst_pages() / 2));
    expect_run(shorter, burst_pages() / 2, PAGE_CLEAN);
    assert_int_equal(dirty_pages(), 5 * burst_pages());
    check_runs();
}

static void who_asks_for_all_gets_what_was_dirty_then(void **state)
{
    enum { DIRTY_RUNS = 8 };
    uint32_t runs[DIRTY_RUNS];

    (void)state;
    start_small();
    for (; late_count < LATE_RUNS; late_count++) late[late_count] = between_used(1);
    for (unsigned i = 0; i < DIRTY_RUNS; i++) runs[i] = between_used(4);
    for (unsigned i = 0; i < DIRTY_RUNS; i++) run_return(runs[i]);
    fake_on_call(return_another);
    assert_int_equal(purge_all(), bytes_of(DIRTY_RUNS * 4));
    assert_true(fake_calls(FAKE_PURGE) <= DIRTY_RUNS * 4);
    assert_true(late_count > 0);
    check_runs();
}

/* As another thread would, which found too much as well. */
static void purge_at_once(enum fake_call kind)
{
    if (kind != FAKE_PURGE) return;
    fake_beside_call(NULL);
    purge_beyond_budget();
}

static void two_that_purge_at_once_leave_the_budget(void **state)
{
    enum { DIRTY_RUNS = 8 };
    uint32_t runs[DIRTY_RUNS];
    size_t kept;

    (void)state;
    start_small();
    for (unsigned i = 0; i < DIRTY_RUNS; i++) runs[i] = between_used(burst_pages());
    for (unsigned i = 0; i < DIRTY_RUNS; i++) run_return(runs[i]);
    kept = kept_of(DIRTY_RUNS * burst_pages());
    fake_beside_call(purge_at_once);
    purge_beyond_budget();
    assert_in_range(dirty_pages(), kept, 2 * kept);
    check_runs();
}

/* However many could be asked for: a round is given up after so many refusals. */
static void a_kernel_that_takes_nothing_is_asked_a_few_times(void **state)
{
    uint32_t runs[20];

    (void)state;
    start_small();
    for (unsigned i = 0; i < 20; i++) runs[i] = between_used(burst_pages());
    fake_fail_kind(FAKE_PURGE, true);
    for (unsigned i = 0; i < 20; i++) run_return(runs[i]);
    assert_int_equal(purge_all(), 0);
    assert_in_range(fake_calls(FAKE_PURGE), 1, inside_purge_refused_calls_max * PAGE_HEAPS);
    assert_int_equal(purge[0].purged_pages, 0);
    check_runs();
}

/* Memory in use adds to what may stay, and is less after each return: a look at it lasts. */
static void a_look_lasts_until_most_of_the_room_is_taken(void **state)
{
    enum { RETURNS = 200 };
    uint32_t run[RETURNS];
    uint64_t taken;

    (void)state;
    start_small();
    (void)lease(32 * burst_pages());
    for (unsigned i = 0; i < RETURNS; i++) run[i] = between_used(pages_of_bytes(PURGE_KEEP_BYTES));
    taken = page_heap->lock.taken;
    for (unsigned i = 0; i < RETURNS; i++) {
        run_return(run[i]);
        assert_true(purge_is_within_budget());
    }
    assert_in_range(page_heap->lock.taken - taken, RETURNS + 1, RETURNS + RETURNS / 10);
    check_runs();
}

/* Whatever goes out of use meanwhile, so much may stay: up to there nobody looks again. */
static void a_look_lasts_for_what_may_stay_of_any_budget(void **state)
{
    size_t most;
    uint32_t first, rest, beyond;
    uint64_t taken;

    (void)state;
    start_small();
    most = pages_of_bytes(PURGE_KEEP_BYTES + PURGE_KEEP_BYTES / 2);
    first = between_used(1);
    rest = between_used(most - 1);
    beyond = between_used(1);
    run_return(first);
    assert_true(purge_is_within_budget());
    taken = page_heap->lock.taken;
    run_return(rest);
    assert_int_equal(dirty_pages(), most);
    assert_true(purge_is_within_budget());
    assert_int_equal(page_heap->lock.taken, taken + 1);
    run_return(beyond);
    assert_false(purge_is_within_budget());
}

/* ---- several threads ---- */

enum { RACE_LARGE_MIN = 64 * 1024 * 1024, RACE_SMALL = 300 * 1024, RACE_ROUNDS = 40000 };

static bool race_is_over; /* atomic */

static void *swing_large(void *unused)
{
    (void)unused;
    while (!RELAXED_LOAD(race_is_over)) {
        run_return(run_lease(pages_of_bytes(RACE_LARGE_MIN), 1, PAGE_LARGE).page);
        (void)purge_is_within_budget();
    }
    return NULL;
}

/* What nobody need think of is never more than may stay, whatever others lease meanwhile. */
static void the_alarm_is_within_the_budget_while_others_lease(void **state)
{
    pthread_t thread;
    size_t most;

    (void)state;
    start_small();
    run_return(lease(2 * pages_of_bytes(RACE_LARGE_MIN)));
    most = 2 * (kept_of(page_heap->free_pages[FREE_DIRTY]) + space.open_bytes / page_bytes() / 8);
    assert_int_equal(pthread_create(&thread, NULL, swing_large, NULL), 0);
    for (unsigned i = 0; i < RACE_ROUNDS; i++) {
        run_return(run_lease(pages_of_bytes(RACE_SMALL), 1, PAGE_LARGE).page);
        (void)purge_is_within_live_budget();
        if (RELAXED_LOAD(page_heap->trigger_pages) > most) break;
    }
    RELAXED_STORE(race_is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_in_range(page_heap->trigger_pages, 0, most);
}

/* A call costs more than a short run is worth: long ones go first, short ones if those do not
 * do. */
static void short_runs_go_last(void **state)
{
    enum { SHORT_RUNS = 20 };
    size_t pages, budget, kept;
    uint32_t page[SHORT_RUNS];

    (void)state;
    start_small();
    pages = pages_of_bytes(64 * KiB) - 1;
    for (unsigned i = 0; i < SHORT_RUNS; i++) page[i] = between_used(pages);
    for (unsigned i = 0; i < SHORT_RUNS; i++) run_return(page[i]);
    kept = SHORT_RUNS * pages;
    return_within_budget(between_used(burst_pages()));
    budget = kept_of(page_heap_used_pages(page_heap) + kept + burst_pages())
           + page_heap_used_pages(page_heap) / PURGE_USED_SHARE;
    assert_int_equal(dirty_pages(), budget);
    for (unsigned i = 0; i < SHORT_RUNS && kept <= budget; i++)
        expect_run(page[i], pages, PAGE_DIRTY);
    kept = dirty_pages();
    assert_int_equal(purge_all(), bytes_of(kept)); /* somebody asks for all */
    assert_int_equal(dirty_pages(), 0);
    assert_int_equal(purge_all(), 0);
    check_runs();
}

/* All that is free lies in short runs: still no more is kept than the budget allows. */
static void short_runs_go_when_there_are_no_others(void **state)
{
    enum { SHORT_RUNS = 2000 };
    static uint32_t page[SHORT_RUNS];
    size_t budget, pages;

    (void)state;
    start_small();
    pages = pages_of_bytes(64 * KiB) / 2;
    for (unsigned i = 0; i < SHORT_RUNS; i++) page[i] = between_used(pages);
    for (unsigned i = 0; i < SHORT_RUNS; i++) {
        run_return(page[i]);
        if (!purge_is_within_budget()) purge_beyond_budget();
        budget =
            kept_of(SHORT_RUNS * (pages + 2)) + page_heap_used_pages(page_heap) / PURGE_USED_SHARE;
        budget += budget / 2;
        assert_true(dirty_pages() <= budget);
    }
    check_runs();
    assert_true(fake_calls(FAKE_PURGE) > 0);
}

static void look_for_locks(enum fake_call kind)
{
    if (kind == FAKE_PURGE) require(!lock_is_mine(&page_heap->lock));
}

static void large_purges_go_in_parts_without_the_lock(void **state)
{
    (void)state;
    start_small();
    fake_on_call(look_for_locks);
    breathe_within_budget(pages_of_bytes(200 * MiB));
    assert_true(fake_calls(FAKE_PURGE) >= 200 / 32);
    assert_int_equal(dirty_pages(), kept_of(pages_of_bytes(200 * MiB)));
}

/* ---- what nobody needed ---- */

static void half_of_what_nobody_needed_goes(void **state)
{
    size_t dirty;

    (void)state;
    start_small();
    run_return(lease(burst_pages()));
    dirty = dirty_pages();
    purge_begin_unneeded();
    for (unsigned look = 0; look < 20; look++) {
        size_t gone = purge_unneeded(NULL), half = (dirty + 1) / 2;
        if (dirty < pages_of_bytes(64 * KiB)) assert_int_equal(gone, 0);
        else assert_in_range(gone, half, max_size(half, pages_of_bytes(64 * KiB)));
        dirty -= gone;
        assert_int_equal(dirty_pages(), dirty);
        check_runs();
    }
    assert_true(dirty < pages_of_bytes(64 * KiB));
}

/* Where nothing is ever to go back, this does not either; where all is to go at once, what could
 * not goes now. */
static void what_nobody_needed_goes_by_the_options(void **state)
{
    (void)state;
    start_small();
    run_return(lease(burst_pages()));
    options_parse("dirty_decay_ms:-1", "MALLOC_CONF");
    purge_begin_unneeded();
    assert_int_equal(purge_unneeded(NULL), 0);
    purge_beyond_budget(); /* as before a fork */
    assert_true(dirty_pages() >= burst_pages());
    options_parse("dirty_decay_ms:0", "MALLOC_CONF");
    purge_begin_unneeded();
    assert_true(purge_unneeded(NULL) >= burst_pages() / 2);
    check_runs();
}

/* Pages that were leased since the last look were needed, and stay when they come back. */
static void what_was_needed_meanwhile_stays(void **state)
{
    size_t part, dirty;

    (void)state;
    start_small();
    run_return(lease(burst_pages()));
    part = burst_pages() / 4;
    purge_begin_unneeded();
    run_return(lease(burst_pages()));
    assert_int_equal(purge_unneeded(NULL), 0);
    run_return(lease(3 * part));
    assert_int_equal(purge_unneeded(NULL), (part + 1) / 2);
    dirty = dirty_pages();
    assert_int_equal(purge_unneeded(NULL), (dirty + 1) / 2);
    check_runs();
}

/* What was free before has gone; as much came back later. */
static void what_came_back_after_a_purge_is_not_unneeded(void **state)
{
    uint32_t first, second;

    (void)state;
    start_attended();
    first = between_used(burst_pages());
    second = between_used(burst_pages());
    run_return(first);
    purge_begin_unneeded();
    (void)purge_all();
    run_return(second);
    assert_int_equal(purge_unneeded(NULL), 0);
    assert_int_equal(dirty_pages(), burst_pages());
    assert_int_equal(purge_unneeded(NULL), burst_pages() / 2);
}

static void a_refused_purge_of_the_unneeded_is_no_purge(void **state)
{
    (void)state;
    start_small();
    run_return(lease(burst_pages()));
    purge_begin_unneeded();
    fake_fail_kind(FAKE_PURGE, true);
    assert_int_equal(purge_unneeded(NULL), 0);
    assert_int_equal(dirty_pages(), burst_pages());
    check_runs();
}

UNIT_MAIN(UNIT_TEST(what_the_budget_keeps_stays), UNIT_TEST(nobody_looks_at_what_any_budget_keeps),
          UNIT_TEST(what_exceeds_the_budget_goes_at_once),
          UNIT_TEST(the_budget_grows_with_what_is_used), UNIT_TEST(a_peak_is_forgotten),
          UNIT_TEST(huge_pages_are_not_broken_for_little),
          UNIT_TEST(what_is_put_off_is_looked_at_later),
          UNIT_TEST(a_refused_purge_keeps_the_pages_dirty),
          UNIT_TEST(a_refusal_counts_where_nothing_may_stay),
          UNIT_TEST(what_is_refused_is_not_asked_for_at_each_return),
          UNIT_TEST(a_refusal_raises_no_trigger_that_is_fixed),
          UNIT_TEST(two_that_purge_at_once_leave_the_budget),
          UNIT_TEST(what_is_refused_does_not_keep_others_from_going),
          UNIT_TEST(a_kernel_that_takes_nothing_is_asked_a_few_times),
          UNIT_TEST(a_locked_page_keeps_little_more_than_itself),
          UNIT_TEST(a_locked_page_breaks_no_huge_page),
          UNIT_TEST(locked_runs_do_not_keep_shorter_ones_from_going),
          UNIT_TEST(who_asks_for_all_gets_what_was_dirty_then),
          UNIT_TEST(a_look_lasts_until_most_of_the_room_is_taken),
          UNIT_TEST(a_look_lasts_for_what_may_stay_of_any_budget),
          UNIT_TEST(the_alarm_is_within_the_budget_while_others_lease),
          UNIT_TEST(short_runs_go_last), UNIT_TEST(short_runs_go_when_there_are_no_others),
          UNIT_TEST(large_purges_go_in_parts_without_the_lock),
          UNIT_TEST(half_of_what_nobody_needed_goes),
          UNIT_TEST(what_nobody_needed_goes_by_the_options),
          UNIT_TEST(what_was_needed_meanwhile_stays),
          UNIT_TEST(a_refused_purge_of_the_unneeded_is_no_purge),
          UNIT_TEST(what_came_back_after_a_purge_is_not_unneeded))
