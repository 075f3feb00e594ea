/* decay_test.c - who gives memory back: the only thread at once, the others later. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "bins.h"

static size_t held_pages(void) { return page_heap_used_pages(page_heap) + dirty_pages(); }

static void start_threads(unsigned count)
{
    huge.policy = HUGE_NEVER;
    start_arenas(2);
    decay_thread_count(count);
}

static bool return_and_look(uint32_t page)
{
    bool shrunk;

    run_return(page);
    shrunk = decay_after_return();
    check_arenas();
    return shrunk;
}

static void breathe(size_t pages) { (void)return_and_look(lease_written(pages)); }

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

/* What lies dirty when nothing may stay from now on goes at once; otherwise nothing is done before the next call. */
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

/* A twentieth of the span, within bounds; where nothing is given back in time they are rare. */
static void looks_are_as_frequent_as_the_span_is_short(void **state)
{
    static const struct {
        char option[32];
        unsigned look_ms;
    } rows[] = { { "dirty_decay_ms:10000", 500 },
                 { "dirty_decay_ms:100", 10 },
                 { "dirty_decay_ms:0", 10 },
                 { "dirty_decay_ms:-1", 60000 },
                 { "dirty_decay_ms:86400000", 60000 } };

    (void)state;
    start_threads(2);
    for (unsigned i = 0; i < ARRAY_COUNT(rows); i++) {
        options_parse(rows[i].option, "MALLOC_CONF");
        assert_int_equal(decay_numbers().look_ms, rows[i].look_ms);
    }
}

/* A full magazine into the depot of arena 0. */
static void fill_depot(unsigned class_index)
{
    void **full = meta_take(magazine_bytes(magazine_capacity(class_index)));
    bool drain;

    fill_all(0, class_index, full, magazine_capacity(class_index));
    lock_take(&arenas[0]->lock);
    full = depot_trade_full(arenas[0], class_index, full, &drain);
    lock_give(&arenas[0]->lock);
    assert_false(drain);
    meta_give(full, magazine_bytes(magazine_capacity(class_index)));
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
    assert_true(return_and_look(large[1])); /* the caller's magazines are next */
    assert_int_equal(arenas[0]->bin[5].depot.full.count, 0);
    assert_int_equal(arenas[0]->bin[5].slab_count, 0);
    assert_int_equal(page_heap_used_pages(page_heap), burst_pages() / 8);
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

/* ---- one thread that breathes ---- */

static void breathe_often(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        breathe(burst_pages());
        fake_clock_ms(100);
    }
}

static size_t plain_budget(void)
{
    size_t share = burst_pages() / PURGE_PEAK_SHARE;

    return share + share / 2 + pages_of_bytes(PURGE_UNATTENDED_BYTES);
}

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

static void breathe_meanwhile(void)
{
    if (more_breaths > 0) breathe(burst_pages());
    if (more_breaths > 0) more_breaths--;
}

/* It does not end while what it is there for lies there, whenever that came. */
static void the_helper_of_one_thread_stays_while_it_breathes(void **state)
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

static void one_thread_that_may_have_no_helper_keeps_little(void **state)
{
    (void)state;
    start_threads(1);
    options_parse("helper_thread:false", "PRAIRIE_CONF");
    keeps_little_alone();
    assert_int_equal(fake_calls(FAKE_THREAD_START), 0);
}

/* And a kernel that refuses one is not asked at every free. */
static void one_thread_that_is_refused_a_helper_keeps_little(void **state)
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

/* ---- several threads ---- */

static size_t held_at_look[64], dirty_at_look[64];
static unsigned looks;

static void note_pages(void)
{
    if (looks < ARRAY_COUNT(held_at_look)) {
        held_at_look[looks] = held_pages();
        dirty_at_look[looks] = dirty_pages();
    }
    looks++;
}

/* The promise: ten seconds after the last free of a burst nine tenths are back with the kernel. */
static void the_helper_gives_back_what_nobody_needs(void **state)
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
    assert_true(dirty_at_look[20] <= burst_pages() / 10);
    for (unsigned i = 1; i < 20; i++) assert_true(dirty_at_look[i] <= dirty_at_look[i - 1]);
    assert_true(os_now_ms() - start < 60 * 1000); /* and then it ends */
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
static void the_helper_is_asked_early(void **state)
{
    (void)state;
    start_threads(2);
    (void)lease(burst_pages());
    breathe(pages_of_bytes(PURGE_KEEP_BYTES));
    assert_int_equal(fake_calls(FAKE_THREAD_START), 0);                   /* not for a little */
    assert_true(page_heaps_free_now(FREE_DIRTY) <= page_heap->dirty_max); /* and no lock either */
    breathe(eighth_pages());
    assert_true(fake_thread_waits());
    assert_int_equal(dirty_pages(), eighth_pages()); /* it is there for the next breath */
    assert_true(fake_thread_run());
    assert_true(dirty_pages() < pages_of_bytes(PURGE_KEEP_BYTES));
}

static void who_has_no_helper_keeps_the_budget(void **state)
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

static void the_helper_leaves_what_is_needed(void **state)
{
    (void)state;
    start_threads(2);
    breathe(burst_pages());
    fake_on_sleep(need_everything);
    assert_true(fake_thread_run());
    assert_int_equal(fake_calls(FAKE_PURGE), 0);
    assert_true(looks >= 20);
}

static void the_helper_empties_the_depots(void **state)
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
static void the_helper_empties_what_was_opened(void **state)
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
static void the_helper_stays_while_it_is_asked(void **state)
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
static void the_helper_does_not_end_unheard(void **state)
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
static void the_helper_empties_the_stocks(void **state)
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

static void a_helper_that_ended_starts_again(void **state)
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
static void a_helper_that_is_refused_is_not_needed(void **state)
{
    (void)state;
    start_threads(2);
    fake_thread_allow(false);
    breathe(burst_pages());
    assert_int_equal(fake_calls(FAKE_THREAD_START), 1);
    assert_int_equal(dirty_pages(), burst_pages() / PURGE_PEAK_SHARE);
    fake_thread_allow(true);
    fake_clock_ms(10000);
    breathe(burst_pages());
    assert_true(fake_thread_waits());
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
    assert_false(page_heaps_are_over);
    options_parse("oversize_threshold:1073741824", "MALLOC_CONF");
    decay_obey_options();
    breathe(burst_pages());
    run_return(lease(1)); /* such a threshold is looked at each time */
    assert_true(page_heaps_are_over);
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

static void the_helper_of_one_thread_ends_with_its_rights(void **state)
{
    (void)state;
    rights_given_up_end_it(1);
}

static void the_helper_of_threads_ends_with_its_rights(void **state)
{
    (void)state;
    rights_given_up_end_it(2);
}

/* Comparing rights often changes nothing of when it looks for memory, or of when it ends. */
static void the_helper_keeps_time_while_rights_are_the_same(void **state)
{
    uint64_t start, plain_ms, plain_purges;

    (void)state;
    start_threads(2);
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

static void the_helper_can_be_declined(void **state)
{
    (void)state;
    start_threads(2);
    options_parse("helper_thread:false", "PRAIRIE_CONF");
    breathe(burst_pages());
    assert_int_equal(fake_calls(FAKE_THREAD_START), 0);
    assert_int_equal(dirty_pages(), burst_pages() / PURGE_PEAK_SHARE);
}

static void the_helper_meets_a_kernel_that_refuses(void **state)
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

/* ---- before growth ---- */

/* A magazine of these blocks for the depot of arena 0. */
static void bring(unsigned class_index, void *const *blocks)
{
    unsigned capacity = magazine_capacity(class_index);
    void **full = meta_take(magazine_bytes(capacity));
    bool drain;

    memcpy(full + 1, blocks, capacity * sizeof *full);
    lock_take(&arenas[0]->lock);
    full = depot_trade_full(arenas[0], class_index, full, &drain);
    lock_give(&arenas[0]->lock);
    if (drain) arenas_drain(class_index, full + 1, capacity);
}

/* Slabs of which all blocks but one are free; some of these lie in a depot, the program holds the
 * others. */
static void hold_slabs_open(unsigned class_index, size_t bytes)
{
    enum { BLOCKS_MAX = 20000 };
    static void *slots[BLOCKS_MAX + 1], *kept[BLOCKS_MAX];
    unsigned in_slab = slab_shape[class_index].block_count;
    unsigned capacity = magazine_capacity(class_index);
    unsigned slabs = (unsigned)(bytes / slab_shape[class_index].bytes);

    assert_true(slabs * in_slab <= BLOCKS_MAX);
    fill_all(0, class_index, slots, slabs * in_slab);
    for (unsigned i = 0; i < slabs; i++) kept[i] = slots[1 + i * in_slab];
    assert_true(slabs >= 2 * capacity);
    bring(class_index, kept);
    bring(class_index, kept + capacity);
    for (unsigned i = 0; i < slabs; i++)
        arenas_drain(class_index, slots + 2 + i * in_slab, in_slab - 1);
    check_arenas();
}

static void sparse_slabs_are_reclaimed_before_growth(void **state)
{
    unsigned class_index = class_of_size(500);

    (void)state;
    start_threads(1);
    assert_false(decay_reclaim());
    hold_slabs_open(class_index, 4 * RECLAIM_BYTES_MIN);
    assert_true(arenas[0]->bin[class_index].depot.full.count > 0);
    if (!decay_could_reclaim()) (void)lease(pages_of_bytes(2 * RECLAIM_BYTES_MIN));
    assert_true(decay_could_reclaim());
    assert_true(decay_reclaim());
    check_arenas();
    assert_int_equal(arenas[0]->bin[class_index].depot.full.count, 0);
    assert_false(decay_could_reclaim()); /* not again until it has grown */
    assert_false(decay_reclaim());
}

static void dense_slabs_are_left_alone(void **state)
{
    unsigned class_index = class_of_size(500);

    (void)state;
    start_threads(1);
    fill_depot(class_index);
    (void)lease(pages_of_bytes(4 * RECLAIM_BYTES_MIN));
    assert_true(decay_could_reclaim());
    assert_false(decay_reclaim()); /* little is free */
    assert_int_equal(arenas[0]->bin[class_index].depot.full.count, 1);
}

/* ---- whole bursts, through the doors ---- */

/* Small blocks of many sizes, some MiB of them, freed in the order they came. */
static size_t burst_of_small_blocks(void)
{
    enum { BLOCKS = 60000 };
    static void *blocks[BLOCKS];
    size_t peak;

    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t size = random_below(2000);
        blocks[i] = prairie_malloc(size);
        memset(blocks[i], 1, size);
    }
    peak = held_pages();
    for (unsigned i = 0; i < BLOCKS; i++) prairie_free(blocks[i]);
    prairie_check_all();
    return peak;
}

static void a_burst_of_the_only_thread_goes_back_at_once(void **state)
{
    size_t peak = burst_of_small_blocks();

    (void)state;
    assert_true(peak > pages_of_bytes(40 * MiB));
    assert_true(held_pages() <= peak / 10);
}

static void *sleep_beside(void *unused)
{
    prairie_free(prairie_malloc(1));
    while (RELAXED_LOAD(*(uint32_t *)unused) == 0) usleep(1000);
    return NULL;
}

static void a_burst_of_a_threaded_program_goes_back_in_ten_seconds(void **state)
{
    uint32_t done = 0;
    pthread_t thread;
    size_t peak;

    (void)state;
    (void)prairie_malloc(1);
    assert_int_equal(pthread_create(&thread, NULL, sleep_beside, &done), 0);
    while (inside_threads_with_caches() < 2) usleep(100);
    peak = burst_of_small_blocks();
    assert_true(fake_thread_waits());
    fake_on_sleep(note_pages);
    assert_true(fake_thread_run());
    assert_true(looks > 20);
    assert_true(held_at_look[20] <= peak / 10);
    RELAXED_STORE(done, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(what_is_within_the_budget_is_nobodys_business),
          UNIT_TEST(the_only_thread_purges_at_once),
          UNIT_TEST(options_that_keep_nothing_are_obeyed_at_once),
          UNIT_TEST(looks_are_as_frequent_as_the_span_is_short),
          UNIT_TEST(a_program_that_shrank_empties_its_depots),
          UNIT_TEST(a_program_that_did_not_shrink_keeps_them),
          UNIT_TEST(what_a_breathing_program_leaves_goes_later),
          UNIT_TEST(the_helper_of_one_thread_stays_while_it_breathes),
          UNIT_TEST(one_thread_that_may_have_no_helper_keeps_little),
          UNIT_TEST(one_thread_that_is_refused_a_helper_keeps_little),
          UNIT_TEST(a_fork_of_one_thread_meets_no_other),
          UNIT_TEST(a_fork_of_several_threads_changes_nothing),
          UNIT_TEST(the_helper_is_asked_early), UNIT_TEST(who_has_no_helper_keeps_the_budget),
          UNIT_TEST(one_thread_asks_nobody_early),
          UNIT_TEST(the_helper_gives_back_what_nobody_needs),
          UNIT_TEST(the_helper_leaves_what_is_needed), UNIT_TEST(the_helper_empties_the_depots),
          UNIT_TEST(the_helper_empties_what_was_opened),
          UNIT_TEST(the_helper_stays_while_it_is_asked), UNIT_TEST(the_helper_does_not_end_unheard),
          UNIT_TEST(the_helper_empties_the_stocks), UNIT_TEST(a_helper_that_ended_starts_again),
          UNIT_TEST(a_helper_that_is_refused_is_not_needed), UNIT_TEST(it_is_asked_once),
          UNIT_TEST(the_last_thread_purges_at_once),
          UNIT_TEST(the_helper_of_one_thread_ends_with_its_rights),
          UNIT_TEST(the_helper_of_threads_ends_with_its_rights),
          UNIT_TEST(the_helper_keeps_time_while_rights_are_the_same),
          UNIT_TEST(the_helper_can_be_declined), UNIT_TEST(the_helper_meets_a_kernel_that_refuses),
          UNIT_TEST(the_slow_calls_are_made_without_any_lock),
          UNIT_TEST(the_child_of_a_fork_starts_its_own_thread),
          UNIT_TEST(sparse_slabs_are_reclaimed_before_growth),
          UNIT_TEST(dense_slabs_are_left_alone),
          UNIT_TEST(a_burst_of_the_only_thread_goes_back_at_once),
          UNIT_TEST(a_burst_of_a_threaded_program_goes_back_in_ten_seconds))
