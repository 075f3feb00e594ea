/* holes.h - a heap in which a block lives here and there, and nothing on the pages between. */
/* SPDX-License-Identifier: MIT */
/*
 * Include it after library.h.
 */
#ifndef PRAIRIE_TEST_UNIT_HOLES_H
#define PRAIRIE_TEST_UNIT_HOLES_H

#include "unit.h"

enum { HOLED_BLOCKS = 400, HOLED_BYTES = 5000, HOLED_KEPT_EVERY = 8 };

static void *holed[HOLED_BLOCKS];

static inline bool hole_is_at(unsigned i) { return i % HOLED_KEPT_EVERY != 0; }

static inline void make_holes(void)
{
    for (unsigned i = 0; i < HOLED_BLOCKS; i++)
        if (hole_is_at(i)) prairie_free(holed[i]);
}

static inline void take_and_make_holes(void)
{
    for (unsigned i = 0; i < HOLED_BLOCKS; i++) holed[i] = prairie_malloc(HOLED_BYTES);
    make_holes();
}

/* Pages of slabs that went back to the kernel and were not used since. */
static inline size_t hole_pages_gone(void)
{
    size_t gone = 0;

    EACH_ARENA (arena) gone += arena->purged_pages;
    return gone;
}

#endif
