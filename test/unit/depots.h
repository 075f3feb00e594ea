/* depots.h - what the tests of depots share: full magazines of one class that are brought to an
 * arena's depot, and fetched from it. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_DEPOTS_H
#define PRAIRIE_TEST_DEPOTS_H

#include "bins.h"

static size_t block_bytes = 32;
static inline unsigned test_class(void) { return class_of_size(block_bytes); }
static inline unsigned capacity(void) { return magazine_capacity(test_class()); }
static inline struct depot *depot_of(unsigned arena)
{
    return &arenas[arena]->bin[test_class()].depot;
}

static inline void **empty_magazine(void)
{
    void **magazine = meta_take(magazine_bytes(capacity()));

    assert_non_null(magazine);
    return magazine;
}

/* A full magazine of blocks of one arena. */
static inline void **full_magazine(unsigned arena)
{
    void **magazine = empty_magazine();

    fill_all(arena, test_class(), magazine, capacity());
    return magazine;
}

static void **to_drain; /* what the last trade gave instead of an empty one */

/* Trades a full magazine for an empty one; NULL: for a full one, which is in to_drain. */
static inline void **bring_as(unsigned arena, void **full, bool cools)
{
    void **given;
    bool drain;

    lock_take(&arenas[arena]->lock);
    given = depot_trade_full(arenas[arena], test_class(), full, cools, &drain);
    lock_give(&arenas[arena]->lock);
    check_arenas();
    assert_non_null(given);
    to_drain = drain ? given : NULL;
    return drain ? NULL : given;
}

static inline void **bring(unsigned arena, void **full) { return bring_as(arena, full, false); }

static inline void **fetch(unsigned arena, void **empty)
{
    void **full;

    lock_take(&arenas[arena]->lock);
    full = depot_take_full(arenas[arena], test_class(), empty);
    lock_give(&arenas[arena]->lock);
    check_arenas();
    return full;
}

static inline unsigned fetch_some(unsigned arena, void **slots, unsigned wanted)
{
    unsigned got;

    lock_take(&arenas[arena]->lock);
    got = depot_take_some(arenas[arena], test_class(), slots, wanted);
    lock_give(&arenas[arena]->lock);
    check_arenas();
    return got;
}

static inline void drain_magazine(void **magazine)
{
    arenas_drain(test_class(), magazine + 1, capacity());
    meta_give(magazine, magazine_bytes(capacity()));
}

/* No arena has a row to cut a magazine from. */
static inline void end_rows(void)
{
    EACH_ARENA (arena) meta_end_row(&arena->row);
}

/* There is no record for another magazine. */
static inline void use_up_records(void)
{
    end_rows();
    while (meta_take(64) != NULL && meta.next > meta.open_base) {}
    fake_fail_all(true);
    while (meta_take(magazine_bytes(capacity())) != NULL) {}
}

/* So many blocks come back, as if in full magazines, and are wanted again. */
static inline void swing(size_t bytes)
{
    size_t each = inside_full_bytes(test_class());

    for (size_t out = 0; out < bytes; out += each) inside_swing_out(&arenas[0]->swing, each);
    for (size_t out = 0; out < bytes; out += each) inside_swing_back(&arenas[0]->swing, each);
}

#endif
