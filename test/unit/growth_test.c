/* growth_test.c - how many blocks the magazines of a class hold, and what is shared of that. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "caches.h"

/* ---- the first ---- */

/* A little traffic needs no metadata beyond the cache itself. */
static void few_blocks_need_no_magazine(void **state)
{
    struct cache *cache;

    (void)state;
    start_arenas(1);
    cache = make_test_cache();
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        cache_put(cache, class_index, cache_take(cache, class_index));
        assert_ptr_equal(cache_loaded(cache, class_index),
                         inside_first_slots_of(cache, class_index));
    }
    check_all(cache);
}

static void a_class_starts_small_and_grows_with_its_traffic(void **state)
{
    struct cache *cache;

    (void)state;
    start_arenas(1);
    cache = make_test_cache();
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        const struct spare *spare = &cache->spare[class_index];
        unsigned full = magazine_capacity(class_index), before = 0;
        void *blocks[600];

        for (unsigned round = 0; round < 80; round++) {
            unsigned burst = 2 * full + 2 + WIDE_BLOCKS_MAX;
            blocks[0] = cache_take(cache, class_index);
            if (round == 0) assert_in_range(spare->capacity, 1, inside_first_capacity(class_index));
            for (unsigned i = 1; i < burst; i++) blocks[i] = cache_take(cache, class_index);
            for (unsigned i = 0; i < burst; i++) cache_put(cache, class_index, blocks[i]);
            assert_true(spare->capacity >= before && spare->capacity <= full);
            before = spare->capacity;
            cache_check(cache);
        }
        assert_int_equal(spare->capacity, full);
        assert_non_null(spare->slots);
    }
    check_all(cache);
}

#define CACHE_LINE 64

/* Does a cache line hold part of a block of both? */
static bool share_a_line(void *const *some, unsigned some_count, void *const *others,
                         unsigned other_count, size_t bytes)
{
    for (unsigned i = 0; i < some_count; i++)
        for (unsigned j = 0; j < other_count; j++) {
            uintptr_t first = (uintptr_t)some[i], second = (uintptr_t)others[j];
            if (first / CACHE_LINE <= (second + bytes - 1) / CACHE_LINE
                && second / CACHE_LINE <= (first + bytes - 1) / CACHE_LINE)
                return true;
        }
    return false;
}

/* Two threads take by turns from one slab. */
static void two_caches_do_not_share_a_line(void **state)
{
    enum { FIRSTS = 3 };
    unsigned tried = 0;

    (void)state;
    start_arenas(1);
    for (unsigned class_index = 1; class_bytes[class_index] <= 512; class_index++) {
        /* Tiny magazines do not hold a line of the smallest blocks. */
        if (magazine_capacity(class_index) * class_bytes[class_index] % CACHE_LINE != 0
            && magazine_capacity(class_index) < 4)
            continue;
        tried++;
        struct cache *caches[2] = { make_test_cache(), make_test_cache() };
        void *blocks[2][FIRSTS];

        for (unsigned i = 0; i < FIRSTS; i++)
            for (unsigned j = 0; j < 2; j++) blocks[j][i] = cache_take(caches[j], class_index);
        assert_false(share_a_line(blocks[0], FIRSTS, blocks[1], FIRSTS, class_bytes[class_index]));
        for (unsigned j = 0; j < 2; j++) check_all(caches[j]);
    }
    assert_true(tried > 5);
}

/* ---- wide ones ---- */

static void burst(struct cache *cache, unsigned class_index, unsigned count)
{
    void *blocks[2 * WIDE_BLOCKS_MAX];

    for (unsigned i = 0; i < count; i++) {
        blocks[i] = cache_take(cache, class_index);
        assert_non_null(blocks[i]);
    }
    for (unsigned i = 0; i < count; i++) cache_put(cache, class_index, blocks[i]);
    cache_check(cache);
}

/* The blocks of a burst that go beyond two magazines are given away once, and stay from then on. */
static void a_class_that_wants_its_blocks_back_holds_them(void **state)
{
    unsigned tried = 0;

    (void)state;
    start_arenas(1);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        struct cache *cache = make_test_cache();
        unsigned full = magazine_capacity(class_index), count = 2 * full + 3;
        uint64_t taken;

        if (count + full > WIDE_BLOCKS_MAX) continue; /* it is refilled by as many */
        press(cache, class_index);
        for (unsigned round = 0; round < 6; round++) burst(cache, class_index, count);
        assert_true(is_wide(cache, class_index));
        assert_in_range(cache->spare[class_index].capacity, count, WIDE_BLOCKS_MAX);
        taken = arenas[0]->lock.taken;
        for (unsigned round = 0; round < 50; round++) burst(cache, class_index, count);
        assert_int_equal(arenas[0]->lock.taken, taken);
        check_all(cache);
        cache_drain_all(cache);
        assert_int_equal(cached_wide_bytes, 0);
        tried++;
    }
    assert_true(tried > 10);
}

/* A thread hands every second batch to another one, and gets as many. */
static void handed_over_blocks_stay_too(void **state)
{
    unsigned class_index = class_of_size(3000), count = 2 * magazine_capacity(class_index) + 4;
    void *blocks[2][WIDE_BLOCKS_MAX];
    struct cache *caches[2];
    uint64_t taken;

    (void)state;
    start_arenas(1);
    for (unsigned i = 0; i < 2; i++) press(caches[i] = make_test_cache(), class_index);
    for (unsigned round = 0; round < 60; round++) {
        if (round == 10) taken = arenas[0]->lock.taken;
        for (unsigned i = 0; i < 2; i++)
            for (unsigned j = 0; j < count; j++) blocks[i][j] = cache_take(caches[i], class_index);
        for (unsigned i = 0; i < 2; i++)
            for (unsigned j = 0; j < count; j++)
                cache_put(caches[(i + round) % 2], class_index, blocks[i][j]);
    }
    assert_int_equal(arenas[0]->lock.taken, taken);
    for (unsigned i = 0; i < 2; i++) check_all(caches[i]);
}

/* A thread that only takes, or only frees, or whose bursts are too large, gains nothing by one. */
static void others_get_none(void **state)
{
    unsigned class_index = CLASS_COUNT - 1;
    struct cache *maker, *eater;

    (void)state;
    start_arenas(1);
    maker = make_test_cache();
    eater = make_test_cache();
    press(maker, class_index);
    press(eater, class_index);
    for (unsigned i = 0; i < 1000; i++)
        cache_put(eater, class_index, cache_take(maker, class_index));
    for (unsigned round = 0; round < 20; round++)
        burst(maker, class_index, WIDE_BLOCKS_MAX + 3 * magazine_capacity(class_index));
    assert_false(is_wide(maker, class_index));
    assert_false(is_wide(eater, class_index));
    assert_int_equal(cached_wide_bytes, 0);
}

static unsigned burst_of_wide(unsigned class_index)
{
    return (unsigned)min_size(WIDE_BLOCKS_MAX,
                              2u * magazine_capacity(class_index)
                                  + CACHE_WIDE_BYTES_MAX / 2 / class_bytes[class_index]);
}

/* Whatever a thread does with all its classes, what it holds beyond full-size magazines is bounded;
 * and what one class no longer uses another one gets. */
static void wide_magazines_share_a_budget(void **state)
{
    unsigned first = CLASS_COUNT - 4, last = CLASS_COUNT - 1;
    struct cache *cache;

    (void)state;
    start_arenas(1);
    cache = make_test_cache();
    for (unsigned class_index = first; class_index <= last; class_index++) {
        press(cache, class_index);
        for (unsigned round = 0; round < 100; round++)
            burst(cache, class_index, burst_of_wide(class_index));
        assert_in_range(cache_wide_bytes(cache), 1, CACHE_WIDE_BYTES_MAX);
        assert_int_equal(cached_wide_bytes, cache_wide_bytes(cache));
        assert_true(is_wide(cache, class_index));
    }
    assert_true(cache->spare[last].capacity > cache->spare[first].capacity);
    check_all(cache);
    cache_drain_all(cache);
    assert_int_equal(cached_wide_bytes, 0);
}

/* One that overflowed is not taken from at the next look, however much of it lies still: 1,000 live
 * blocks of 8 to 16,000 bytes take a fifth more locks otherwise. */
static void a_wide_one_that_overflows_is_not_idle(void **state)
{
    unsigned class_index = CLASS_COUNT - 1;
    struct cache *cache, *maker;
    uint64_t overflows;

    (void)state;
    start_arenas(1);
    cache = make_test_cache();
    maker = make_test_cache();
    press(cache, class_index);
    for (unsigned round = 0; round < 20; round++)
        burst(cache, class_index, burst_of_wide(class_index));
    assert_true(is_wide(cache, class_index));
    cache->spare[class_index].low = 5;
    overflows = cache->overflows;
    for (unsigned i = 0; i < WIDE_BLOCKS_MAX; i++)
        cache_put(cache, class_index, cache_take(maker, class_index));
    assert_true(cache->overflows > overflows);
    assert_int_equal(cache->spare[class_index].low, 0);
    check_all(cache);
}

/* Many threads hold together no more than is allowed to all. */
static void all_threads_share_another_budget(void **state)
{
    enum { CACHES = 24 };
    unsigned class_index = CLASS_COUNT - 1;
    struct cache *caches[CACHES];
    size_t most, sum = 0;

    (void)state;
    start_arenas(1);
    for (unsigned i = 0; i < CACHES; i++) {
        caches[i] = make_test_cache();
        press(caches[i], class_index);
        for (unsigned round = 0; round < 20; round++)
            burst(caches[i], class_index, burst_of_wide(class_index));
        sum += cache_wide_bytes(caches[i]);
    }
    most = CACHES_WIDE_BYTES_MAX + space.open_bytes / CACHES_WIDE_SHARE;
    assert_int_equal(cached_wide_bytes, sum);
    assert_in_range(sum, most / 2, most);
    assert_false(is_wide(caches[CACHES - 1], class_index));
    for (unsigned i = 0; i < CACHES; i++) cache_drain_all(caches[i]);
    assert_int_equal(cached_wide_bytes, 0);
}

/* In the child of a fork the caches of other threads are gone, and what they may hold. */
static void a_child_counts_its_own_alone(void **state)
{
    unsigned class_index = CLASS_COUNT - 1;
    struct cache *cache;

    (void)state;
    start_arenas(1);
    cache = make_test_cache();
    press(cache, class_index);
    for (unsigned round = 0; round < 20; round++)
        burst(cache, class_index, burst_of_wide(class_index));
    assert_int_not_equal(cached_wide_bytes, 0);
    cache_list_forget_others();
    assert_int_equal(cached_wide_bytes, 0);
    cache_drain_all(cache);
    burst(cache, class_index, 1); /* whatever it counts now, others are not refused */
    cache = make_test_cache();
    press(cache, class_index);
    for (unsigned round = 0; round < 20; round++)
        burst(cache, class_index, burst_of_wide(class_index));
    assert_true(is_wide(cache, class_index));
}

UNIT_MAIN(UNIT_TEST(few_blocks_need_no_magazine),
          UNIT_TEST(a_class_starts_small_and_grows_with_its_traffic),
          UNIT_TEST(two_caches_do_not_share_a_line),
          UNIT_TEST(a_class_that_wants_its_blocks_back_holds_them),
          UNIT_TEST(handed_over_blocks_stay_too), UNIT_TEST(others_get_none),
          UNIT_TEST(wide_magazines_share_a_budget),
          UNIT_TEST(a_wide_one_that_overflows_is_not_idle),
          UNIT_TEST(all_threads_share_another_budget), UNIT_TEST(a_child_counts_its_own_alone))
