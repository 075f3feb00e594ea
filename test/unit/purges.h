/* purges.h - what the tests of purging share: a start, and a program that returns pages and
 * looks. */
/* SPDX-License-Identifier: MIT */
/*
 * Include it after library.h.
 */
#ifndef PRAIRIE_TEST_UNIT_PURGES_H
#define PRAIRIE_TEST_UNIT_PURGES_H

#include "pages.h"

/* Pages that are nothing but pages. */
static inline void start_small(void)
{
    huge.policy = HUGE_NEVER;
    start_pages();
}

/* Somebody gives back in the background what a larger budget leaves, and the program has
 * threads. */
static inline void start_attended(void)
{
    start_small();
    purge_set_on_call(true);
    purge_set_background(true);
}

/* What stays of a peak when nothing is in use any more. */
static inline size_t kept_of(size_t peak_pages)
{
    return max_size(pages_of_bytes(PURGE_KEEP_BYTES), peak_pages / PURGE_PEAK_SHARE);
}

/* What is beyond the budget then goes to the kernel. */
static inline void return_within_budget(uint32_t page)
{
    run_return(page);
    if (!purge_is_within_budget()) purge_beyond_budget();
    check_runs();
}

static inline void breathe_within_budget(size_t pages)
{
    return_within_budget(lease_written(pages));
}

enum { LATE_RUNS = 300 };

static uint32_t late[LATE_RUNS];
static unsigned late_count;

/* As another thread would, who frees as fast as this one purges. */
static inline void return_another(enum fake_call kind)
{
    if (kind == FAKE_PURGE && late_count > 0) run_return(late[--late_count]);
}

#endif
