/* decay_model.c - pages go back to the kernel while others lease and return them: no page has two
 * holders, and what is said to be zero is. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "explore.h"

#include <string.h>

enum { RUNS = 4 };
#define PAGES ((size_t)3)

static struct run leased[RUNS];
static uint32_t seed_runs[RUNS];

static void fill(uint32_t page, size_t pages)
{
    memset(page_address(page), 0x77, pages << space.page_shift);
}

/* Dirty runs in several places. */
static void setup(void)
{
    prairie_free(prairie_malloc(1));
    for (unsigned i = 0; i < RUNS; i++) {
        seed_runs[i] = run_lease(PAGES + i, 1, PAGE_USED).page;
        (void)run_lease(1, 1, PAGE_USED);
        fill(seed_runs[i], PAGES + i);
    }
    for (unsigned i = 0; i < RUNS; i++) run_return(seed_runs[i]);
}

static void lease_some(unsigned from)
{
    for (unsigned i = from; i < from + RUNS / 2; i++) {
        const unsigned char *bytes;

        leased[i] = run_lease(PAGES, 1, PAGE_USED);
        expect(leased[i].page != 0);
        bytes = (const unsigned char *)page_address(leased[i].page);
        for (size_t at = 0; leased[i].zero && at < PAGES << space.page_shift; at += 512)
            expect(bytes[at] == 0);
        fill(leased[i].page, PAGES);
    }
}

static void body(unsigned thread)
{
    if (thread == 0) {
        (void)purge_all();
        return;
    }
    lease_some(0);
    run_return(leased[0].page);
    leased[0].page = 0;
    lease_some(RUNS / 2);
}

static void finish(void)
{
    for (unsigned i = 1; i < RUNS; i++)
        for (unsigned j = 1; j < i; j++)
            expect(leased[i].page + PAGES <= leased[j].page
                   || leased[j].page + PAGES <= leased[i].page);
    prairie_check_all();
    for (unsigned i = 1; i < RUNS; i++) run_return(leased[i].page);
    (void)purge_all();
    prairie_check_all();
}

static void split(void) { explore_split(&page_heap->lock.state); }

const struct model decay_model = {
    .name = "decay",
    .threads = 2,
    .interruptions = 3,
    .setup = setup,
    .body = body,
    .finish = finish,
    .breakages = { { "taking the page heap's lock is not one step", split } },
};
