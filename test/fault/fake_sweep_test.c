/* fake_sweep_test.c - one scripted life, with the n-th call of the fake kernel refused, for each n.
 * SPDX-License-Identifier: MIT
 *
 * The script is the same each time: every kind of size from 0 to 64 MiB through every door, bursts
 * that make magazines grow, blocks that grow and shrink by realloc, purges in between. So n names
 * one call, and the sweep ends when a life meets no failure.
 *
 * After a refused call the contents of all blocks are verified and everything is walked; a refused
 * call may cost one refused request at most; at the end all is given back and nothing is left. */
#include "page_heap/page_heap.h"
#include "script.h"
#include "sweep.h"

/* A request tries several ways, and all of them twice: so many refusals in a row are more than some
 * can bear. More of them at the very start would leave a region too small for the largest
 * requests. */
enum { ROW_REFUSES = 6 };
enum { CALLS_LEAST = 25, STEPS_LEAST = 500 };

static unsigned step_of_failure;

/* Before step `step_of_failure` all is well; from it on every call fails, for ten steps. */
static void step_begins(void)
{
    if (step_of_failure == 0) return;
    if (steps_taken == step_of_failure) fake_fail_all(true);
    if (steps_taken == step_of_failure + 10) fake_fail_all(false);
}

static uint64_t calls_refused(void) { return fake_failures(); }

/* ---- the script ---- */

static void live_through_bursts(unsigned first)
{
    static const size_t burst_sizes[] = { 16, 48, 300, 2000, 9000 };

    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < 400; i++) take(first + i, burst_sizes[(i + round) % 5]);
        for (unsigned i = 0; i < 400; i++) give(first + (i * 7) % 400);
    }
}

static void live(void)
{
    live_through_all_doors(0);
    live_through_bursts(200);
    live_by_resizing(700, 12 << 20);
    give_to_the_kernel();
    fake_clock_ms(5000);
    live_through_all_doors(800);
    live_through_bursts(1000);
    give_to_the_kernel();
    live_by_resizing(1500, 12 << 20);
    give_all();
}

/* All that a life had is back; nothing of it was lost on the way. */
static void check_nothing_left(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };

    (void)prairie_purge();
    check_everything();
    if (!prairie_stats_read(&stats)) complain("no statistics", 0);
    if (stats.allocated != 0) complain("blocks were lost", stats.allocated);
    if (page_heap_used_pages(page_heap) != 0)
        complain("pages were lost", page_heap_used_pages(page_heap));
    if (stats.dirty != 0) complain("pages stayed dirty", stats.dirty);
}

static void live_on(void)
{
    check_everything();
    check_nothing_left();
    account->refusals = refusals;
    account->steps = steps_taken;
    step_of_failure = 0;
    refusals = 0;
    live_through_all_doors(0);
    live_by_resizing(300, 12 << 20);
    give_all();
    if (refusals != 0) complain("requests are refused after the failures ended", refusals);
    check_nothing_left();
}

/* ---- the sweeps ---- */

static unsigned sweep_row(uint64_t row)
{
    struct swept swept = sweep_calls(row, UINT64_MAX, (unsigned)row);

    return swept.bad + (swept.call < CALLS_LEAST) + (row >= ROW_REFUSES && swept.refusals == 0);
}

static unsigned sweep_steps(void)
{
    unsigned bad = 0, requests = 0, steps = 1, lives = 0;

    for (unsigned step = 1; step <= steps && bad < BAD_MOST; step += 1 + step / 8, lives++) {
        step_of_failure = step;
        if (!run_life(0, 0)) {
            printf("FAILED: ten steps from %u on without any kernel\n", step);
            bad++;
            continue;
        }
        requests += account->refusals;
        steps = account->steps;
    }
    step_of_failure = 0;
    printf("ten steps without a kernel: %u lives, %u requests refused, %u bad\n", lives, requests,
           bad);
    return bad + (requests == 0) + (steps < STEPS_LEAST);
}

static unsigned sweep_all(void)
{
    unsigned bad = sweep_row(1);

    bad += sweep_row(3);
    bad += sweep_row(ROW_REFUSES);
    return bad + sweep_steps();
}
