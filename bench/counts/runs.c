/* runs.c - marks leases and returns of page runs while more and more free runs lie about.
 * SPDX-License-Identifier: MIT
 *
 * Contains the whole library without its libc names and asks its page floor directly, so that
 * nothing but the keeper of runs is counted. Between the free runs lie used ones, which keep them
 * apart. No page is touched, so a million free runs need address space but little memory; and huge
 * pages are always wanted, for how quick the kernel finds them would change the counts. */
#include "../../src/prairie.c"

#include "../random.h"
#include "mark.h"

#include <stdio.h>

enum { SAMPLES = 5, FREE_RUNS_MAX = 1000000, SPARE_PAGES = 4096 };

static const uint32_t free_run_counts[] = { 10, 100, 1000, 10000, 100000, 1000000 };
/* One page of 4 KiB to 1 GiB. */
static const size_t lease_pages[] = { 1, 2, 4, 16, 64, 100, 256, 4096, 65536, 262144 };

static uint64_t random_state = 88172645463325252u;
static uint32_t kept[FREE_RUNS_MAX];

/* A stream of its own: the committed figures belong to the very runs that it makes. */
static uint64_t next_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 0x2545F4914F6CDD1Dull;
}

static size_t free_run_pages(void) { return random_length(next_bits(), 200); }

static struct run need(struct run run)
{
    if (run.page == 0) {
        fprintf(stderr, "runs: no memory for the runs of the test\n");
        exit(1);
    }
    return run;
}

/* Adds free runs from..to-1. All are leased first and returned afterwards, so that they do not
 * serve each other's leases. */
static void make_free_runs(uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        kept[i] = need(run_lease(free_run_pages(), 1, PAGE_LARGE)).page;
        need(run_lease(1, 1, PAGE_LARGE));
    }
    for (uint32_t i = from; i < to; i++) run_return(kept[i]);
}

static void count_size(uint32_t free_runs, size_t pages)
{
    struct run (*volatile lease)(size_t, size_t, uintptr_t) = run_lease_for;
    void (*volatile give_back)(uint32_t) = run_return;
    char name[64];

    /* Opens enough that no counted lease has to ask the kernel for more. */
    run_return(need(run_lease(pages + SPARE_PAGES, 1, PAGE_LARGE)).page);
    for (unsigned i = 0; i < SAMPLES; i++) {
        snprintf(name, sizeof name, "lease %u %zu", free_runs, pages);
        mark_next_call(name, (const void *)lease);
        struct run run = need(lease(pages, 1, purpose_of(page_heap, PAGE_LARGE)));
        snprintf(name, sizeof name, "return %u %zu", free_runs, pages);
        mark_next_call(name, (const void *)give_back);
        give_back(run.page);
        need(run_lease(free_run_pages(), 1, PAGE_LARGE)); /* the next sample finds another layout */
    }
}

int main(void)
{
    uint32_t made = 0;
    prairie_free(prairie_malloc(1)); /* starts the library */
    huge_obey_option(HUGE_ALWAYS);
    page_heap->trigger_pages = SIZE_MAX; /* nobody looks here at what is dirty */
    for (unsigned i = 0; i < sizeof free_run_counts / sizeof *free_run_counts; i++) {
        make_free_runs(made, free_run_counts[i]);
        made = free_run_counts[i];
        for (unsigned j = 0; j < sizeof lease_pages / sizeof *lease_pages; j++)
            count_size(made, lease_pages[j]);
    }
    return 0;
}
