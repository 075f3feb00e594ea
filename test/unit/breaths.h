/* breaths.h - programs that take pages and give them back, and what they hold meanwhile. */
/* SPDX-License-Identifier: MIT */
/*
 * Include it after library.h.
 */
#ifndef PRAIRIE_TEST_UNIT_BREATHS_H
#define PRAIRIE_TEST_UNIT_BREATHS_H

#include "bins.h"

static inline size_t held_pages(void) { return page_heap_used_pages(page_heap) + dirty_pages(); }

static inline void start_threads(unsigned count)
{
    huge.policy = HUGE_NEVER;
    start_arenas(2);
    decay_thread_count(count);
}

/* As a thread whose cache gave the run back. True: its cache is to be emptied. */
static inline bool return_and_look(uint32_t page)
{
    bool shrunk;

    run_return(page);
    shrunk = decay_after_return();
    check_arenas();
    return shrunk;
}

static inline void breathe(size_t pages) { (void)return_and_look(lease_written(pages)); }

static inline void breathe_often(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        breathe(burst_pages());
        fake_clock_ms(100);
    }
}

static inline size_t plain_budget(void)
{
    size_t share = burst_pages() / PURGE_PEAK_SHARE;

    return share + share / 2 + pages_of_bytes(PURGE_UNATTENDED_BYTES);
}

/* A full magazine into the depot of arena 0. */
static inline void fill_depot(unsigned class_index)
{
    void **full = meta_take(magazine_bytes(magazine_capacity(class_index)));
    bool drain;

    fill_all(0, class_index, full, magazine_capacity(class_index));
    lock_take(&arenas[0]->lock);
    full = depot_trade_full(arenas[0], class_index, full, false, &drain);
    lock_give(&arenas[0]->lock);
    assert_false(drain);
    meta_give(full, magazine_bytes(magazine_capacity(class_index)));
}

static size_t held_at_look[64], dirty_at_look[64];
static unsigned looks;

static inline void note_pages(void)
{
    if (looks < ARRAY_COUNT(held_at_look)) {
        held_at_look[looks] = held_pages();
        dirty_at_look[looks] = dirty_pages();
    }
    looks++;
}

#endif
