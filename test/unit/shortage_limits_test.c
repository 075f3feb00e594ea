/* shortage_limits_test.c - the wall of the hard limit, and what the soft one tells. */
/* SPDX-License-Identifier: MIT */
#include "prairie.c"

#include "shortage.h"

static void the_hard_limit_is_a_wall(void **state)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    size_t bytes = 0;

    (void)state;
    limit_hard_set(4 * MiB);
    while (prairie_malloc(50000) != NULL) bytes += 50000;
    assert_int_equal(errno, ENOMEM);
    assert_true(bytes > 3 * MiB);
    assert_true(prairie_stats_read(&stats));
    assert_true(stats.mapped <= 4 * MiB);
    while (prairie_malloc(100) != NULL) {}
    assert_true(prairie_stats_read(&stats));
    assert_true(stats.mapped <= 4 * MiB);
    limit_hard_set(0);
    assert_int_equal(limit_hard_get(), 0);
    assert_non_null(prairie_malloc(2 * MiB));
}

static void the_reserve_serves_at_the_wall(void **state)
{
    (void)state;
    start_with_reserve();
    add(hear, "a");
    limit_hard_set(3 * MiB);
    while (told.count == 0) assert_non_null(prairie_malloc(16 * KiB));
    assert_string_equal(told.conditions, "L");
    assert_true(reserve_cur_get() < reserve_min_get());
}

static void the_soft_limit_is_told_and_told_again(void **state)
{
    const size_t soft = 3 * MiB;
    size_t first;

    (void)state;
    assert_false(reserve_min_set(0));
    add(hear, "a");
    limit_soft_set(soft);
    assert_int_equal(limit_soft_get(), soft);
    while (told.count == 0) spare_block(16 * KiB);
    first = ceiling_used_bytes();
    assert_in_range(first, soft - soft / 8, soft + soft / 8);
    assert_string_equal(told.conditions, "L");
    while (told.count == 1) spare_block(16 * KiB);
    assert_in_range(ceiling_used_bytes() - first, soft / 64, soft / 8);
    while (spare.count > 0) prairie_free(spare.block[--spare.count]);
    spare_block(16 * KiB); /* it hears that there is less */
    forget_told();
    while (told.count == 0) spare_block(16 * KiB);
    assert_in_range(ceiling_used_bytes(), soft - soft / 8, soft + soft / 8);
}

/* Small blocks come the other way through the doors. */
static void small_blocks_reach_the_soft_limit(void **state)
{
    size_t bytes = 0;

    (void)state;
    add(hear, "a");
    assert_false(reserve_min_set(0));
    limit_soft_set(2 * MiB);
    for (; told.count == 0 && bytes < 4 * MiB; bytes += 100) (void)prairie_malloc(100);
    assert_int_equal(told.count, 1);
    assert_true(bytes > 1 * MiB);
}

static void beyond_the_soft_limit_nothing_stays_dirty(void **state)
{
    void *block[8];

    (void)state;
    limit_soft_set(1 * MiB);
    for (unsigned i = 0; i < 8; i++) assert_non_null(block[i] = prairie_malloc(256 * KiB));
    prairie_free(block[0]);
    assert_true(keeper.free_pages[FREE_DIRTY] << plain.page_shift < 64 * KiB);
    assert_true(RELAXED_LOAD(purge_hard));
    for (unsigned i = 1; i < 8; i++) prairie_free(block[i]);
    prairie_free(prairie_malloc(20000)); /* looks, and sees that all is well */
    assert_false(RELAXED_LOAD(purge_hard));
}

UNIT_MAIN(UNIT_TEST(the_hard_limit_is_a_wall), UNIT_TEST(the_reserve_serves_at_the_wall),
          UNIT_TEST(the_soft_limit_is_told_and_told_again),
          UNIT_TEST(small_blocks_reach_the_soft_limit),
          UNIT_TEST(beyond_the_soft_limit_nothing_stays_dirty))
