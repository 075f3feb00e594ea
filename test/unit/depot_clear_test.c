/* depot_clear_test.c - what nobody needs leaves depots and stocks again: all of it, or by
 * halves. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "depots.h"

/* Magazines of one depot may hold blocks of any arena. */
static void **mixed_magazine(void)
{
    void **magazine = empty_magazine(), *slots[2];

    for (unsigned i = 1; i <= capacity(); i++) {
        fill_all(i % 3, test_class(), slots, 1);
        magazine[i] = slots[1];
    }
    return magazine;
}

static void clearing_gives_everything_back(void **state)
{
    void *slots[SLOTS_MAX];
    size_t used;

    (void)state;
    start_arenas(3);
    used = meta_bytes_without_spares();
    for (unsigned i = 0; i < 3; i++) {
        (void)meta_give(bring(i, mixed_magazine()), magazine_bytes(capacity()));
        (void)bring(i, full_magazine(i)); /* leaves an empty one with us */
    }
    (void)fetch_some(1, slots, 2);
    arenas_drain(test_class(), slots + 1, 2);
    check_arenas();
    (void)arenas_clear(CLEAR_ALL);
    check_arenas();
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(depot_of(i)->full.count + depot_of(i)->empty.count, 0);
        assert_null(depot_of(i)->opened);
        assert_int_equal(arenas[i]->bin[test_class()].slab_count, 0);
    }
    assert_int_equal(page_heap_used_pages(page_heap), 0);
    /* All records are back but those of the three empty ones that we hold. */
    assert_int_equal(meta_bytes_without_spares() - used,
                     3 * round_up(magazine_bytes(capacity()), META_UNIT_BYTES));
}

/* Half of what nobody fetched goes at each look; what was fetched meanwhile was needed. */
static void unneeded_magazines_are_drained_by_halves(void **state)
{
    unsigned count = 0, before;
    void **full, **empty;

    (void)state;
    start_arenas(1);
    while (bring(0, full_magazine(0)) != NULL) count++;
    drain_magazine(to_drain);
    assert_true(count > 0);
    (void)arenas_clear(CLEAR_UNNEEDED); /* learns how many there are */
    before = depot_of(0)->full.count;
    empty = empty_magazine();
    for (unsigned i = 0; i < before; i++) {
        full = fetch(0, empty);
        empty = bring(0, full);
        assert_non_null(empty);
    }
    if (before == 1) assert_false(arenas_clear(CLEAR_UNNEEDED));
    for (unsigned look = 0; look < 10; look++) {
        bool some = arenas_clear(CLEAR_UNNEEDED);
        check_arenas();
        assert_int_equal(some, depot_of(0)->full.count < before);
        before = depot_of(0)->full.count;
    }
    assert_int_equal(depot_of(0)->full.count, 0);
    assert_int_equal(arenas[0]->bin[test_class()].slab_count, 0);
}

/* What all was fetched at once was needed, whatever lies there again, and with how many empty
 * ones. */
static void what_was_fetched_together_is_needed(void **state)
{
    enum { MAGAZINES_MAX = 16 };
    void **out[MAGAZINES_MAX];
    unsigned count = 0;

    (void)state;
    start_arenas(1);
    while (count < MAGAZINES_MAX && bring(0, full_magazine(0)) != NULL) count++;
    assert_true(count > 1);
    (void)arenas_clear(CLEAR_UNNEEDED); /* learns how many there are */
    count = depot_of(0)->full.count;
    for (unsigned i = 0; i < count; i++) out[i] = fetch(0, empty_magazine());
    for (unsigned i = 1; i < count; i++) assert_non_null(bring(0, out[i]));
    assert_true(depot_of(0)->empty.count > 0);
    assert_false(arenas_clear(CLEAR_UNNEEDED));
    assert_int_equal(depot_of(0)->full.count, count - 1);
    check_arenas();
}

/* Where nothing full is left half of the empty ones goes at each look, and of one more. */
static void empty_magazines_go_by_halves(void **state)
{
    enum { EMPTY_MAX = 4 };
    void **out[EMPTY_MAX];

    (void)state;
    start_arenas(1);
    for (unsigned empty = 1; empty <= min_size(EMPTY_MAX, DEPOT_MAGAZINES_MAX); empty++) {
        for (unsigned i = 0; i < empty; i++) out[i] = full_magazine(0);
        for (unsigned i = 0; i < empty; i++) assert_non_null(bring(0, out[i]));
        for (unsigned i = 0; i < empty; i++) {
            assert_ptr_equal(fetch(0, empty_magazine()), out[i]);
            assert_null(out[i][0]); /* M1 */
        }
        assert_int_equal(depot_of(0)->full.count, 0);
        assert_int_equal(depot_of(0)->empty.count, empty);
        for (unsigned left = empty; left > 0; left = depot_of(0)->empty.count) {
            assert_true(arenas_clear(CLEAR_UNNEEDED));
            assert_int_equal(depot_of(0)->empty.count, left - (left + 1) / 2);
        }
    }
    for (unsigned look = 0; look < 8; look++) (void)arenas_clear(CLEAR_UNNEEDED);
    assert_false(arenas_clear(CLEAR_UNNEEDED));
}

/* The magazine that small ones are filled from goes when nobody took of it from one look to the
 * next. */
static void what_was_opened_goes_when_it_is_not_needed(void **state)
{
    void *slots[SLOTS_MAX];

    (void)state;
    start_arenas(1);
    assert_non_null(bring(0, full_magazine(0)));
    for (unsigned look = 0; look < min_size(3, capacity() - 1); look++) {
        assert_int_equal(fetch_some(0, slots, 1), 1);
        (void)arenas_clear(CLEAR_UNNEEDED);
        assert_non_null(depot_of(0)->opened);
        assert_int_equal(depot_of(0)->opened_count, capacity() - 1 - look);
    }
    assert_true(arenas_clear(CLEAR_UNNEEDED));
    assert_null(depot_of(0)->opened);
    assert_int_equal(depot_of(0)->opened_count, 0);
    check_arenas();
}

/* Runs that arenas keep for their next slabs, of each length that a slab may have. */
static void unneeded_runs_go_back_whatever_their_length(void **state)
{
    (void)state;
    start_arenas(1);
    for (unsigned pages = 1; pages <= STOCK_PAGES_MAX; pages++) {
        struct stock *stock = &arenas[0]->stock[pages];

        give_back(lease((size_t)pages * STOCK_RUNS_MAX));
        lock_take(&arenas[0]->lock);
        stock_put(stock, stock_take(stock, page_heap, pages, true).page);
        lock_give(&arenas[0]->lock);
        assert_true(stock->count > 1);
    }
    for (unsigned look = 0; look < 8; look++) (void)arenas_clear(CLEAR_UNNEEDED);
    assert_false(arenas_clear(CLEAR_UNNEEDED));
    for (unsigned pages = 1; pages <= STOCK_PAGES_MAX; pages++)
        assert_int_equal(arenas[0]->stock[pages].count, 0);
    check_arenas();
}

/* Whether there was something to do is what the background thread stays for. */
static void a_look_tells_of_magazines_and_runs_together(void **state)
{
    void **empty;

    (void)state;
    start_arenas(1);
    empty = bring(0, full_magazine(0));
    assert_non_null(empty);
    lock_take(&arenas[0]->lock);
    for (unsigned pages = 1; pages <= STOCK_PAGES_MAX; pages++)
        stock_return(&arenas[0]->stock[pages], arenas[0]->stock[pages].count);
    stock_put(&arenas[0]->stock[1], run_lease(1, 1, PAGE_USED).page);
    lock_give(&arenas[0]->lock);
    assert_false(arenas_clear(CLEAR_UNNEEDED)); /* learns how many there are */
    assert_true(arenas_clear(CLEAR_UNNEEDED));
    assert_int_equal(depot_of(0)->full.count, 0);
    assert_int_equal(arenas[0]->stock[1].count, 0);
    check_arenas();
}

UNIT_MAIN(UNIT_TEST(clearing_gives_everything_back),
          UNIT_TEST(unneeded_magazines_are_drained_by_halves),
          UNIT_TEST(unneeded_runs_go_back_whatever_their_length),
          UNIT_TEST(a_look_tells_of_magazines_and_runs_together),
          UNIT_TEST(what_was_fetched_together_is_needed), UNIT_TEST(empty_magazines_go_by_halves),
          UNIT_TEST(what_was_opened_goes_when_it_is_not_needed))
