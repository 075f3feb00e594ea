/* hardened.h - what the tests of hardened processes share. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_UNIT_HARDENED_H
#define PRAIRIE_TEST_UNIT_HARDENED_H

#include "cache/quarantine.h"
#include "heap/hardened_held.h"
#include "heap/hardened_large.h"
#include "unit.h"

enum { LARGE = 100000, BLOCKS = 2000 };

static char *block; /* what the misuse is about */

static inline void harden(void) { assert_true(hardened_start()); }

static inline char *taken(size_t bytes)
{
    char *pointer = prairie_malloc(bytes);

    assert_non_null(pointer);
    assert_int_equal(prairie_usable_size(pointer), bytes);
    return pointer;
}

static inline void realloc_it(void) { (void)prairie_realloc(block, 1000); }
static inline void measure_it(void) { (void)prairie_usable_size(block); }
static inline void free_it(void) { prairie_free(block); }
/* The same, of which the checking flavour has not looked at the block before. */
static inline void give_it(void) { hardened_free(thread_front(), block); }
static inline void touch_it(void) { *(volatile char *)block = 1; }
static inline void touch_behind(void) { block[LARGE / 4096 * 4096 + 4096] = 1; }

/* So many pages may still be closed until time goes by. */
static inline void may_close(uint32_t pages)
{
    closing_left = pages;
    closing_ms = os_now_ms();
}

static inline struct quarantine *quarantine(void)
{
    prairie_free(taken(1));
    return quarantine_of(thread_front()->cache);
}

#endif
