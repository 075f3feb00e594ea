/* purge_regrets_test.c - which pages may stay dirty because they may be wanted again. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "purges.h"

/* ---- regrets ---- */

/* A program that frees everything and wants it back at once pays for one breath. */
static void a_program_that_breathes_pays_once(void **state)
{
    uint64_t purged;

    (void)state;
    start_attended();
    for (unsigned i = 0; i < 2; i++) {
        breathe_within_budget(burst_pages());
        fake_clock_ms(100);
    }
    purged = fake_purged_bytes();
    assert_true(purged > 0);
    assert_int_equal(purge[0].regrets, 1);
    for (unsigned i = 0; i < 20; i++) {
        breathe_within_budget(burst_pages());
        fake_clock_ms(100);
    }
    assert_int_equal(fake_purged_bytes(), purged);
}

/* While nobody looks in the background only a little of what regrets ask for stays. */
static void regrets_count_for_little_while_nobody_looks(void **state)
{
    size_t unattended, share;

    (void)state;
    start_small();
    unattended = pages_of_bytes(PURGE_UNATTENDED_BYTES);
    share = kept_of(burst_pages());
    assert_false(purge_wants_background());
    for (unsigned i = 0; i < 6; i++) {
        breathe_within_budget(burst_pages());
        assert_true(dirty_pages() <= share + share / 2 + unattended);
        assert_false(purge_needs_background());
        fake_clock_ms(100);
    }
    assert_true(purge[0].regrets > 0);
    assert_true(purge_wants_background());
    purge_set_background(true);
    breathe_within_budget(burst_pages());
    assert_int_equal(dirty_pages(), burst_pages());
    assert_true(purge_needs_background());
    purge_set_background(false);
    assert_false(purge_is_within_budget());
    purge_beyond_budget();
    assert_int_equal(dirty_pages(), share + unattended);
    assert_false(purge_needs_background());
}

/* Many middle-sized blocks breathe as one large one does. */
static void many_blocks_that_breathe_pay_once(void **state)
{
    enum { BLOCKS = 64 };
    uint32_t page[BLOCKS];
    uint64_t purged = 0;

    (void)state;
    start_attended();
    for (unsigned i = 0; i < 20; i++) {
        for (unsigned j = 0; j < BLOCKS; j++) page[j] = lease(burst_pages() / BLOCKS);
        for (unsigned j = 0; j < BLOCKS; j++) return_within_budget(page[j]);
        fake_clock_ms(100);
        if (i == 1) purged = fake_purged_bytes();
    }
    assert_true(purged > 0);
    assert_int_equal(fake_purged_bytes(), purged);
}

/* Breaths that lie far apart are not regretted: in between the memory belongs to others. */
static void slow_breaths_are_not_regretted(void **state)
{
    uint64_t purged;

    (void)state;
    start_small();
    for (unsigned i = 0; i < 10; i++) {
        purged = fake_purged_bytes();
        breathe_within_budget(burst_pages());
        fake_clock_ms(3000);
        assert_true(fake_purged_bytes() > purged);
    }
    assert_int_equal(purge[0].regrets, 0);
}

/* Half of one page is a page, or it would be wanted back by who wants nothing. */
static void one_page_is_not_regretted_before_it_is_wanted(void **state)
{
    (void)state;
    options_parse("dirty_decay_ms:0", "MALLOC_CONF");
    start_small();
    breathe_within_budget(1);
    assert_int_equal(purge[0].purged_pages, 1);
    purge_beyond_budget();
    assert_int_equal(purge[0].regrets, 0);
    breathe_within_budget(1);
    assert_int_equal(purge[0].regrets, 1);
}

/* What regrets added to the budget is forgotten again. */
static void a_larger_budget_does_not_last(void **state)
{
    size_t kept;

    (void)state;
    start_attended();
    for (unsigned i = 0; i < 6; i++) {
        breathe_within_budget(burst_pages());
        fake_clock_ms(100);
    }
    kept = dirty_pages();
    assert_true(kept > burst_pages() / 2);
    for (unsigned i = 0; i < 40; i++) {
        fake_clock_ms(10000);
        breathe_within_budget(burst_pages() + pages_of_bytes(4 * PURGE_KEEP_BYTES));
    }
    assert_true(dirty_pages() < kept / 4);
}

/* Where nothing may stay, regrets add nothing to the budget, for then or for later. */
static void breathe_where_nothing_may_stay(void)
{
    for (unsigned i = 0; i < 10; i++) {
        breathe_within_budget(burst_pages());
        assert_int_equal(dirty_pages(), 0);
        fake_clock_ms(100);
    }
    assert_true(purge[0].regrets > 2);
}

static void a_decay_of_zero_keeps_nothing_for_regrets(void **state)
{
    (void)state;
    options_parse("dirty_decay_ms:0", "MALLOC_CONF");
    start_small();
    breathe_where_nothing_may_stay();
}

static void a_limit_that_is_near_leaves_no_larger_budget(void **state)
{
    (void)state;
    start_small();
    purge_keep_none(true);
    breathe_where_nothing_may_stay();
    purge_keep_none(false);
    fake_clock_ms(10000);
    breathe_within_budget(burst_pages());
    assert_int_equal(dirty_pages(), kept_of(burst_pages()));
}

/* What was learnt before counts for nothing while nothing may stay. */
static void a_budget_that_was_learnt_yields_to_a_decay_of_zero(void **state)
{
    (void)state;
    start_attended();
    for (unsigned i = 0; i < 6; i++) {
        breathe_within_budget(burst_pages());
        fake_clock_ms(100);
    }
    assert_true(dirty_pages() > burst_pages() / 2);
    options_parse("dirty_decay_ms:0,oversize_threshold:1073741824", "MALLOC_CONF");
    purge_obey_options();
    assert_false(purge_oversize());
    breathe_within_budget(burst_pages());
    assert_int_equal(dirty_pages(), 0);
}

/* Where nothing may stay, that includes what others return while it goes. */
static void a_decay_of_zero_keeps_nothing_of_others(void **state)
{
    (void)state;
    options_parse("dirty_decay_ms:0", "MALLOC_CONF");
    start_small();
    late[late_count++] = between_used(1);
    fake_on_call(return_another);
    breathe_within_budget(burst_pages());
    fake_on_call(NULL);
    assert_int_equal(late_count, 0);
    assert_int_equal(dirty_pages(), 1);
    assert_false(purge_is_within_budget());
    purge_beyond_budget();
    assert_int_equal(dirty_pages(), 0);
}

/* ---- falls ---- */

enum { SLAB_RUNS = 40, LOOKS = 14 };
static uint32_t slab_run[SLAB_RUNS];

/* Slabs' pages, in runs, many times as many as make a fall worth waiting for. Returns those of a
 * run. */
static size_t lease_slabs(void)
{
    size_t pages = pages_of_bytes(4 * FALL_BYTES_MIN) / SLAB_RUNS;

    lease_for_slabs(slab_run, SLAB_RUNS, pages);
    return pages;
}

static void return_slabs(unsigned from, unsigned end)
{
    for (unsigned i = from; i < end; i++) run_return(slab_run[i]);
}

static void fall(void)
{
    (void)lease_slabs();
    return_slabs(0, SLAB_RUNS);
}

/* Until hardly anything is left that nobody needed. */
static void look_often(void)
{
    for (unsigned i = 0; i < LOOKS; i++) (void)purge_unneeded(NULL);
}

/* While somebody looks in the background, what slabs had at their peak may stay, and no more. */
static void what_slabs_had_stays_while_somebody_looks(void **state)
{
    size_t pages, most;

    (void)state;
    start_small();
    pages = lease_slabs();
    most = kept_of(SLAB_RUNS * pages);
    return_slabs(1, SLAB_RUNS);
    assert_false(purge_is_within_budget());
    assert_true(purge_wants_background());
    purge_set_background(true);
    assert_false(purge_is_within_budget()); /* of one thread: it asks each time */
    assert_true(purge_raise_triggers_within_budget());
    assert_false(page_heaps_past_trigger);
    purge_beyond_budget();
    assert_int_equal(fake_calls(FAKE_PURGE), 0);
    run_return(lease_written(dirty_pages() + 4 * most)); /* what no slab had */
    assert_false(purge_is_within_budget());
    assert_false(purge_raise_triggers_within_budget());
    purge_beyond_budget();
    assert_in_range(dirty_pages(), (SLAB_RUNS - 1) * pages, (SLAB_RUNS - 1) * pages + 3 * most);
    purge_set_background(false);
    purge_beyond_budget();
    assert_true(dirty_pages() <= kept_of(purge[0].peak_pages) + pages);
}

/* The blocks of a table that grows are of no use for its next one. */
static void what_large_blocks_had_goes_at_once(void **state)
{
    (void)state;
    start_small();
    run_return(lease_written(2 * pages_of_bytes(FALL_BYTES_MIN)));
    assert_false(purge_wants_background());
    purge_set_background(true);
    assert_false(purge_raise_triggers_within_budget());
    purge_beyond_budget();
    assert_int_equal(dirty_pages(), kept_of(2 * pages_of_bytes(FALL_BYTES_MIN)));
}

/* So many of slabs' pages are taken, and returned at their peak. */
static void fall_by(size_t pages)
{
    uint32_t page = run_lease(pages, 1, PAGE_USED).page;

    (void)run_lease(2 * pages, 1, PAGE_LARGE); /* of clean ones, so that the peak is noted */
    run_return(page);
}

static void a_small_fall_is_not_waited_for(void **state)
{
    (void)state;
    start_small();
    fall_by(pages_of_bytes(FALL_BYTES_MIN) - 1);
    assert_false(purge_wants_background());
    fall_by(pages_of_bytes(FALL_BYTES_MIN));
    assert_true(purge_wants_background());
}

/* A peak is seen by the next lease of clean pages, in whatever way they are found. */
static void an_aligned_lease_notes_the_peak(void **state)
{
    uint32_t page;

    (void)state;
    start_small();
    page = run_lease(pages_of_bytes(FALL_BYTES_MIN), 1, PAGE_USED).page;
    assert_int_not_equal(run_lease(16, 16, PAGE_LARGE).page, 0);
    run_return(page);
    assert_true(purge_wants_background());
}

/* What was not needed while somebody looked is not waited for a second time. */
static void a_fall_is_forgotten(void **state)
{
    size_t pages;

    (void)state;
    start_attended();
    pages = lease_slabs();
    return_slabs(0, SLAB_RUNS);
    assert_true(purge_wants_background());
    for (unsigned i = 0; i < LOOKS; i++) {
        (void)purge_unneeded(NULL);
        assert_in_range(dirty_pages(), page_heap->slab_peak, page_heap->slab_peak + pages);
    }
    assert_true(dirty_pages() < pages_of_bytes(PURGE_KEEP_BYTES));
    assert_false(purge_wants_background());
}

/* Nor is one of long ago waited for, where nobody looks. */
static void an_old_fall_is_forgotten(void **state)
{
    size_t kept;

    (void)state;
    start_small();
    kept = lease_slabs();
    return_slabs(1, SLAB_RUNS);
    for (unsigned i = 0; i < 20; i++) {
        size_t peak = page_heap->slab_peak;

        breathe_within_budget(burst_pages());
        assert_int_equal(page_heap->slab_peak, i == 0 ? peak : peak - (peak - kept) / 4);
        assert_true(i != 0 || purge_wants_background());
        fake_clock_ms(3000);
    }
    assert_false(purge_wants_background());
}

/* But not what slabs have, when what others had was not needed. */
static void what_slabs_have_is_not_forgotten(void **state)
{
    size_t pages;

    (void)state;
    start_attended();
    pages = lease_slabs();
    run_return(lease_written(SLAB_RUNS * pages));
    assert_int_equal(page_heap->slab_peak, SLAB_RUNS * pages);
    look_often();
    assert_true(dirty_pages() < pages_of_bytes(PURGE_KEEP_BYTES));
    assert_int_equal(page_heap->slab_peak, SLAB_RUNS * pages);
}

/* When much of what was put off has gone in the background, the next excess is one. */
static void what_goes_in_the_background_is_looked_at_anew(void **state)
{
    unsigned half = SLAB_RUNS / 2;

    (void)state;
    start_small();
    (void)lease_slabs();
    return_slabs(0, half);
    assert_false(purge_is_within_budget());
    purge_set_background(true);
    assert_true(purge_raise_triggers_within_budget());
    look_often();
    return_slabs(half, SLAB_RUNS - 1);
    assert_false(purge_is_within_budget());
}

/* Who is not there looks at nothing. */
static void nothing_is_put_off_while_nobody_looks(void **state)
{
    (void)state;
    start_small();
    fall();
    assert_false(purge_is_within_budget());
    assert_false(purge_raise_triggers_within_budget());
    purge_set_background(true);
    assert_false(purge_is_within_budget());
    assert_true(purge_raise_triggers_within_budget());
}

/* Where the kernel takes nothing there is nothing to wait for. */
static void what_the_kernel_keeps_is_not_waited_for(void **state)
{
    (void)state;
    start_small();
    fall();
    assert_true(purge_wants_background());
    fake_fail_kind(FAKE_PURGE, true);
    purge_beyond_budget();
    assert_false(purge_wants_background());
    fake_fail_kind(FAKE_PURGE, false);
    purge_beyond_budget();
    assert_true(purge_wants_background());
}

/* A program of one thread asks each time by its own budget, with a threshold too. */
static void a_threshold_does_not_hide_a_fall(void **state)
{
    (void)state;
    options_parse("oversize_threshold:1073741824", "MALLOC_CONF");
    start_small();
    (void)lease_slabs();
    purge_set_background(true);
    assert_true(purge_oversize());
    return_slabs(0, SLAB_RUNS);
    assert_false(purge_oversize());
    purge_set_on_call(true);
    assert_true(purge_oversize());
}

UNIT_MAIN(UNIT_TEST(a_program_that_breathes_pays_once),
          UNIT_TEST(regrets_count_for_little_while_nobody_looks),
          UNIT_TEST(many_blocks_that_breathe_pay_once), UNIT_TEST(slow_breaths_are_not_regretted),
          UNIT_TEST(one_page_is_not_regretted_before_it_is_wanted),
          UNIT_TEST(a_larger_budget_does_not_last),
          UNIT_TEST(a_decay_of_zero_keeps_nothing_for_regrets),
          UNIT_TEST(a_limit_that_is_near_leaves_no_larger_budget),
          UNIT_TEST(a_budget_that_was_learnt_yields_to_a_decay_of_zero),
          UNIT_TEST(a_decay_of_zero_keeps_nothing_of_others),
          UNIT_TEST(what_slabs_had_stays_while_somebody_looks),
          UNIT_TEST(what_large_blocks_had_goes_at_once), UNIT_TEST(a_small_fall_is_not_waited_for),
          UNIT_TEST(an_aligned_lease_notes_the_peak), UNIT_TEST(a_fall_is_forgotten),
          UNIT_TEST(an_old_fall_is_forgotten), UNIT_TEST(what_slabs_have_is_not_forgotten),
          UNIT_TEST(what_goes_in_the_background_is_looked_at_anew),
          UNIT_TEST(nothing_is_put_off_while_nobody_looks),
          UNIT_TEST(what_the_kernel_keeps_is_not_waited_for),
          UNIT_TEST(a_threshold_does_not_hide_a_fall))
