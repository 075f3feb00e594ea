/* run_model_test.c - random leases, returns, extensions, trims, purges against an array. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "run_model.h"

enum { STEPS = 12000 };

static void live_long(unsigned held_max)
{
    live(held_max, STEPS);
    print_message("%u regions, %u refusals, %u extensions, %u leases of holes\n",
                  space.region_count, refusals, extensions, hole_leases);
    assert_true(extensions > 0);
}

static void small_regions_that_fill_up(void **state)
{
    (void)state;
    fake_address_space(24 * MiB, 0);
    start_pages();
    live_long(HELD_RUNS_MAX);
    assert_true(space.region_count > 1);
    assert_true(refusals > 0);
}

static void few_runs_and_much_room(void **state)
{
    (void)state;
    start_pages();
    live_long(40);
    assert_true(hole_leases > 0);
}

static void pages_of_64_kib(void **state)
{
    (void)state;
    fake_page_bytes(64 * KiB);
    start_pages();
    fake_commit_bytes_max(128 * MiB);
    live_long(60);
    assert_true(refusals > 0);
}

UNIT_MAIN(UNIT_TEST(small_regions_that_fill_up), UNIT_TEST(few_runs_and_much_room),
          UNIT_TEST(pages_of_64_kib))
