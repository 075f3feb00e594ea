/* decay_threads_test.c - in a program with threads a background thread gives memory back. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "breaths.h"

/* The promise: ten seconds after the last free of a burst nine tenths are back with the kernel. */
static void the_background_thread_gives_back_what_nobody_needs(void **state)
{
    uint64_t start;

    (void)state;
    start_threads(2);
    breathe(burst_pages());
    assert_int_equal(fake_calls(FAKE_PURGE), 0); /* not by the thread that freed */
    assert_true(fake_thread_waits());
    fake_on_sleep(note_pages);
    start = os_now_ms();
    assert_true(fake_thread_run());
    check_arenas();
    assert_true(looks > 20);
    assert_true(dirty_at_look[1] <= burst_pages() / 2); /* from the first look on */
    assert_true(dirty_at_look[20] <= burst_pages() / 10);
    for (unsigned i = 1; i < 20; i++) assert_true(dirty_at_look[i] <= dirty_at_look[i - 1]);
    assert_true(os_now_ms() - start < 60 * 1000); /* and then it ends */
}

/* Clean pages beside those that were touched, too, which no budget counts. With one thread they are
 * left to that one, for who looks in the background may not hold two locks then. */
static void what_huge_pages_left_goes_in_the_background(void **state)
{
    (void)state;
    start_threads(2);
    huge.left_behind = true;
    breathe(burst_pages());
    assert_true(huge.left_behind);
    decay_thread_count(1);
    assert_true(fake_thread_run());
    assert_true(huge.left_behind);
    decay_thread_count(2);
    breathe(burst_pages());
    options_parse("dirty_decay_ms:-1", "test");
    assert_true(fake_thread_run());
    assert_true(huge.left_behind);
    options_parse("dirty_decay_ms:10000", "test");
    breathe(burst_pages());
    assert_true(fake_thread_run());
    assert_false(huge.left_behind);
}

/* Or the kernel would fill up behind our back what went back to it. */
static void at_rest_huge_pages_are_no_longer_wanted(void **state)
{
    (void)state;
    need_huge_pages();
    start_threads(2);
    huge.wanted = true;
    huge.short_pages = pages_of_huge_page() - 1;
    assert_true(inside_want_background());
    assert_true(fake_thread_run());
    assert_true(huge.wanted);
    huge.short_pages++;
    assert_true(inside_want_background());
    assert_true(fake_thread_run());
    assert_false(huge.wanted);
    assert_false(huge.left_behind);
}

static void need_everything(void)
{
    uint32_t page = lease(burst_pages());

    note_pages();
    if (looks < 30) run_return(page);
}

/* What a program of much memory may keep while nobody looks: an eighth of it. */
static size_t eighth_pages(void) { return burst_pages() / PURGE_USED_SHARE; }

static void hold_much_and_free_some(void)
{
    (void)lease(burst_pages());
    breathe(eighth_pages());
}

/* Within the budget, but it would stay for ever if nobody came to look. */
static void the_background_thread_is_asked_early(void **state)
{
    (void)state;
    start_threads(2);
    (void)lease(burst_pages());
    breathe(pages_of_bytes(PURGE_KEEP_BYTES));
    assert_int_equal(fake_calls(FAKE_THREAD_START), 0); /* not for a little */
    assert_true(page_heaps_free_now(FREE_DIRTY)
                <= page_heap->trigger_pages); /* and no lock either */
    breathe(eighth_pages());
    assert_true(fake_thread_waits());
    assert_int_equal(dirty_pages(), eighth_pages()); /* it is there for the next breath */
    assert_true(fake_thread_run());
    assert_true(dirty_pages() < pages_of_bytes(PURGE_KEEP_BYTES));
}

static void who_has_no_background_thread_keeps_the_budget(void **state)
{
    (void)state;
    start_threads(1);
    hold_much_and_free_some();
    decay_thread_count(2);
    fake_thread_allow(false);
    for (unsigned i = 0; i < 20; i++) breathe(eighth_pages());
    decay_thread_count(3); /* it is asked again in a second, and until then nothing changes */
    for (unsigned i = 0; i < 20; i++) breathe(eighth_pages());
    assert_int_equal(fake_calls(FAKE_THREAD_START), 1);
    options_parse("helper_thread:false", "PRAIRIE_CONF");
    decay_thread_count(4);
    breathe(eighth_pages());
    assert_int_equal(dirty_pages(), eighth_pages());
    assert_int_equal(fake_calls(FAKE_PURGE), 0);
}

/* The only thread gives back itself what is beyond the budget. */
static void one_thread_asks_nobody_early(void **state)
{
    (void)state;
    start_threads(2);
    decay_thread_count(1);
    hold_much_and_free_some();
    assert_int_equal(fake_calls(FAKE_THREAD_START) + fake_calls(FAKE_PURGE), 0);
}

static void the_background_thread_leaves_what_is_needed(void **state)
{
    (void)state;
    start_threads(2);
    breathe(burst_pages());
    fake_on_sleep(need_everything);
    assert_true(fake_thread_run());
    assert_int_equal(fake_calls(FAKE_PURGE), 0);
    assert_true(looks >= 20);
}

static void the_background_thread_empties_the_depots(void **state)
{
    (void)state;
    start_threads(2);
    fill_depot(5);
    fill_depot(9);
    breathe(burst_pages());
    assert_true(fake_thread_run());
    check_arenas();
    /* What was brought after its last look counts as needed until the next one. */
    breathe(burst_pages());
    assert_true(fake_thread_run());
    assert_int_equal(arenas[0]->bin[5].depot.full.count, 0);
    assert_int_equal(arenas[0]->bin[9].depot.full.count, 0);
    assert_int_equal(page_heap_used_pages(page_heap), 0);
}

/* An empty magazine into the depot, for a full one. */
static unsigned give_empty(unsigned class_index)
{
    void **empty = meta_take(magazine_bytes(magazine_capacity(class_index)));

    fill_depot(class_index);
    lock_take(&arenas[0]->lock);
    empty = depot_take_full(arenas[0], class_index, empty);
    lock_give(&arenas[0]->lock);
    arenas_drain(class_index, empty + 1, magazine_capacity(class_index));
    meta_give(empty, magazine_bytes(magazine_capacity(class_index)));
    return arenas[0]->bin[class_index].depot.empty.count;
}

/* The rest of a magazine that small ones were filled from, and the empty ones that were traded. */
static void the_background_thread_empties_what_was_opened(void **state)
{
    void *slots[SLOTS_MAX];
    struct depot *depot;
    size_t held;

    (void)state;
    start_threads(2);
    depot = &arenas[0]->bin[5].depot;
    fill_depot(5);
    held = commit.record_bytes - magazine_bytes(magazine_capacity(5));
    lock_take(&arenas[0]->lock);
    assert_int_equal(depot_take_some(arenas[0], 5, slots, 1), 1);
    lock_give(&arenas[0]->lock);
    assert_int_equal(give_empty(5), 1);
    arenas_drain(5, slots + 1, 1);
    assert_non_null(depot->opened);
    breathe(burst_pages());
    assert_true(fake_thread_run());
    check_arenas();
    assert_null(depot->opened);
    assert_int_equal(depot->empty.count, 0);
    assert_in_range(commit.record_bytes, 0, held);
    assert_int_equal(page_heap_used_pages(page_heap), 0);
}

static void ask_again(void)
{
    if (++looks == 15) assert_true(inside_want_background());
}

/* Whoever finds it running relies on it. */
static void the_background_thread_stays_while_it_is_asked(void **state)
{
    (void)state;
    start_threads(2);
    assert_true(inside_want_background());
    fake_on_sleep(ask_again);
    assert_true(fake_thread_run());
    assert_int_equal(looks, 15 + inside_quiet_looks_max);
    assert_int_equal(fake_calls(FAKE_THREAD_START), 1);
    assert_true(inside_want_background());
    assert_int_equal(fake_calls(FAKE_THREAD_START), 2);
}

/* Asked between its last look and its end, which looks once more. */
static void the_background_thread_does_not_end_unheard(void **state)
{
    (void)state;
    start_threads(2);
    inside_set_background_runs(true);
    inside_set_background_asked(true);
    assert_false(inside_background_may_end());
    assert_true(inside_background_runs());
    inside_set_background_asked(false);
    assert_true(inside_background_may_end());
    assert_false(inside_background_runs());
}

/* Runs that slabs left behind count as used until the background thread returns them. */
static void the_background_thread_empties_the_stocks(void **state)
{
    (void)state;
    start_threads(2);
    lock_take(&arenas[0]->lock);
    for (unsigned i = 0; i < STOCK_RUNS_MAX; i++)
        stock_put(&arenas[0]->stock[4], run_lease(4, 1, PAGE_USED).page);
    lock_give(&arenas[0]->lock);
    breathe(burst_pages());
    assert_true(fake_thread_run());
    check_arenas();
    assert_int_equal(arenas[0]->stock[4].count, 0);
    assert_int_equal(page_heap_used_pages(page_heap), 0);
}

static void a_background_thread_that_ended_starts_again(void **state)
{
    (void)state;
    start_threads(2);
    for (unsigned i = 1; i <= 3; i++) {
        breathe(burst_pages());
        assert_int_equal(fake_calls(FAKE_THREAD_START), i);
        breathe(burst_pages());
        assert_int_equal(fake_calls(FAKE_THREAD_START), i); /* one is enough */
        assert_true(fake_thread_run());
        assert_false(fake_thread_waits());
    }
}

/* Without a background thread memory must go back too. */
static void a_background_thread_that_is_refused_is_not_needed(void **state)
{
    (void)state;
    start_threads(2);
    fake_thread_allow(false);
    breathe(burst_pages());
    assert_int_equal(fake_calls(FAKE_THREAD_START), 1);
    assert_int_equal(dirty_pages(), burst_pages() / PURGE_PEAK_SHARE);
    assert_false(purge_mode.on_call);
    fake_thread_allow(true);
    fake_clock_ms(10000);
    breathe(burst_pages());
    assert_true(fake_thread_waits());
    assert_true(purge_mode.on_call);
}

/* Near a limit nobody waits for it. */
static void near_a_limit_it_is_not_asked(void **state)
{
    (void)state;
    start_threads(2);
    purge_keep_none(true);
    breathe(burst_pages());
    assert_false(fake_thread_waits());
    assert_int_equal(dirty_pages(), 0);
}

/* What is left to the background thread is not told it again at each return. */
static void it_is_asked_once(void **state)
{
    (void)state;
    start_threads(2);
    (void)lease(1);
    breathe(burst_pages());
    assert_true(fake_thread_waits());
    breathe(burst_pages()); /* the budget is that of a program with one from now on */
    assert_int_equal(fake_calls(FAKE_PURGE), 0);
    run_return(lease(1));
    assert_false(page_heaps_past_trigger);
    options_parse("oversize_threshold:1073741824", "MALLOC_CONF");
    decay_obey_options();
    breathe(burst_pages());
    run_return(lease(1)); /* such a threshold is looked at each time */
    assert_true(page_heaps_past_trigger);
}

/* A program whose threads have ended but for one purges at once again, and the background thread
 * ends when nothing is left to it. */
static void the_last_thread_purges_at_once(void **state)
{
    size_t peak;

    (void)state;
    start_threads(2);
    breathe(burst_pages());
    assert_true(fake_thread_waits());
    assert_int_equal(fake_calls(FAKE_PURGE), 0);
    decay_thread_count(1);
    breathe(2 * burst_pages());
    /* Where a region is too short to add to the first burst, it lies beside the second. */
    peak = (bytes_of(2 * burst_pages()) <= REGION_BYTES_FIRST ? 2 : 3) * burst_pages();
    assert_int_equal(dirty_pages(), peak / PURGE_PEAK_SHARE);
    fake_on_sleep(note_pages);
    assert_true(fake_thread_run());
    assert_true(looks < inside_quiet_looks_max);
    fake_clock_ms(10000);
    breathe(burst_pages()); /* which is not its habit */
    assert_false(fake_thread_waits());
}

/* It gives back first what it was there for, and comes again with the rights of who asks. */
static void rights_given_up_end_it(unsigned threads)
{
    uint64_t start, starts;

    start_threads(threads);
    breathe_often(4);
    assert_true(fake_thread_waits());
    starts = fake_calls(FAKE_THREAD_START);
    fake_rights_part(3);
    start = os_now_ms();
    assert_true(fake_thread_run());
    check_arenas();
    assert_int_equal(os_now_ms() - start, 3 * inside_rights_ms);
    assert_false(inside_background_runs());
    assert_true(dirty_pages() <= plain_budget());
    breathe(burst_pages()); /* not at once, for a thread whose rights nobody else has */
    assert_int_equal(fake_calls(FAKE_THREAD_START), starts);
    assert_true(dirty_pages() <= plain_budget());
    fake_clock_ms(inside_background_refused_ms);
    breathe_often(2);
    assert_true(fake_thread_waits());
}

static void the_background_thread_of_one_thread_ends_with_its_rights(void **state)
{
    (void)state;
    rights_given_up_end_it(1);
}

static void the_background_thread_of_threads_ends_with_its_rights(void **state)
{
    (void)state;
    rights_given_up_end_it(2);
}

/* What another thread leaves to it while it gives way. */
static void leave_a_burst(enum fake_call kind)
{
    if (kind != FAKE_PURGE) return;
    fake_beside_call(NULL);
    breathe(burst_pages());
    assert_true(inside_background_asked());
}

static void what_comes_while_its_rights_end_it_goes_as_well(void **state)
{
    (void)state;
    start_threads(2);
    breathe(burst_pages());
    assert_true(fake_thread_waits());
    fake_rights_part(1);
    fake_beside_call(leave_a_burst);
    assert_true(fake_thread_run());
    assert_false(inside_background_runs());
    assert_false(inside_background_asked());
    assert_true(dirty_pages() <= plain_budget());
    check_arenas();
}

/* Comparing rights often changes nothing of when it looks for memory, or of when it ends. */
static void the_background_thread_keeps_time_while_rights_are_the_same(void **state)
{
    uint64_t start, plain_ms, plain_purges;

    (void)state;
    start_threads(2);
    options_parse("dirty_decay_ms:10200", "test"); /* no multiple of those looks */
    assert_int_not_equal(decay_numbers().look_ms % inside_rights_ms, 0);
    breathe(burst_pages());
    start = os_now_ms();
    assert_true(fake_thread_run());
    plain_ms = os_now_ms() - start;
    plain_purges = fake_calls(FAKE_PURGE);
    breathe(burst_pages());
    fake_rights_part(UINT64_MAX);
    start = os_now_ms();
    assert_true(fake_thread_run());
    assert_int_equal(os_now_ms() - start, plain_ms);
    assert_int_equal(fake_calls(FAKE_PURGE), 2 * plain_purges);
}

/* Between its look at the options and its sleep. */
static void shorten_the_span(enum fake_call kind)
{
    if (kind != FAKE_SLEEP) return;
    fake_on_call(NULL);
    options_parse("dirty_decay_ms:1000", "MALLOC_CONF");
    decay_obey_options();
}

static void the_background_thread_sleeps_no_longer_than_is_asked_now(void **state)
{
    uint64_t start, wakes;

    (void)state;
    start_threads(2);
    options_parse("dirty_decay_ms:3600000", "MALLOC_CONF");
    assert_true(inside_want_background());
    wakes = fake_calls(FAKE_WAKE);
    fake_on_call(shorten_the_span);
    start = os_now_ms();
    assert_true(fake_thread_run());
    assert_in_range(os_now_ms() - start, 1000, 2000);
    assert_true(fake_calls(FAKE_WAKE) > wakes);
}

/* Whoever wants to hear of stalls does not wait until a long sleep ends. */
static void a_new_listener_ends_a_long_sleep(void **state)
{
    uint64_t wakes;

    (void)state;
    start_threads(2);
    assert_true(inside_want_background());
    wakes = fake_calls(FAKE_WAKE);
    decay_keep_looking();
    assert_int_equal(fake_calls(FAKE_WAKE), wakes + 1);
}

static void wait_for_memory(void)
{
    fake_stall(500 * 1000);
    if (limits.stall_due) inside_tell_background_to_end();
}

/* Stalls are looked for however rarely memory is given back. */
static void the_background_looks_for_stalls_twice_a_second(void **state)
{
    uint64_t start;

    (void)state;
    start_threads(2);
    options_parse("dirty_decay_ms:-1", "MALLOC_CONF");
    RELAXED_STORE(limits.looks_for_stalls, true);
    assert_true(inside_want_background());
    fake_on_sleep(wait_for_memory);
    start = os_now_ms();
    assert_true(fake_thread_run());
    assert_true(limits.stall_due);
    assert_in_range(os_now_ms() - start, 1, 2000);
    assert_int_equal(decay_numbers().looks, 0);
}

static void the_background_thread_can_be_declined(void **state)
{
    (void)state;
    start_threads(2);
    options_parse("helper_thread:false", "PRAIRIE_CONF");
    breathe(burst_pages());
    assert_int_equal(fake_calls(FAKE_THREAD_START), 0);
    assert_int_equal(dirty_pages(), burst_pages() / PURGE_PEAK_SHARE);
}

static void the_background_thread_meets_a_kernel_that_refuses(void **state)
{
    (void)state;
    start_threads(2);
    breathe(burst_pages());
    fake_fail_kind(FAKE_PURGE, true);
    fake_on_sleep(note_pages);
    assert_true(fake_thread_run());
    assert_true(looks < 100);
    assert_int_equal(dirty_pages(), burst_pages());
    check_arenas();
}

static void end_when_it_stays(void)
{
    if (++looks == 1000) inside_tell_background_to_end();
}

/* A few dirty pages that are worth no call, left where nothing may stay. */
static void what_is_worth_no_pass_keeps_nobody_awake(void **state)
{
    (void)state;
    start_threads(2);
    assert_true(inside_want_background());
    options_parse("dirty_decay_ms:0", "MALLOC_CONF");
    run_return(lease_written(pages_of_bytes(64 * KiB) - 1));
    fake_on_sleep(end_when_it_stays);
    assert_true(fake_thread_run());
    assert_true(looks < 1000);
    assert_true(dirty_pages() > 0);
}

static unsigned waiting_magazines(void) { return arenas[0]->bin[5].depot.full.count; }

/* As many clears as a background_thread would have made looks, however often threads return pages. */
static void clear_alone(void)
{
    unsigned brought;

    fill_depot(5);
    fill_depot(5);
    brought = waiting_magazines();
    for (unsigned i = 0; i < 20; i++) breathe(burst_pages());
    assert_int_equal(waiting_magazines(), brought);
    for (unsigned i = 0; i < 10; i++) {
        fake_clock_ms(decay_numbers().look_ms);
        breathe(burst_pages());
    }
    assert_int_equal(waiting_magazines(), 0);
    assert_int_equal(page_heap_used_pages(page_heap), 0);
}

static void threads_without_a_background_thread_clear(void **state)
{
    (void)state;
    start_threads(2);
    options_parse("background_thread:false", "MALLOC_CONF");
    clear_alone();
    assert_int_equal(fake_calls(FAKE_THREAD_START), 0);
    options_parse("dirty_decay_ms:0", "MALLOC_CONF");
    clear_alone();
}

static void threads_whose_background_thread_is_refused_clear(void **state)
{
    (void)state;
    start_threads(2);
    fake_thread_allow(false);
    clear_alone();
    options_parse("dirty_decay_ms:0", "MALLOC_CONF");
    clear_alone();
}

static void threads_that_may_keep_none_clear(void **state)
{
    (void)state;
    start_threads(2);
    purge_keep_none(true);
    clear_alone();
    assert_false(fake_thread_waits());
}

static void one_thread_whose_pages_go_at_once_clears(void **state)
{
    (void)state;
    start_threads(1);
    options_parse("dirty_decay_ms:0", "MALLOC_CONF");
    clear_alone();
}

/* Dirty pages are not left to it, depots and caches are. */
static void the_background_thread_empties_depots_where_pages_go_at_once(void **state)
{
    (void)state;
    start_threads(2);
    options_parse("dirty_decay_ms:0", "MALLOC_CONF");
    fill_depot(5);
    breathe(burst_pages());
    assert_true(fake_thread_waits());
    assert_int_equal(dirty_pages(), 0);
    assert_true(fake_thread_run());
    check_arenas();
    assert_int_equal(waiting_magazines(), 0);
    assert_int_equal(page_heap_used_pages(page_heap), 0);
    decay_expect_sleepers();
    assert_true(fake_thread_waits());
}

static void look_for_locks(enum fake_call kind)
{
    if (kind != FAKE_SLEEP && kind != FAKE_PURGE && kind != FAKE_MOVE) return;
    require(inside_holds_no_lock());
}

static void the_slow_calls_are_made_without_any_lock(void **state)
{
    (void)state;
    fake_on_call(look_for_locks);
    start_threads(2);
    fill_depot(5);
    breathe(burst_pages());
    assert_true(fake_thread_run());
    decay_thread_count(1);
    breathe(burst_pages());
    assert_true(fake_calls(FAKE_PURGE) > 1 && fake_calls(FAKE_SLEEP) > 20);
}

static void the_child_of_a_fork_starts_its_own_thread(void **state)
{
    (void)state;
    start_threads(2);
    breathe(burst_pages());
    assert_true(fake_thread_waits());
    decay_forget_thread();
    assert_false(fake_thread_waits());
    breathe(burst_pages());
    assert_true(fake_thread_waits());
}

UNIT_MAIN(UNIT_TEST(the_background_thread_is_asked_early),
          UNIT_TEST(who_has_no_background_thread_keeps_the_budget),
          UNIT_TEST(one_thread_asks_nobody_early),
          UNIT_TEST(the_background_thread_gives_back_what_nobody_needs),
          UNIT_TEST(what_huge_pages_left_goes_in_the_background),
          UNIT_TEST(at_rest_huge_pages_are_no_longer_wanted),
          UNIT_TEST(the_background_thread_leaves_what_is_needed),
          UNIT_TEST(the_background_thread_empties_the_depots),
          UNIT_TEST(the_background_thread_empties_what_was_opened),
          UNIT_TEST(the_background_thread_stays_while_it_is_asked),
          UNIT_TEST(the_background_thread_does_not_end_unheard),
          UNIT_TEST(the_background_thread_empties_the_stocks),
          UNIT_TEST(a_background_thread_that_ended_starts_again),
          UNIT_TEST(a_background_thread_that_is_refused_is_not_needed),
          UNIT_TEST(near_a_limit_it_is_not_asked), UNIT_TEST(it_is_asked_once),
          UNIT_TEST(the_last_thread_purges_at_once),
          UNIT_TEST(the_background_thread_of_one_thread_ends_with_its_rights),
          UNIT_TEST(the_background_thread_of_threads_ends_with_its_rights),
          UNIT_TEST(what_comes_while_its_rights_end_it_goes_as_well),
          UNIT_TEST(the_background_thread_keeps_time_while_rights_are_the_same),
          UNIT_TEST(the_background_thread_sleeps_no_longer_than_is_asked_now),
          UNIT_TEST(a_new_listener_ends_a_long_sleep),
          UNIT_TEST(the_background_looks_for_stalls_twice_a_second),
          UNIT_TEST(the_background_thread_can_be_declined),
          UNIT_TEST(the_background_thread_meets_a_kernel_that_refuses),
          UNIT_TEST(what_is_worth_no_pass_keeps_nobody_awake),
          UNIT_TEST(threads_without_a_background_thread_clear),
          UNIT_TEST(threads_whose_background_thread_is_refused_clear),
          UNIT_TEST(threads_that_may_keep_none_clear),
          UNIT_TEST(one_thread_whose_pages_go_at_once_clears),
          UNIT_TEST(the_background_thread_empties_depots_where_pages_go_at_once),
          UNIT_TEST(the_slow_calls_are_made_without_any_lock),
          UNIT_TEST(the_child_of_a_fork_starts_its_own_thread))
