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

/* Of the n-th site. */
static inline char *take_of(unsigned site, size_t size, size_t align)
{
    struct guarded_trace taken = { .thread = 1, .depth = 1, .return_address = { 4096 + site } };

    return guarded_take(size, align, class_of_size(size), &taken);
}

static inline void give(const char *block)
{
    struct guarded_trace given = { .thread = 2, .depth = 1, .return_address = { 4711 } };

    assert_true(guarded_give(block, &given));
}

static inline bool is_beside_guards(const char *block)
{
    const char *page = (const char *)round_down((uintptr_t)block, page_bytes());

    return fake_is_committed(page, page_bytes())
        && !fake_is_committed(page - page_bytes(), page_bytes())
        && !fake_is_committed(page + page_bytes(), page_bytes());
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

        if (guarded_pool_has(block)) return block;
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
