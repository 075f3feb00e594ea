/* decay_test.c - the only thread gives memory back at once, or soon what it may want again. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "breaths.h"

/* ---- one thread ---- */

static void what_is_within_the_budget_is_nobodys_business(void **state)
{
    (void)state;
    start_threads(1);
    for (unsigned i = 0; i < 50; i++) breathe(pages_of_bytes(PURGE_KEEP_BYTES));
    assert_int_equal(fake_calls(FAKE_PURGE), 0);
    assert_int_equal(fake_calls(FAKE_THREAD_START), 0);
}

static void the_only_thread_purges_at_once(void **state)
{
    (void)state;
    start_threads(1);
    breathe(burst_pages());
    assert_int_equal(dirty_pages(), burst_pages() / PURGE_PEAK_SHARE);
    assert_int_equal(fake_calls(FAKE_THREAD_START), 0);
}

/* What lies dirty when nothing may stay from now on goes at once; otherwise nothing is done before
 * the next call. */
static void options_that_keep_nothing_are_obeyed_at_once(void **state)
{
    uint32_t page;

    (void)state;
    start_threads(1);
    page = lease(burst_pages());
    stain(page, burst_pages(), 1);
    give_back(page);
    assert_int_equal(dirty_pages(), burst_pages());
    options_parse("dirty_decay_ms:5000", "MALLOC_CONF");
    decay_obey_options();
    assert_int_equal(dirty_pages(), burst_pages());
    options_parse("dirty_decay_ms:0", "MALLOC_CONF");
    decay_obey_options();
    assert_int_equal(dirty_pages(), 0);
    check_arenas();
}

/* What slabs had is left to a background thread, but for the blocks that hold them open. */
static void a_fall_of_the_only_thread_goes_later(void **state)
{
    enum { RUNS = 40 };
    unsigned class_index = class_of_size(64);
    uint32_t page[RUNS];
    bool shrunk = false;
    size_t pages;

    (void)state;
    start_threads(1);
    pages = pages_of_bytes(FALL_BYTES_MIN) / (RUNS - 8);
    fill_depot(class_index);
    lease_for_slabs(page, RUNS, pages);
    for (unsigned i = 0; i < RUNS; i++) shrunk |= return_and_look(page[i]);
    assert_true(shrunk);
    assert_int_equal(arenas[0]->bin[class_index].depot.full.count, 0);
    assert_int_equal(fake_calls(FAKE_PURGE), 0);
    assert_true(fake_thread_waits());
    fake_on_sleep(note_pages);
    assert_true(fake_thread_run());
    assert_true(looks < 20);
    assert_true(dirty_pages() <= pages_of_bytes(2 * PURGE_KEEP_BYTES));
    assert_false(inside_background_runs());
}

/* Who is there already is left a small one, too. */
static void what_is_left_to_the_background_thread_is_not_told_it_again(void **state)
{
    enum { RUNS = 16 };
    uint32_t page[RUNS];
    size_t pages;

    (void)state;
    start_threads(1);
    pages = pages_of_bytes(FALL_BYTES_MIN) / (RUNS - 1) + 1;
    lease_for_slabs(page, RUNS, pages);
    for (unsigned i = 0; i < RUNS; i++) (void)return_and_look(page[i]);
    assert_true(fake_thread_waits());
    lease_for_slabs(page, RUNS, pages);
    assert_int_equal(dirty_pages(), 0);
    for (unsigned i = 0; i < 2; i++) (void)return_and_look(page[i]);
    assert_false(purge_wants_background()); /* of the peak so little is missing */
    purge_obey_options();                   /* it is looked at from the least on */
    while (purge_is_within_budget()) run_return(lease_written(dirty_pages() + pages / 16));
    (void)decay_excess();
    assert_int_equal(fake_calls(FAKE_PURGE), 0);
    run_return(lease(1));
    assert_false(page_heaps_past_trigger);
}

/* With retain:false the free end of the heap is closed by who purges. The burst fits into the first
 * region. */
static void breathe_at_the_end(void)
{
    size_t open;

    (void)lease(1);
    open = space.open_bytes;
    breathe(burst_pages() / 2);
    assert_in_range(space.open_bytes, 1, open);
    check_arenas();
}

static void the_only_thread_closes_the_end(void **state)
{
    (void)state;
    start_threads(1);
    options_parse("retain:false", "MALLOC_CONF");
    breathe_at_the_end();
    fake_clock_ms(10000); /* or it would be a habit, and left to a background thread */
    breathe_at_the_end();
    assert_int_equal(fake_calls(FAKE_THREAD_START), 0);
}

static void who_has_no_background_thread_closes_the_end(void **state)
{
    (void)state;
    start_threads(2);
    options_parse("retain:false,helper_thread:false", "PRAIRIE_CONF");
    breathe_at_the_end();
}

/* Also where it is obeyed before anything is open. */
static void what_goes_at_once_closes_the_end(void **state)
{
    (void)state;
    options_parse("dirty_decay_ms:0,retain:false", "MALLOC_CONF");
    decay_obey_options();
    start_threads(1);
    give_back(lease(burst_pages()));
    assert_true(space.open_bytes >= bytes_of(burst_pages()));
    decay_obey_options();
    assert_int_equal(space.open_bytes, 0);
    check_arenas();
}

/* A twentieth of the span, within bounds; where nothing is given back in time they are rare. */
static void looks_are_as_frequent_as_the_span_is_short(void **state)
{
    static const struct {
        char option[32];
        unsigned look_ms;
    } rows[] = { { "dirty_decay_ms:10000", 500 },
                 { "dirty_decay_ms:100", 10 },
                 { "dirty_decay_ms:0", 500 },
                 { "dirty_decay_ms:-1", 60000 },
                 { "dirty_decay_ms:86400000", 60000 } };

    (void)state;
    start_threads(2);
    for (unsigned i = 0; i < ARRAY_COUNT(rows); i++) {
        options_parse(rows[i].option, "MALLOC_CONF");
        assert_int_equal(decay_numbers().look_ms, rows[i].look_ms);
    }
}

static void a_program_that_shrank_empties_its_depots(void **state)
{
    uint32_t large[2];

    (void)state;
    start_threads(1);
    (void)lease(burst_pages() / 8);
    for (unsigned i = 0; i < 2; i++) large[i] = lease(burst_pages());
    fill_depot(5);
    assert_false(return_and_look(large[0])); /* more than a half is left */
    assert_int_equal(arenas[0]->bin[5].depot.full.count, 1);
    assert_false(depots_closed);
    assert_true(return_and_look(large[1])); /* the caller's magazines are next */
    assert_true(depots_closed);
    assert_int_equal(arenas[0]->bin[5].depot.full.count, 0);
    assert_int_equal(arenas[0]->bin[5].slab_count, 0);
    assert_int_equal(page_heap_used_pages(page_heap), burst_pages() / 8);
}

/* What is in use is read without a lock, and looks like a half when more was opened meanwhile. */
static void what_seems_to_be_a_half_is_counted_again(void **state)
{
    uint32_t part[3];
    size_t peak, opened;

    (void)state;
    start_threads(1);
    (void)lease(burst_pages());
    for (unsigned i = 0; i < ARRAY_COUNT(part); i++) part[i] = lease(burst_pages());
    assert_false(return_and_look(part[0]));
    peak = page_heaps_used_now();
    run_return(part[1]); /* two of three are left */
    opened = bytes_of(page_heaps_used_now() - peak / 2);
    space.open_bytes -= opened;
    assert_int_equal(page_heaps_used_now(), peak / 2);
    assert_false(decay_excess());
    space.open_bytes += opened;
    assert_true(return_and_look(part[2]));
}

static void a_program_that_did_not_shrink_keeps_them(void **state)
{
    uint32_t part;

    (void)state;
    start_threads(1);
    (void)lease(4 * burst_pages());
    part = lease(burst_pages());
    fill_depot(5);
    assert_false(return_and_look(part));
    assert_int_equal(arenas[0]->bin[5].depot.full.count, 1);
}

/* Nobody else looks, and a few blocks hold slabs open. */
static void each_purge_drains_what_nobody_took(void **state)
{
    (void)state;
    start_threads(1);
    (void)lease(4 * burst_pages());
    fill_depot(5);
    for (unsigned left = 2; left-- > 0;) { /* the first one learns how many there are */
        assert_false(return_and_look(lease(burst_pages())));
        assert_int_equal(arenas[0]->bin[5].depot.full.count, left);
        fake_clock_ms(10000);
    }
    assert_int_equal(arenas[0]->bin[5].slab_count, 0);
    check_arenas();
}

/* ---- one thread that breathes ---- */

/* The promise holds for it too, and the background thread is there for no longer than that
 * takes. */
static void what_a_breathing_program_leaves_goes_later(void **state)
{
    uint64_t start;

    (void)state;
    start_threads(1);
    breathe_often(4);
    assert_int_equal(dirty_pages(), burst_pages()); /* it is ready for the next breath */
    assert_int_equal(fake_calls(FAKE_THREAD_START), 1);
    start = os_now_ms();
    assert_true(fake_thread_run());
    check_arenas();
    assert_true(os_now_ms() - start <= 10000);
    assert_true(dirty_pages() <= plain_budget());
    assert_false(inside_background_runs());
    breathe_often(2); /* and again */
    assert_true(fake_thread_waits());
}

static unsigned more_breaths;

/* Of the pages one is written: all of them are dirty to the library, and writing all takes
 * seconds. */
static void breathe_meanwhile(void)
{
    uint32_t page;

    if (more_breaths == 0) return;
    page = lease(burst_pages());
    stain(page, 1, 1);
    (void)return_and_look(page);
    more_breaths--;
}

/* It does not end while what it is there for lies there, whenever that came. */
static void the_background_thread_of_one_thread_stays_while_it_breathes(void **state)
{
    (void)state;
    start_threads(1);
    breathe_often(4);
    more_breaths = 100;
    fake_on_sleep(breathe_meanwhile);
    assert_true(fake_thread_run());
    assert_int_equal(more_breaths, 0);
    assert_true(dirty_pages() <= plain_budget());
    assert_int_equal(fake_calls(FAKE_THREAD_START), 1);
}

static void keeps_little_alone(void)
{
    for (unsigned i = 0; i < 20; i++) {
        breathe(burst_pages());
        assert_true(dirty_pages() <= plain_budget());
        fake_clock_ms(10);
    }
}

static void one_thread_that_may_have_no_background_thread_keeps_little(void **state)
{
    (void)state;
    start_threads(1);
    options_parse("helper_thread:false", "PRAIRIE_CONF");
    keeps_little_alone();
    assert_int_equal(fake_calls(FAKE_THREAD_START), 0);
}

/* And a kernel that refuses one is not asked at every free. */
static void one_thread_that_is_refused_a_background_thread_keeps_little(void **state)
{
    (void)state;
    start_threads(1);
    fake_thread_allow(false);
    keeps_little_alone();
    assert_int_equal(fake_calls(FAKE_THREAD_START), 1);
    fake_clock_ms(inside_background_refused_ms);
    keeps_little_alone();
    assert_int_equal(fake_calls(FAKE_THREAD_START), 2);
}

/* Both sides of a fork have one thread, and nothing to give back. */
static void a_fork_of_one_thread_meets_no_other(void **state)
{
    (void)state;
    start_threads(1);
    breathe_often(4);
    assert_true(fake_thread_waits());
    assert_true(decay_before_fork());
    assert_false(fake_thread_waits());
    assert_false(inside_background_runs());
    purge_beyond_budget();
    assert_true(dirty_pages() <= plain_budget());
    breathe_often(2);
    assert_true(fake_thread_waits());
    assert_true(fake_thread_run()); /* the next one was not told to end */
    assert_true(decay_looks > 0);
    assert_true(dirty_pages() <= plain_budget());
}

/* Who waits for stalls has the background thread while there are threads, and no longer: it may
 * wait for a lock of the only one, which a handler of its signals interrupted. */
static void a_fork_of_the_last_thread_meets_no_other(void **state)
{
    (void)state;
    start_threads(2);
    decay_keep_looking();
    assert_false(decay_before_fork());
    decay_thread_count(1);
    assert_true(decay_before_fork());
    assert_false(fake_thread_waits());
    assert_false(inside_background_runs());
    decay_resume_looking();
    assert_false(fake_thread_waits());
    decay_thread_count(2);
    decay_resume_looking();
    assert_true(fake_thread_waits());
    decay_thread_count(1);
    assert_true(fake_thread_run());
    assert_false(inside_background_runs());
}

static void tell_it_to_end(enum fake_call kind)
{
    if (kind == FAKE_PURGE) inside_tell_background_to_end();
}

/* Who forks waits for no more than the call that it is in. */
static void the_background_thread_ends_in_the_middle_of_its_work(void **state)
{
    enum { PARTS = 8 };
    uint32_t part[PARTS];
    uint64_t purges;

    (void)state;
    start_threads(1);
    breathe_often(4);
    assert_true(fake_thread_waits());
    for (unsigned i = 0; i < PARTS; i++) {
        part[i] = lease(burst_pages() / (2 * PARTS));
        (void)lease(1);
    }
    for (unsigned i = 0; i < PARTS; i++) run_return(part[i]);
    purge_begin_unneeded();
    purges = fake_calls(FAKE_PURGE);
    fake_on_call(tell_it_to_end);
    assert_true(fake_thread_run());
    assert_int_equal(fake_calls(FAKE_PURGE), purges + 1);
    assert_false(inside_background_runs());
    check_arenas();
}

/* Who tells it to may hold the locks that it would need to close the end. */
static void the_background_thread_leaves_the_end_open_when_it_is_told_to_end(void **state)
{
    size_t open;

    (void)state;
    start_threads(2);
    options_parse("retain:false", "MALLOC_CONF");
    breathe(burst_pages());
    assert_true(fake_thread_waits());
    open = space.open_bytes;
    fake_on_call(tell_it_to_end);
    assert_true(fake_thread_run());
    assert_true(fake_calls(FAKE_PURGE) > 0);
    assert_int_equal(space.open_bytes, open);
    decay_close_tail(false); /* that was why */
    assert_true(space.open_bytes < open);
    check_arenas();
}

/* Where none runs a fork meets nobody either. */
static void a_fork_without_a_background_thread_waits_for_nobody(void **state)
{
    (void)state;
    start_threads(1);
    assert_true(decay_before_fork());
    decay_thread_count(2);
    assert_true(decay_before_fork());
    assert_int_equal(fake_calls(FAKE_WAKE), 0);
}

/* It may hold a lock for a moment yet. */
static void a_fork_waits_for_a_background_thread_that_says_it_ends(void **state)
{
    (void)state;
    start_threads(1);
    assert_true(inside_want_background());
    inside_set_background_runs(false);
    assert_true(decay_before_fork());
    assert_false(fake_thread_waits());
    assert_int_equal(fake_calls(FAKE_WAKE), 0);
}

static void become_a_child(enum fake_call kind)
{
    if (kind == FAKE_THREAD_START) decay_forget_thread();
}

static void see_that_it_is_known(void)
{
    looks++;
    assert_true(inside_background_runs());
    assert_true(purge_mode.background);
}

/* A signal handler forks when the wish for it is noted, and it has not begun. */
static void a_background_thread_that_is_the_childs_is_known_there(void **state)
{
    (void)state;
    start_threads(1);
    fake_on_call(become_a_child);
    breathe_often(4);
    fake_on_call(NULL);
    fake_on_sleep(see_that_it_is_known);
    assert_true(fake_thread_run());
    assert_true(looks > 0);
    assert_false(inside_background_runs());
}

/* It is woken, and is not there when the option's writer goes on. */
static void a_background_thread_that_is_forbidden_ends_at_once(void **state)
{
    (void)state;
    start_threads(2);
    breathe(burst_pages());
    assert_true(inside_background_runs());
    options_parse("helper_thread:false", "PRAIRIE_CONF");
    decay_obey_options();
    assert_int_equal(fake_calls(FAKE_WAKE), 1);
    assert_false(fake_thread_waits());
    assert_false(inside_background_runs());
    assert_int_equal(decay_looks, 0);
}

/* Of a process that was copied without a word it is not there, and another one comes. */
static void a_copy_has_no_background_thread(void **state)
{
    (void)state;
    start_threads(2);
    breathe(burst_pages());
    assert_true(inside_background_runs());
    fake_copy();
    assert_true(decay_before_fork());
    assert_false(inside_background_runs());
    breathe(burst_pages());
    assert_true(inside_background_runs());
    fake_copy();
    for (unsigned i = 2; i < 6; i++) breathe(i * burst_pages());
    assert_true(fake_thread_waits());
    assert_false(decay_before_fork());
}

/* In a program with threads it goes on. */
static void a_fork_of_several_threads_changes_nothing(void **state)
{
    (void)state;
    start_threads(2);
    breathe(burst_pages());
    assert_false(decay_before_fork());
    assert_true(fake_thread_waits());
    assert_true(inside_background_runs());
}

UNIT_MAIN(UNIT_TEST(what_is_within_the_budget_is_nobodys_business),
          UNIT_TEST(the_only_thread_purges_at_once), UNIT_TEST(a_copy_has_no_background_thread),
          UNIT_TEST(a_fall_of_the_only_thread_goes_later),
          UNIT_TEST(what_is_left_to_the_background_thread_is_not_told_it_again),
          UNIT_TEST(options_that_keep_nothing_are_obeyed_at_once),
          UNIT_TEST(the_only_thread_closes_the_end),
          UNIT_TEST(who_has_no_background_thread_closes_the_end),
          UNIT_TEST(what_goes_at_once_closes_the_end),
          UNIT_TEST(looks_are_as_frequent_as_the_span_is_short),
          UNIT_TEST(a_program_that_shrank_empties_its_depots),
          UNIT_TEST(what_seems_to_be_a_half_is_counted_again),
          UNIT_TEST(a_program_that_did_not_shrink_keeps_them),
          UNIT_TEST(each_purge_drains_what_nobody_took),
          UNIT_TEST(what_a_breathing_program_leaves_goes_later),
          UNIT_TEST(the_background_thread_of_one_thread_stays_while_it_breathes),
          UNIT_TEST(one_thread_that_may_have_no_background_thread_keeps_little),
          UNIT_TEST(one_thread_that_is_refused_a_background_thread_keeps_little),
          UNIT_TEST(a_fork_of_one_thread_meets_no_other),
          UNIT_TEST(a_fork_of_the_last_thread_meets_no_other),
          UNIT_TEST(the_background_thread_ends_in_the_middle_of_its_work),
          UNIT_TEST(the_background_thread_leaves_the_end_open_when_it_is_told_to_end),
          UNIT_TEST(a_fork_without_a_background_thread_waits_for_nobody),
          UNIT_TEST(a_fork_waits_for_a_background_thread_that_says_it_ends),
          UNIT_TEST(a_background_thread_that_is_the_childs_is_known_there),
          UNIT_TEST(a_background_thread_that_is_forbidden_ends_at_once),
          UNIT_TEST(a_fork_of_several_threads_changes_nothing))
