/* page_heaps_test.c - several page heaps: who leases from which, under which lock, and what counts
 * for all of them together. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "harms.h"
#include "page_heaps.h"
#include "threads.h"

/* Clean pages that an arena leases until somebody looks how quick the kernel finds huge ones. */
static size_t leased_until_timed(unsigned arena_index)
{
    uint64_t timed = fake_calls(FAKE_FIRST_TOUCH);
    size_t leased = 0;

    for (; fake_calls(FAKE_FIRST_TOUCH) == timed; leased += pages_of_huge_page())
        assert_int_not_equal(lease_of(arena_index, pages_of_huge_page(), PAGE_LARGE), 0);
    return leased;
}

/* Slow huge pages are slow for all: each waits as long, from when it grows next. What it waited for
 * before does not count. */
static void all_wait_for_late_huge_pages(void **state)
{
    size_t wait;

    (void)state;
    need_huge_pages();
    start_heaps();
    fake_first_touch_us(HUGE_SLOW_US + 1);
    (void)leased_until_timed(0);
    assert_int_not_equal(lease_of(1, 1, PAGE_LARGE), 0); /* it waits, too */
    for (unsigned i = 0; i < 3; i++) (void)leased_until_timed(0);
    assert_int_equal(huge.backoff, 4);
    wait = HUGE_FROM_BYTES >> space.page_shift << huge.backoff;
    assert_in_range(leased_until_timed(1), wait, wait + 2 * pages_of_huge_page());
    assert_int_equal(huge.backoff, 5);
}

/* Every thread looks for a peak at each of its slow calls. */
static void peaks_are_looked_for_without_a_lock(void **state)
{
    uint64_t taken[PAGE_HEAPS];
    size_t peak;

    (void)state;
    start_heaps();
    (void)lease_from(0, RUN_PAGES);
    profile_set_gdump(true);
    peak = profile.peak_bytes;
    give_back(lease_from(1, RUN_PAGES));
    for (unsigned i = 0; i < PAGE_HEAPS; i++) taken[i] = page_heap[i].lock.taken;
    profile_poll();
    for (unsigned i = 0; i < PAGE_HEAPS; i++) assert_int_equal(page_heap[i].lock.taken, taken[i]);
    assert_int_equal(profile.peak_bytes, peak + bytes_of(RUN_PAGES)); /* they are dirty */
}

/* Free runs of two arenas, and no other lock is taken than that of their page heap. */
static void two_arenas_share_no_lock(void **state)
{
    uint64_t taken[PAGE_HEAPS], of_space;
    uint32_t page[PAGE_HEAPS];

    (void)state;
    start_heaps();
    for (unsigned i = 0; i < PAGE_HEAPS; i++) page[i] = lease_from(i, RUN_PAGES);
    for (unsigned i = 0; i < PAGE_HEAPS; i++) give_back(page[i]);
    for (unsigned i = 0; i < PAGE_HEAPS; i++) taken[i] = page_heap[i].lock.taken;
    of_space = space.lock.taken;
    for (unsigned i = 0; i < 100; i++) {
        run_return(lease_of(1, RUN_PAGES, PAGE_LARGE));
        run_return(lease_of(1, 3, PAGE_USED));
        run_return(lease_of(6, RUN_PAGES, PAGE_LARGE));
    }
    assert_int_equal(page_heap[0].lock.taken, taken[0]);
    assert_int_equal(page_heap[1].lock.taken, taken[1] + 400);
    assert_int_equal(page_heap[2].lock.taken, taken[2] + 200);
    assert_int_equal(page_heap[3].lock.taken, taken[3]);
    assert_int_equal(space.lock.taken, of_space);
}

/* The region opens for one, the other, and again: all is returned, and each has its own. */
static void no_run_reaches_over_a_seam(void **state)
{
    uint32_t page[RUN_COUNT];
    size_t pages, open[PAGE_HEAPS];
    unsigned seams = 0;

    (void)state;
    start_heaps();
    for (unsigned i = 0; i < RUN_COUNT; i++) {
        pages = page_heap[i % 3].free_pages[FREE_CLEAN] + RUN_PAGES;
        page[i] = lease_from(i % 3, pages);
        assert_ptr_equal(page_heap_of(page[i]), &page_heap[i % 3]);
    }
    for (unsigned i = 0; i < PAGE_HEAPS; i++) open[i] = page_heap[i].open_pages;
    for (unsigned i = RUN_COUNT; i-- > 0;) give_back(page[i]);
    for (unsigned i = 0; i < RUN_COUNT; i++)
        seams += page_record(page[i] - 1)->bin_index == PAGE_SEAM;
    assert_true(seams >= RUN_COUNT - 3);
    for (unsigned i = 0; i < PAGE_HEAPS; i++) {
        assert_int_equal(page_heap[i].open_pages, open[i]);
        assert_int_equal(page_heap_used_pages(&page_heap[i]), 0);
    }
}

static uint32_t given[PAGE_HEAPS];
static void *give_one(void *unused)
{
    run_return(given[0]);
    return unused;
}
static void *give_others(void *unused)
{
    run_return_batch(given + 1, 2);
    return unused;
}

/* Whoever gives a run back, alone or in a batch, it goes where it came from. */
static void runs_come_home(void **state)
{
    (void)state;
    start_heaps();
    for (unsigned i = 0; i < 3; i++) given[i] = lease_from(i + 1, RUN_PAGES);
    run_thread(give_one, NULL);
    check_runs();
    assert_int_equal(page_heap[1].free_pages[FREE_DIRTY], RUN_PAGES);
    run_thread(give_others, NULL);
    check_runs();
    assert_int_equal(page_heap[0].open_pages, 0);
    for (unsigned i = 1; i < PAGE_HEAPS; i++)
        assert_int_equal(page_heap[i].free_pages[FREE_DIRTY], RUN_PAGES);
}

/* As many as arenas, rounded down, each from its first arena on; and none goes. */
static void there_are_as_many_as_arenas(void **state)
{
    static const struct {
        uint8_t arena_index, arena_count, number, count;
    } rows[] = { { 0, 1, 0, 1 }, { 1, 1, 0, 1 }, { 0, 2, 0, 1 },  { 1, 2, 1, 2 },
                 { 2, 2, 0, 2 }, { 2, 3, 0, 2 }, { 0, 4, 0, 2 },  { 2, 4, 2, 3 },
                 { 1, 1, 0, 3 }, { 3, 4, 3, 4 }, { 7, 99, 3, 4 }, { 98, 99, 2, 4 } };

    (void)state;
    start_pages();
    assert_int_equal(page_heap_count(), 1);
    for (unsigned i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_ptr_equal(page_heap_for(rows[i].arena_index, rows[i].arena_count),
                         &page_heap[rows[i].number]);
        assert_int_equal(page_heap_count(), rows[i].count);
        check_runs();
    }
    give_back(lease_from(3, RUN_PAGES));
}

/* One that starts while there is a hard limit asks for each clean page, as the others do. */
static void a_limit_holds_for_those_to_come(void **state)
{
    (void)state;
    fake_cores(4);
    assert_true(heap_start());
    limits_set_hard(commit_taken_bytes() + 64 * page_bytes());
    assert_false(page_heap_for(3, 4)->clean_is_free);
    limits_set_hard(0);
    assert_true(page_heap[3].clean_is_free);
    prairie_check_all();
}

/* The page heap of arena 2, while that of 1 has no more than may stay. */
static void bring_one_beyond_its_budget(void)
{
    size_t keep;

    start_heaps();
    keep = pages_for(PURGE_KEEP_BYTES);
    given[0] = lease_from(1, keep / 2);
    given[1] = lease_from(2, 8 * keep);
    run_return(given[0]);
    assert_true(purge_is_within_budget());
    run_return(given[1]);
    check_runs();
    assert_false(purge_is_within_budget());
}

/* What a burst leaves in all of them, in each less than a single one may have. */
static void who_would_come_is_asked_for_all_together(void **state)
{
    size_t pages;

    (void)state;
    start_heaps();
    pages = pages_for(PURGE_KEEP_BYTES) / 2;
    purge_set_on_call(true);
    for (unsigned i = 0; i < PAGE_HEAPS; i++) given[i] = lease_from(i, pages);
    assert_true(purge_is_within_budget());
    for (unsigned i = 0; i < PAGE_HEAPS; i++) run_return(given[i]);
    assert_int_equal(all_dirty(), PAGE_HEAPS * pages);
    assert_false(purge_is_within_budget());
    purge_set_on_call(false);
    assert_true(purge_is_within_budget()); /* nobody would come for so little */
}

/* Each opens a share of what one of them has, not of what all have: or the last of many would open
 * a multiple of what is used. */
static void an_opening_is_a_share_of_what_each_has(void **state)
{
    size_t open, step;

    (void)state;
    huge.policy = HUGE_NEVER;
    start_heaps();
    (void)lease_from(0, pages_for(40 * OPEN_BYTES_MIN));
    open = space.open_bytes;
    (void)lease_from(1, 1);
    step = max_size(OPEN_BYTES_MIN, open / 8 / PAGE_HEAPS);
    assert_in_range(space.open_bytes - open, 1, step);
    assert_true(step < open / 8);
}

/* Each has a budget of its own: one that has more than may stay is purged, the others keep
 * theirs. */
static void each_has_a_budget(void **state)
{
    size_t keep;

    (void)state;
    bring_one_beyond_its_budget();
    keep = pages_for(PURGE_KEEP_BYTES);
    purge_beyond_budget();
    check_runs();
    assert_int_equal(page_heap[1].free_pages[FREE_DIRTY], keep / 2);
    assert_in_range(page_heap[2].free_pages[FREE_DIRTY], 1, keep + 8 * keep / PURGE_PEAK_SHARE);
    assert_int_equal(purge[1].calls, 0);
    assert_true(purge[2].calls > 0);
    assert_true(purge_is_within_budget());
    assert_int_equal(purge_all() >> space.page_shift != 0, true);
    assert_int_equal(all_dirty(), 0);
}

/* Who purges takes no lock of a page heap that has no more than may stay; near a limit of each. */
static void who_purges_passes_by_the_others(void **state)
{
    uint64_t taken;

    (void)state;
    bring_one_beyond_its_budget();
    taken = page_heap[1].lock.taken;
    purge_past_triggers();
    assert_int_equal(page_heap[1].lock.taken, taken);
    assert_true(purge[2].calls > 0);
    check_runs();
    taken = page_heap[1].lock.taken;
    purge_mode.keeps_none = true;
    purge_past_triggers();
    purge_mode.keeps_none = false;
    assert_true(page_heap[1].lock.taken > taken);
    assert_int_equal(all_dirty(), 0);
}

/* A share of what is kept in any case is no part of a page. */
static void each_may_keep_a_page(void **state)
{
    (void)state;
    fake_page_bytes(64 * KiB);
    start_heaps();
    purge_set_on_call(true);
    run_return(lease_from(1, 1));
    assert_int_equal(all_dirty(), 1);
    assert_true(purge_is_within_budget());
    run_return(lease_from(1, 2));
    assert_false(purge_is_within_budget());
}

/* The same where nothing may stay, and each return purges. */
static void who_keeps_nothing_passes_by_the_others(void **state)
{
    uint64_t taken[PAGE_HEAPS], purges;

    (void)state;
    fake_cores(4);
    assert_true(heap_start());
    (void)page_heap_for(PAGE_HEAPS - 1, PAGE_HEAPS);
    decay_thread_count(2);
    options_parse("dirty_decay_ms:0", "MALLOC_CONF");
    purge_obey_options();
    run_return(lease_from(1, RUN_PAGES));
    (void)decay_after_return();
    for (unsigned i = 0; i < PAGE_HEAPS; i++) taken[i] = page_heap[i].lock.taken;
    purges = fake_calls(FAKE_PURGE);
    for (unsigned i = 0; i < 10; i++) {
        run_return(lease_of(1, RUN_PAGES, PAGE_LARGE));
        (void)decay_after_return();
    }
    assert_int_equal(fake_calls(FAKE_PURGE), purges + 10);
    assert_true(page_heap[1].lock.taken > taken[1]);
    for (unsigned i = 0; i < PAGE_HEAPS; i++)
        if (i != 1) assert_int_equal(page_heap[i].lock.taken, taken[i]);
    prairie_check_all();
}

/* Before clean pages are touched, those serve that a phase of the program left dirty elsewhere; but
 * not the few that any page heap keeps, nor what somebody is at. */
static void what_is_left_over_serves_others(void **state)
{
    size_t keep;
    uint32_t page;
    struct run left_over;

    (void)state;
    start_heaps();
    keep = pages_for(PURGE_KEEP_BYTES);
    given[0] = lease_from(1, pages_for(PURGE_UNATTENDED_BYTES));
    give_back(given[0]);
    left_over = run_lease_for(keep + 1, 1, purpose_of(&page_heap[2], PAGE_USED));
    assert_int_equal(left_over.page, given[0]);
    assert_false(left_over.zero);
    assert_ptr_equal(page_heap_of(given[0]), &page_heap[1]);
    page = lease_from(2, 1);
    assert_ptr_equal(page_heap_of(page), &page_heap[2]);
    give_back(page);
    give_back(given[0]);
    lock_take(&page_heap[1].lock);
    page = lease_of(0, keep, PAGE_USED);
    lock_give(&page_heap[1].lock);
    assert_ptr_equal(page_heap_of(page), page_heap);
    check_runs();
}

/* The same where several are leased at once, which open no more of the region. */
static void what_is_left_over_serves_batches(void **state)
{
    enum { COUNT = 2, PAGES = 2 };
    uint32_t leased[2 * COUNT];

    (void)state;
    start_heaps();
    (void)lease_from(2, 1);
    assert_true(page_heap[2].free_pages[FREE_CLEAN] >= 2 * COUNT * PAGES);
    give_back(lease_from(1, pages_for(PURGE_UNATTENDED_BYTES) + 2 * COUNT * PAGES));
    assert_int_equal(run_lease_batch(&page_heap[2], PAGES, COUNT, leased), COUNT);
    check_runs();
    lock_take(&page_heap[1].lock);
    assert_int_equal(run_lease_batch(&page_heap[2], PAGES, COUNT, leased + COUNT), COUNT);
    lock_give(&page_heap[1].lock);
    check_runs();
    for (unsigned i = 0; i < 2 * COUNT; i++)
        assert_ptr_equal(page_heap_of(leased[i]), &page_heap[i < COUNT ? 1 : 2]);
    run_return_batch(leased, 2 * COUNT);
    check_runs();
}

/* What others have in pieces that are too short is found out once for a batch. */
static void a_batch_asks_others_once(void **state)
{
    enum { COUNT = 4, PAGES = 2 };
    static uint32_t single[PURGE_UNATTENDED_BYTES / (4 * KiB) + 1];
    uint32_t leased[COUNT];
    uint64_t taken;

    (void)state;
    start_heaps();
    (void)lease_from(2, 1);
    assert_true(page_heap[2].free_pages[FREE_CLEAN] >= COUNT * PAGES);
    for (unsigned i = 0; i < ARRAY_COUNT(single); i++) {
        single[i] = lease_of(1, 1, PAGE_USED);
        (void)lease_of(1, 1, PAGE_USED);
    }
    for (unsigned i = 0; i < ARRAY_COUNT(single); i++) run_return(single[i]);
    taken = page_heap[1].lock.taken;
    assert_int_equal(run_lease_batch(&page_heap[2], PAGES, COUNT, leased), COUNT);
    assert_int_equal(page_heap[1].lock.taken, taken + 1);
    for (unsigned i = 0; i < COUNT; i++) assert_ptr_equal(page_heap_of(leased[i]), &page_heap[2]);
    check_runs();
}

/* Who looks at the budget sees what was returned to any, and only once. */
static void whoever_looks_sees_all(void **state)
{
    (void)state;
    start_heaps();
    given[0] = lease_from(3, 8 * pages_for(PURGE_KEEP_BYTES));
    run_thread(give_one, NULL);
    assert_true(page_heaps_past_trigger);
    assert_false(purge_is_within_budget());
    assert_false(page_heaps_past_trigger);
    purge_beyond_budget();
    assert_true(all_dirty() <= page_heap[3].trigger_pages);
}

/* Only of those that say so: the others' lines stay where they are (docs/decisions/0044). */
static void whoever_looks_reads_no_other(void **state)
{
    uint64_t taken[PAGE_HEAPS];

    (void)state;
    bring_one_beyond_its_budget();
    for (unsigned i = 1; i < PAGE_HEAPS; i++) page_heap[i].trigger_pages = 0;
    for (unsigned i = 0; i < PAGE_HEAPS; i++) taken[i] = page_heap[i].lock.taken;
    page_heaps_past_trigger = (uint64_t)1 << 2;
    assert_false(purge_is_within_budget());
    assert_int_equal(page_heap[1].lock.taken, taken[1]);
    assert_int_equal(page_heap[2].lock.taken, taken[2] + 1);
    purge_obey_options(); /* all of them say so, but who has less than any budget keeps */
    page_heap[1].trigger_pages = 0;
    assert_int_equal(page_heaps_past_trigger, UINT64_MAX >> (64 - page_heap_count()));
    taken[1] = page_heap[1].lock.taken;
    assert_false(purge_is_within_budget());
    assert_int_equal(page_heap[1].lock.taken, taken[1] + 1);
    assert_int_equal(page_heaps_past_trigger, 0);
}

/* One says so beside another that did. */
static void each_says_so_for_itself(void **state)
{
    size_t pages = 2 * pages_for(PURGE_KEEP_BYTES);
    uint32_t one, other;

    (void)state;
    start_heaps();
    one = lease_from(1, pages);
    other = lease_from(3, pages);
    page_heaps_past_trigger = 0;
    for (unsigned i = 0; i < PAGE_HEAPS; i++) page_heap[i].trigger_pages = pages - 1;
    give_back(one);
    assert_int_equal(page_heaps_past_trigger, 1u << 1);
    give_back(other);
    assert_int_equal(page_heaps_past_trigger, 1u << 1 | 1u << 3);
}

/* A forked child has the runs back that were on their way to the kernel, wherever they belong. */
static void a_child_puts_back_what_was_on_its_way(void **state)
{
    uint32_t page;

    (void)state;
    start_heaps();
    give_back(lease_from(2, RUN_PAGES));
    page = run_take_dirty(&page_heap[2], 1, RUN_PAGES);
    assert_int_not_equal(page, 0);
    take_page_heaps();
    page_heaps_put_back_in_flight();
    page_heaps_check();
    give_page_heaps();
    assert_int_equal(page_heap[2].free_pages[FREE_DIRTY], RUN_PAGES);
    run_put_free(page, PAGE_CLEAN);
    check_runs();
}

/* ---- the walk ---- */

static uint32_t neighbours[2]; /* of page_heap[1], and no seam between them */

static void k4_a_run_of_another_page_heap(void) { page_record(neighbours[1])->bin_index = 2; }
static void k4_two_runs_of_another_page_heap(void)
{
    for (unsigned i = 0; i < 2; i++) page_record(neighbours[i])->bin_index = 2;
}
static void k4_no_seam_any_more(void)
{
    uint32_t page = neighbours[0];

    while (page_record(page)->bin_index != PAGE_SEAM) page--;
    page_record(page)->bin_index = 1;
}

static void broken_invariants_are_found(void **state)
{
    static const struct harm harms[] = {
        HARM(k4_a_run_of_another_page_heap),
        HARM(k4_two_runs_of_another_page_heap),
        HARM(k4_no_seam_any_more),
    };

    (void)state;
    start_heaps();
    (void)lease_from(0, 1);
    (void)lease_from(1, 1);
    for (unsigned i = 0; i < 2; i++) neighbours[i] = lease_from(1, RUN_PAGES);
    expect_harms_found(harms, ARRAY_COUNT(harms), check_runs);
}

UNIT_MAIN(UNIT_TEST(peaks_are_looked_for_without_a_lock), UNIT_TEST(two_arenas_share_no_lock),
          UNIT_TEST(no_run_reaches_over_a_seam), UNIT_TEST(runs_come_home),
          UNIT_TEST(there_are_as_many_as_arenas), UNIT_TEST(a_limit_holds_for_those_to_come),
          UNIT_TEST(who_would_come_is_asked_for_all_together),
          UNIT_TEST(an_opening_is_a_share_of_what_each_has), UNIT_TEST(each_has_a_budget),
          UNIT_TEST(each_may_keep_a_page), UNIT_TEST(who_purges_passes_by_the_others),
          UNIT_TEST(who_keeps_nothing_passes_by_the_others),
          UNIT_TEST(what_is_left_over_serves_others), UNIT_TEST(what_is_left_over_serves_batches),
          UNIT_TEST(a_batch_asks_others_once), UNIT_TEST(whoever_looks_sees_all),
          UNIT_TEST(whoever_looks_reads_no_other), UNIT_TEST(each_says_so_for_itself),
          UNIT_TEST(a_child_puts_back_what_was_on_its_way), UNIT_TEST(broken_invariants_are_found),
          UNIT_TEST(all_wait_for_late_huge_pages))
