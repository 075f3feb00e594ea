/* guarded.h - what the tests of guarded blocks share. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_UNIT_GUARDED_H
#define PRAIRIE_TEST_UNIT_GUARDED_H

#include "guard/guarded.h"
#include "heap/guarded_doors.h"
#include "unit.h"

static inline void start_pool(unsigned cells)
{
    assert_true(heap_start());
    assert_true(guarded_start(cells));
}

static inline void guard_from_now(void)
{
    fake_watch_faults();
    option_values[OPTION_GUARD_SAMPLE] = 1;
    option_values[OPTION_GUARD_INTERVAL] = 0;
    guarded_obey_options();
}

/* Others stay with the program, so that magazines run empty. */
static inline char *guarded_block(size_t size)
{
    for (unsigned i = 0; i < 10000; i++) {
        char *block = prairie_malloc(size);

        if (stray_pool_has(block)) return block;
    }
    fail_msg("no guarded block of %zu bytes", size);
    return NULL;
}

static inline uint64_t held_of(size_t size)
{
    struct guarded_numbers numbers;

    guarded_count(&numbers);
    return numbers.held[class_of_size(size)];
}

#endif
