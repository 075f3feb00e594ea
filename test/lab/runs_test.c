/* runs_test.c - the page heap of trees: what it finds first, and that its walker sees every
 * damage. */
/* SPDX-License-Identifier: MIT */
#include "prairie.c"

#include "pages.h"

enum { KEPT = 40 };

static uint32_t kept[KEPT];

/* Runs of 1 to 40 pages, every second one returned: 20 free runs between used ones. */
static void make_runs(void)
{
    start_pages();
    for (uint32_t i = 0; i < KEPT; i++) kept[i] = lease(i + 1);
    for (uint32_t i = 0; i < KEPT; i += 2) give_back(kept[i]);
}

static void best_fit_comes_first(void **state)
{
    (void)state;
    make_runs();
    assert_int_equal(lease(7), kept[6]);   /* just as long */
    assert_int_equal(lease(20), kept[20]); /* 21 pages, the shortest that has 20 */
    assert_int_equal(lease(1), kept[0]);
    assert_int_equal(lease(1), kept[20] + 20); /* what was left of the 21 */
}

static void neighbours_merge(void **state)
{
    (void)state;
    make_runs();
    give_back(kept[9]); /* 9, 10 and 11 pages become one run */
    assert_int_equal(lease(30), kept[8]);
}

/* As with the map, or programs on trees would keep what they free, and never be asked to purge. */
static void what_is_too_much_is_said(void **state)
{
    (void)state;
    make_runs();
    page_heaps_past_trigger = 0;
    page_heap->trigger_pages = page_heap->free_pages[FREE_DIRTY] + 10;
    give_back(kept[1]); /* 2 pages, between 1 and 3 */
    assert_int_equal(page_heaps_past_trigger, 0);
    give_back(kept[9]); /* 10 pages */
    assert_int_equal(page_heaps_past_trigger, 1);
}

/* ---- damage ---- */

static struct tree_run *some_free_run(void)
{
    return at_address(RUN_VERB(root)(&kept_runs.free_runs));
}

static void wrong_length(void)
{
    make_runs();
    some_free_run()->pages++;
    check_runs();
}

static void wrong_kind(void)
{
    make_runs();
    some_free_run()->kind ^= 1;
    check_runs();
}

static void unmerged_neighbours(void)
{
    struct tree_run *run, *half;

    make_runs();
    run = at_address(RUN_VERB(last)(&kept_runs.free_runs));
    remove_size(run);
    run->pages--;
    add_size(run);
    assert_true(have_extents());
    half = kept_run_make(run->page + run->pages, 1, run->kind);
    add_free(half);
    check_runs();
}

static void not_by_size(void)
{
    struct tree_run *run;

    make_runs();
    run = some_free_run();
    remove_size(run);
    page_heap->free_pages[run->kind] += run->pages;
    check_runs();
}

static void wrong_count(void)
{
    make_runs();
    page_heap->free_pages[FREE_DIRTY]++;
    check_runs();
}

static void forgotten_used_run(void)
{
    make_runs();
    (void)take_used(kept[1]);
    check_runs();
}

static void damage_is_found(void **state)
{
    (void)state;
    expect_abort(wrong_length, "prairie: broken invariant");
    expect_abort(wrong_kind, "prairie: broken invariant");
    expect_abort(unmerged_neighbours, "prairie: broken invariant");
    expect_abort(not_by_size, "prairie: broken invariant");
    expect_abort(wrong_count, "prairie: broken invariant");
    expect_abort(forgotten_used_run, "prairie: broken invariant");
}

UNIT_MAIN(UNIT_TEST(best_fit_comes_first), UNIT_TEST(neighbours_merge),
          UNIT_TEST(what_is_too_much_is_said), UNIT_TEST(damage_is_found))
