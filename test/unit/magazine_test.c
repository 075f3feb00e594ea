/* magazine_test.c - each block of a magazine that comes from elsewhere is there once, and begins
 * where blocks do. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "caches.h"

static unsigned looked_class;
static void *looked_at[SLOTS_MAX];
static unsigned count;

static void look_through(void) { magazine_expect_blocks(looked_class, looked_at, count); }

static void expect_told(const char *words, const void *block)
{
    expect_abort_at(look_through, words, block);
}

/* Rows of some blocks each, upwards or downwards, one after the other in any order. */
static void lay_in_rows(unsigned *at)
{
    unsigned low[SLOTS_MAX], blocks[SLOTS_MAX], rows = 0, slot = 1;

    for (unsigned left = count; left > 0; left -= blocks[rows++]) {
        blocks[rows] = 1 + (unsigned)random_below(left < 40 ? left : 40);
        low[rows] = left - blocks[rows];
    }
    for (; rows > 0; rows--) {
        unsigned row = (unsigned)random_below(rows);
        bool rises = random_below(2) == 0;

        for (unsigned i = 0; i < blocks[row]; i++)
            at[slot++] = low[row] + (rises ? i : blocks[row] - 1 - i);
        low[row] = low[rows - 1];
        blocks[row] = blocks[rows - 1];
    }
}

enum order { RISING, FALLING, FIFTHS, ROWS, EVEN_THEN_ODD, ORDERS };

static void lay_in_order(enum order order, char *base)
{
    unsigned at[SLOTS_MAX], half = count / 2;

    lay_in_rows(at);
    for (unsigned i = 1; i <= count; i++) {
        if (order == RISING) at[i] = i;
        if (order == FALLING) at[i] = count - i;
        if (order == FIFTHS) at[i] = i * 5 % (count + 1);
        if (order == EVEN_THEN_ODD) at[i] = i <= half ? 2 * i : 2 * (i - half) - 1;
        looked_at[i] = base + (size_t)at[i] * class_bytes[looked_class];
    }
}

/* The second one is found wherever the two are. */
static void no_block_may_be_there_twice(void **state)
{
    char *base;

    (void)state;
    start_arenas(1);
    base = (char *)make_test_cache();
    looked_class = class_of_size(48);
    for (count = 2; count <= magazine_capacity(looked_class); count += 5)
        for (enum order order = 0; order < ORDERS; order++)
            for (unsigned round = 0; round < 4; round++) {
                unsigned one = round == 0 ? 1 : 1 + (unsigned)random_below(count);
                unsigned other = round < 2 ? one % count + 1 : 1 + (unsigned)random_below(count);
                void *was;

                lay_in_order(order, base);
                look_through();
                if (one == other) continue;
                was = looked_at[other];
                looked_at[other] = looked_at[one];
                expect_told("double free", looked_at[one]);
                looked_at[other] = NULL; /* M3 */
                look_through();
                looked_at[one] = NULL;
                look_through();
                looked_at[other] = was;
                look_through();
            }
}

/* All blocks of a row are there, but the first. */
static void a_row_of_interior_pointers_is_told(void **state)
{
    struct cache *cache;

    (void)state;
    start_arenas(1);
    cache = make_test_cache();
    looked_class = class_of_size(128);
    count = magazine_capacity(looked_class);
    for (unsigned i = 1; i <= count; i++) looked_at[i] = cache_take(cache, looked_class);
    look_through();
    for (unsigned i = 1; i < 10; i++) looked_at[1 + i] = (char *)looked_at[1] + (size_t)i * 8;
    expect_told("free of an interior pointer", looked_at[2]);
    for (unsigned i = 1; i < 10; i++) looked_at[1 + i] = looked_at[1];
    expect_told("double free", looked_at[1]);
}

UNIT_MAIN(UNIT_TEST(no_block_may_be_there_twice), UNIT_TEST(a_row_of_interior_pointers_is_told))
