/* run_walk_test.c - the walk over all runs: each once, in order, while they change. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "pages.h"

struct met_run {
    enum page_state state;
    size_t pages;
};

static struct {
    struct met_run run[8192];
    unsigned count;
    unsigned change_at;   /* after so many runs, */
    void (*change)(void); /* this happens; NULL: nothing */
} tour;

static void note_run(enum page_state state, size_t pages, void *context)
{
    assert_ptr_equal(context, &tour);
    assert_true(lock_is_mine(&page_heap->lock));
    assert_true(tour.count < ARRAY_COUNT(tour.run));
    tour.run[tour.count++] = (struct met_run){ state, pages };
    if (tour.change != NULL && tour.count == tour.change_at) tour.change();
}

static void walk_all(void)
{
    tour.count = 0;
    runs_visit(note_run, &tour);
    assert_false(lock_is_mine(&page_heap->lock));
}

static void expect_met(unsigned at, enum page_state state, size_t pages)
{
    assert_true(at < tour.count);
    assert_int_equal(tour.run[at].state, state);
    assert_int_equal(tour.run[at].pages, pages);
}

static size_t pages_met(void)
{
    size_t pages = 0;

    for (unsigned i = 0; i < tour.count; i++) pages += tour.run[i].pages;
    return pages;
}

static size_t pages_open(void) { return space.open_bytes >> space.page_shift; }

static void before_the_first_run_there_is_none(void **state)
{
    (void)state;
    page_heaps_start();
    walk_all();
    assert_int_equal(tour.count, 0);
    assert_true(space_start());
    walk_all();
    assert_int_equal(tour.count, 0);
}

static void each_run_is_met_once_in_order(void **state)
{
    uint32_t first, gap, last;
    unsigned at = 0;

    (void)state;
    start_pages();
    first = run_lease(3, 1, PAGE_USED).page;
    gap = lease(5);
    last = lease(2);
    assert_int_equal(gap, first + 3);
    assert_int_equal(last, gap + 5);
    give_back(gap);
    walk_all();
    expect_met(at++, PAGE_USED, 3);
    expect_met(at++, PAGE_DIRTY, 5);
    expect_met(at++, PAGE_LARGE, 2);
    if (page_heap->free_pages[FREE_CLEAN] > 0)
        expect_met(at++, PAGE_CLEAN, page_heap->free_pages[FREE_CLEAN]);
    assert_int_equal(tour.count, at);
    assert_int_equal(pages_met(), pages_open());
}

/* Regions lie apart; what is between them is no run. */
static void every_region_is_walked(void **state)
{
    unsigned large = 0;

    (void)state;
    fake_address_space(31 * MiB, 0);
    start_pages();
    while (space.region_count < 4 && run_lease(8, 1, PAGE_LARGE).page != 0) {
        large++;
        if (space.region_count > 0) fake_reserve_bytes_max(64 * KiB);
    }
    assert_true(space.region_count > 1);
    walk_all();
    assert_int_equal(pages_met(), pages_open());
    for (unsigned i = 0; i < tour.count; i++) large -= tour.run[i].state == PAGE_LARGE;
    assert_int_equal(large, 0);
}

/* The lock is given in between, and the walk goes on where it was. */
static void many_runs_take_many_holdings(void **state)
{
    const unsigned runs = 2 * inside_runs_per_hold + 10;
    uint64_t before;

    (void)state;
    start_pages();
    for (unsigned i = 0; i < runs; i++) assert_int_not_equal(run_lease(1, 1, PAGE_USED).page, 0);
    before = page_heap->lock.taken;
    walk_all();
    assert_int_equal(page_heap->lock.taken - before, 3);
    assert_int_equal(pages_met(), pages_open());
    for (unsigned i = 0; i < runs; i++) expect_met(i, PAGE_USED, 1);
}

/* ---- what changes while nobody holds the lock ---- */

static uint32_t edge; /* the page where the next holding goes on */

/* The runs on both sides of it, two pages before and three from there on, have become one. */
static void merge_over_the_edge(void)
{
    for (uint32_t page = edge - 2; page < edge + 3; page++) page_record(page)->state = PAGE_INSIDE;
    tag_as(edge - 2, 5, PAGE_LARGE);
}

/* Single pages up to the edge, where one holding of the lock ends; `pages` in one, and a mark. */
static void lay_runs(size_t pages)
{
    start_pages();
    for (unsigned i = 0; i < inside_runs_per_hold; i++) edge = run_lease(1, 1, PAGE_USED).page + 1;
    assert_int_equal(run_lease(pages, 1, PAGE_USED).page, edge);
    assert_int_equal(run_lease(7, 1, PAGE_LARGE).page, edge + pages);
    tour.change_at = inside_runs_per_hold;
}

static void a_run_that_grew_over_the_place_is_left_out(void **state)
{
    (void)state;
    lay_runs(3);
    tour.change = merge_over_the_edge;
    walk_all();
    expect_met(inside_runs_per_hold - 1, PAGE_USED, 1);
    expect_met(inside_runs_per_hold, PAGE_LARGE, 7);
    assert_int_equal(pages_met(), pages_open() - 3);
}

/* The runs before it have become one that ends with the first page of what began there. */
static void merge_up_to_the_edge(void)
{
    for (uint32_t page = edge - 3; page < edge; page++) page_record(page)->state = PAGE_INSIDE;
    tag_as(edge - 3, 4, PAGE_LARGE);
    tag_as(edge + 1, 2, PAGE_USED);
}

/* Its tag has a length, too. */
static void the_last_page_of_a_run_does_not_begin_one(void **state)
{
    (void)state;
    lay_runs(3);
    tour.change = merge_up_to_the_edge;
    walk_all();
    expect_met(inside_runs_per_hold, PAGE_USED, 2);
    expect_met(inside_runs_per_hold + 1, PAGE_LARGE, 7);
}

/* Both pages of a run of two have its length. */
static void pair_up(void)
{
    for (uint32_t page = edge - 3; page < edge + 3; page += 2) tag_as(page, 2, PAGE_USED);
}

static void among_runs_of_two_none_is_mistaken(void **state)
{
    (void)state;
    lay_runs(3);
    tour.change = pair_up;
    walk_all();
    expect_met(inside_runs_per_hold, PAGE_LARGE, 7);
}

/* What changes while the lock is given ends the walk there. */
static void expect_end_at_the_edge(void (*change)(void))
{
    lay_runs(3);
    tour.change = change;
    walk_all();
    assert_int_equal(tour.count, inside_runs_per_hold);
}

static void close_from_the_edge(void)
{
    space.region[0].open_pages = edge - space.region[0].first_page;
}

static void the_end_may_come_nearer(void **state)
{
    (void)state;
    expect_end_at_the_edge(close_from_the_edge);
}

/* Every page to the end lies inside of something whose end was not written yet. */
static void merge_without_an_end(void)
{
    uint32_t end = space.region[0].first_page + space.region[0].open_pages;

    for (uint32_t page = edge; page < end; page++) page_record(page)->state = PAGE_INSIDE;
}

static void the_search_for_a_run_ends_with_the_region(void **state)
{
    (void)state;
    expect_end_at_the_edge(merge_without_an_end);
}

static void forget_the_length(void) { page_record(edge)->run_pages = 0; }

static void a_run_without_a_length_ends_the_region(void **state)
{
    (void)state;
    expect_end_at_the_edge(forget_the_length);
}

UNIT_MAIN(UNIT_TEST(before_the_first_run_there_is_none), UNIT_TEST(each_run_is_met_once_in_order),
          UNIT_TEST(every_region_is_walked), UNIT_TEST(many_runs_take_many_holdings),
          UNIT_TEST(a_run_that_grew_over_the_place_is_left_out),
          UNIT_TEST(the_last_page_of_a_run_does_not_begin_one),
          UNIT_TEST(among_runs_of_two_none_is_mistaken), UNIT_TEST(the_end_may_come_nearer),
          UNIT_TEST(the_search_for_a_run_ends_with_the_region),
          UNIT_TEST(a_run_without_a_length_ends_the_region))
