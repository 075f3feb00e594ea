/* large_cache_fuzz.c - the runs that a thread keeps for its next large blocks: L1 and L2. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "crowd.h"

const unsigned fuzz_bytes_max = 300;

static void check_cache(void)
{
    struct large_cache_numbers numbers = { 0 };

    large_cache_check(thread_front()->cache);
    large_cache_add_numbers(thread_front()->cache, &numbers);
    assert_true(numbers.pages << space.page_shift <= LARGE_CACHE_BYTES_MAX);
    assert_true(numbers.count <= numbers.pages);
}

void fuzz_one(void)
{
    oracle_start(1);
    prairie_free(prairie_malloc(1));
    while (!random_is_over()) {
        struct block *block = &crowd[random_below(16)];
        size_t size = SMALL_BYTES_MAX + 1 + random_below(LARGE_CACHE_PAGES_MAX + 3) * page_bytes();

        crowd_fail();
        if (random_below(40) == 0) thread_flush();
        else if (block->base == NULL) crowd_take(block, size);
        else if (random_below(4) == 0) crowd_resize(block, size);
        else crowd_give(block);
        crowd_succeed();
        check_cache();
        prairie_check_all();
    }
    crowd_give_all();
    thread_flush();
    prairie_check_all();
}
