/* runs_fuzz.c - page runs: leases, returns, splits, merges, holes and purges against an array. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "fuzz.h"
#include "unit/run_model.h"

const unsigned fuzz_bytes_max = 600;

void fuzz_one(void)
{
    static const size_t page_sizes[] = { 4 * KiB, 4 * KiB, 16 * KiB, 64 * KiB };
    unsigned held_max = 1 + (unsigned)random_below(40);

    fake_page_bytes(page_sizes[random_below(ARRAY_COUNT(page_sizes))]);
    fake_address_space((16 + random_below(4) * 8) * MiB, 0);
    if (random_below(2) == 0) huge.policy = HUGE_NEVER;
    page_heaps_start();
    if (!space_start()) return;
    live(held_max, UINT32_MAX);
}
