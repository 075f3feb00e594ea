/* stock_test.c - runs leased ahead and kept after: how many, in which order, and back to the page
 * heap. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "pages.h"

static struct stock stock;

enum { PAGES = 4 };

static uint32_t take(bool ahead)
{
    uint32_t page = stock_take(&stock, page_heap, PAGES, ahead).page;

    check_runs();
    stock_check(&stock, PAGES);
    return page;
}

static void put(uint32_t page)
{
    stock_put(&stock, page);
    check_runs();
    stock_check(&stock, PAGES);
}

/* An open plain with much free memory. */
static void start(void)
{
    start_pages();
    give_back(lease(PAGES * STOCK_RUNS_MAX * 2));
}

static void one_at_a_time_unless_told_otherwise(void **state)
{
    (void)state;
    start();
    assert_int_not_equal(take(false), 0);
    assert_int_equal(stock.count, 0);
    assert_int_equal(page_heap_used_pages(page_heap), PAGES);
}

static void several_are_leased_under_one_lock_and_taken_in_ascending_order(void **state)
{
    uint64_t locks;
    uint32_t last;

    (void)state;
    start();
    locks = page_heap->lock.taken;
    last = stock_take(&stock, page_heap, PAGES, true).page;
    assert_int_equal(page_heap->lock.taken, locks + 1);
    assert_int_equal(stock.count, STOCK_RUNS_MAX - 1);
    for (unsigned i = 1; i < STOCK_RUNS_MAX; i++) {
        uint32_t page = stock_take(&stock, page_heap, PAGES, true).page;
        assert_int_equal(page, last + PAGES);
        last = page;
    }
    assert_int_equal(page_heap->lock.taken, locks + 1);
    assert_int_equal(stock.count, 0);
}

static void what_was_put_last_is_taken_first(void **state)
{
    uint32_t first, second;

    (void)state;
    start();
    first = take(false);
    second = take(false);
    put(first);
    put(second);
    assert_int_equal(take(true), second);
    assert_int_equal(take(true), first);
}

static void a_full_stock_returns_its_older_half(void **state)
{
    uint32_t pages[STOCK_RUNS_MAX + 1];
    uint64_t locks;

    (void)state;
    start();
    for (unsigned i = 0; i <= STOCK_RUNS_MAX; i++) pages[i] = take(false);
    for (unsigned i = 0; i < STOCK_RUNS_MAX; i++) put(pages[i]);
    assert_int_equal(page_heap_used_pages(page_heap), PAGES * (STOCK_RUNS_MAX + 1));
    locks = page_heap->lock.taken;
    stock_put(&stock, pages[STOCK_RUNS_MAX]);
    assert_int_equal(page_heap->lock.taken, locks + 1);
    check_runs();
    assert_int_equal(stock.count, STOCK_RUNS_MAX / 2 + 1);
    assert_int_equal(page_heap_used_pages(page_heap), PAGES * (STOCK_RUNS_MAX / 2 + 1));
    assert_int_equal(page_record(pages[0])->state, PAGE_DIRTY);
    for (unsigned i = STOCK_RUNS_MAX; i >= STOCK_RUNS_MAX / 2; i--)
        assert_int_equal(take(true), pages[i]);
}

static void clearing_returns_all(void **state)
{
    (void)state;
    start();
    put(take(true));
    assert_int_equal(stock.count, STOCK_RUNS_MAX);
    stock_return(&stock, stock.count);
    check_runs();
    assert_int_equal(stock.count, 0);
    assert_int_equal(page_heap_used_pages(page_heap), 0);
    stock_return(&stock, stock.count);
    assert_int_equal(stock.count, 0);
}

/* Leasing ahead never opens more of the region; the one run that is wanted may. */
static void growth_is_for_the_wanted_run_only(void **state)
{
    size_t free, open;

    (void)state;
    start_pages();
    (void)lease(1);
    free = page_heap->free_pages[FREE_CLEAN];
    (void)lease(free - 2 * PAGES);
    open = space.open_bytes;
    assert_int_not_equal(take(true), 0);
    assert_int_equal(stock.count, 1);
    assert_int_not_equal(take(true), 0);
    assert_int_equal(space.open_bytes, open);
    assert_int_not_equal(take(true), 0);
    assert_true(space.open_bytes > open);
    assert_int_equal(stock.count, 0);
}

static void without_memory_there_is_none(void **state)
{
    (void)state;
    start_pages();
    fake_fail_all(true);
    assert_int_equal(take(true), 0);
    assert_int_equal(take(false), 0);
    fake_fail_all(false);
    assert_int_not_equal(take(true), 0);
}

/* What nobody took between two looks goes back by halves; what was taken for a moment stays. */
static void what_nobody_took_goes_back_by_halves(void **state)
{
    (void)state;
    start();
    put(take(true));
    (void)stock_return_unneeded(&stock);
    for (unsigned left = stock.count; left > 0; left = stock.count) {
        assert_int_equal(stock_return_unneeded(&stock), (left + 1) / 2);
        check_runs();
        assert_int_equal(stock.count, left - (left + 1) / 2);
        assert_int_equal(page_heap_used_pages(page_heap), stock.count * PAGES);
    }
    put(take(true));
    (void)stock_return_unneeded(&stock);
    while (stock.count > 0) (void)take(false);
    put(take(false));
    assert_int_equal(stock_return_unneeded(&stock), 0);
}

/* T1 */
static void (*harm)(struct page *record);
static void free_it(struct page *record) { record->state = PAGE_DIRTY; }
static void shorten_it(struct page *record) { record->run_pages--; }
static void make_it_a_slab(struct page *record) { record->class_at = 2; }
static void leave_it(struct page *record) { (void)record; }

static void harm_and_walk(void)
{
    start();
    stock_put(&stock, run_lease(PAGES, 1, PAGE_USED).page);
    harm(page_record(stock.page[0]));
    stock_check(&stock, PAGES);
}

static void the_walker_knows_a_wrong_run(void **state)
{
    (void)state;
    harm = leave_it;
    expect_survival(harm_and_walk);
    harm = free_it;
    expect_abort(harm_and_walk, "prairie: broken invariant: record->state");
    harm = shorten_it;
    expect_abort(harm_and_walk, "prairie: broken invariant: record->run_pages");
    harm = make_it_a_slab;
    expect_abort(harm_and_walk, "prairie: broken invariant: record->class_at");
}

UNIT_MAIN(UNIT_TEST(one_at_a_time_unless_told_otherwise),
          UNIT_TEST(several_are_leased_under_one_lock_and_taken_in_ascending_order),
          UNIT_TEST(what_was_put_last_is_taken_first),
          UNIT_TEST(a_full_stock_returns_its_older_half), UNIT_TEST(clearing_returns_all),
          UNIT_TEST(growth_is_for_the_wanted_run_only), UNIT_TEST(without_memory_there_is_none),
          UNIT_TEST(what_nobody_took_goes_back_by_halves), UNIT_TEST(the_walker_knows_a_wrong_run))
