/* guarded_pool_test.c - guarded blocks that were drained out of magazines are noted once, and fetched
 * once. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

enum { CELLS = 130, CLASS = 3 };

static char *pool;

/* A pool without memory: nothing of it is touched. Every cell has a block out, at its page's
 * start. */
static void start_pool(void)
{
    struct os_range range = os_reserve((2 * CELLS + 1) * os_page_bytes(), os_page_bytes());

    space.page_shift = highest_bit(os_page_bytes());
    pool = range.base;
    assert_non_null(pool);
    guarded_pool.bytes = range.bytes;
    for (unsigned cell = 0; cell < CELLS; cell++) {
        guarded_pool.block[cell] = pool + (2 * cell + 1) * os_page_bytes();
        guarded_pool.class_index[cell] = CLASS;
    }
    guarded_pool.first = pool;
}

static char *block_of(unsigned cell) { return guarded_pool.block[cell]; }

static void only_the_block_that_is_out_is_one(void **state)
{
    static int elsewhere;

    (void)state;
    assert_int_equal(guarded_pool_class(&elsewhere), 0); /* no pool yet */
    start_pool();
    assert_int_equal(guarded_pool_class(&elsewhere), 0);
    assert_int_equal(guarded_pool_class(block_of(0)), CLASS);
    assert_int_equal(guarded_pool_class(block_of(CELLS - 1)), CLASS);
    assert_false(stray_put(block_of(1), CLASS + 1));
    assert_int_equal(guarded_pool_class(block_of(1) + 16), 0);
    assert_int_equal(guarded_pool_class(block_of(1) - os_page_bytes()), 0); /* on a guard */
    assert_int_equal(guarded_pool_class(pool - 1), 0);
    assert_int_equal(guarded_pool_class(pool + guarded_pool.bytes), 0);
    guarded_pool.block[1] = NULL;
    assert_int_equal(guarded_pool_class(pool + 3 * os_page_bytes()), 0);
}

static void each_is_noted_and_fetched_once(void **state)
{
    static const unsigned cells[] = { 0, 1, 63, 64, 65, 127, 128, CELLS - 1 };
    enum { COUNT = sizeof cells / sizeof cells[0] };

    (void)state;
    start_pool();
    for (unsigned i = 0; i < COUNT; i++) {
        assert_false(stray_fetch(cells[i]));
        assert_true(stray_put(block_of(cells[i]), CLASS));
        assert_false(stray_put(block_of(cells[i]), CLASS));
        assert_false(stray_put(block_of(cells[i]), CLASS + 1));
    }
    for (unsigned i = 0; i < COUNT; i++) {
        assert_true(stray_fetch(cells[i]));
        assert_false(stray_fetch(cells[i]));
        for (unsigned k = i + 1; k < COUNT; k++)
            assert_true(guarded_pool.came[cells[k] / 64] >> cells[k] % 64 & 1);
    }
    for (unsigned word = 0; word < GUARDED_CELLS_MAX / 64; word++)
        assert_int_equal(guarded_pool.came[word], 0);
}

UNIT_MAIN(UNIT_TEST(only_the_block_that_is_out_is_one), UNIT_TEST(each_is_noted_and_fetched_once))
