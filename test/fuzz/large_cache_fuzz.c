/* large_cache_fuzz.c - the runs that a thread keeps for its next large blocks: L1 and L2. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "crowd.h"

const unsigned fuzz_bytes_max = 300;

enum { MEMBERS = 16 };

static uint32_t staggered_in_crowd(void)
{
    uint32_t count = 0;

    for (unsigned i = 0; i < MEMBERS; i++)
        count +=
            crowd[i].base != NULL && !is_aligned(prairie_usable_size(crowd[i].base), page_bytes());
    return count;
}

static void check_cache(void)
{
    struct large_cache_numbers numbers = { .staggered = large_staggered_before };

    large_cache_check(thread_front()->cache);
    large_cache_add_numbers(thread_front()->cache, &numbers);
    assert_true(numbers.pages << space.page_shift <= LARGE_CACHE_BYTES_MAX);
    assert_true(numbers.count <= numbers.pages);
    assert_int_equal(numbers.staggered, staggered_in_crowd());
}

void fuzz_one(void)
{
    oracle_start(1);
    prairie_free(prairie_malloc(1));
    while (!random_is_over()) {
        struct block *block = &crowd[random_below(MEMBERS)];
        size_t size = round_up(SMALL_BYTES_MAX, page_bytes())
                    + random_below(LARGE_CACHE_PAGES_MAX + 3) * page_bytes()
                    - (random_below(2) != 0 ? PAGE_STAGGERED : 0);

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
