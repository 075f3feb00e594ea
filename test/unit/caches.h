/* caches.h - what the tests of caches share. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_CACHES_H
#define PRAIRIE_TEST_CACHES_H

#include "bins.h"

static struct cache *make_test_cache(void)
{
    struct cache *cache = cache_make();

    assert_non_null(cache);
    return cache;
}

static void check_all(struct cache *cache)
{
    cache_check(cache);
    check_arenas();
}

/* Bursts of takes and puts, until the class has both its full-size magazines. They are too large
 * for a wide one. */
static void press(struct cache *cache, unsigned class_index)
{
    unsigned burst = 5 * magazine_capacity(class_index) + WIDE_BLOCKS_MAX;
    void **blocks = calloc(burst, sizeof *blocks);

    for (unsigned round = 0; round < 60; round++) {
        for (unsigned i = 0; i < burst; i++) {
            blocks[i] = cache_take(cache, class_index);
            assert_non_null(blocks[i]);
        }
        for (unsigned i = 0; i < burst; i++) cache_put(cache, class_index, blocks[i]);
    }
    assert_true(is_full_size(cache, class_index));
    assert_non_null(cache->spare[class_index].slots);
    free(blocks);
    /* What is left of that would decide about depots. */
    (void)arenas_clear(CLEAR_ALL);
    arenas[0]->swing = (struct swing){ .bytes = 0 };
}

#endif
