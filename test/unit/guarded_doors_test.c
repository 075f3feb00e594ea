/* guarded_doors_test.c - guarded blocks behind the doors: how many there are, what they promise as
 * any other block does, and what becomes of them in children and other threads. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "guarded.h"
#include "policy/limits.h"

#include <jemalloc/jemalloc.h>
#include <sys/wait.h>

/* ---- how many there are ---- */

static void short_programs_pay_nothing(void **state)
{
    uint64_t reserved;

    (void)state;
    fake_watch_faults();
    prairie_free(prairie_malloc(1));
    reserved = fake_calls(FAKE_RESERVE);
    for (unsigned i = 0; i < 500; i++) assert_non_null(prairie_malloc(100));
    assert_int_equal(fake_calls(FAKE_RESERVE), reserved);
    assert_false(fake_faults_are_watched());
}

static void one_comes_in_the_end(void **state)
{
    (void)state;
    fake_watch_faults();
    for (unsigned i = 0; i < 1000000; i++)
        if (guarded_pool_has(prairie_malloc(1000))) return;
    fail();
}

static void none_comes_before_its_time(void **state)
{
    unsigned before = 0, after = 0;

    (void)state;
    option_values[OPTION_GUARD_INTERVAL] = 100;
    fake_watch_faults();
    option_values[OPTION_GUARD_SAMPLE] = 1;
    guarded_obey_options();
    for (unsigned i = 0; i < 10000; i++) before += guarded_pool_has(prairie_malloc(1000));
    fake_clock_ms(99);
    for (unsigned i = 0; i < 10000; i++) before += guarded_pool_has(prairie_malloc(1000));
    fake_clock_ms(1);
    for (unsigned i = 0; i < 10000; i++) after += guarded_pool_has(prairie_malloc(1000));
    assert_int_equal(before, 1);
    assert_int_equal(after, 1);
}

/* By the thread's refills: each malloc is one here, but for those that are guarded. */
static unsigned refills_to_next(void)
{
    uint64_t before = thread_front()->cache->refills;

    for (;;) {
        char *block = prairie_malloc(100);
        bool is_guarded = guarded_pool_has(block);

        prairie_free(block);
        thread_flush();
        if (is_guarded) return (unsigned)(thread_front()->cache->refills - before);
        assert_true(thread_front()->cache->refills - before < 1000);
    }
}

static void one_comes_after_each_refill(void **state)
{
    (void)state;
    guard_from_now();
    assert_true(guarded_pool_has(prairie_malloc(100))); /* the very first */
    (void)refills_to_next();
    for (unsigned i = 0; i < 100; i++) assert_int_equal(refills_to_next(), 1);
}

/* The gaps are of all lengths up to nearly twice the mean; the first is one more of the mean. */
static void the_gaps_have_their_mean(void **state)
{
    enum { MEAN = 8, GAPS = 2000 };
    unsigned seen[2 * MEAN] = { 0 }, sum = 0, first;

    (void)state;
    fake_watch_faults();
    option_values[OPTION_GUARD_SAMPLE] = MEAN;
    option_values[OPTION_GUARD_INTERVAL] = 0;
    guarded_obey_options();
    prairie_free(prairie_malloc(1));
    first = (unsigned)thread_front()->cache->refills;
    thread_flush();
    first += refills_to_next();
    assert_in_range(first, MEAN + 1, 2 * MEAN);
    for (unsigned i = 0; i < GAPS; i++) {
        unsigned gap = refills_to_next();

        assert_in_range(gap, 1, 2 * MEAN - 1);
        seen[gap]++;
        sum += gap;
    }
    for (unsigned gap = 1; gap < 2 * MEAN; gap++) assert_true(seen[gap] > 0);
    assert_in_range(sum, (MEAN - 1) * GAPS, (MEAN + 1) * GAPS);
}

static void zero_is_off(void **state)
{
    (void)state;
    option_values[OPTION_GUARD_SAMPLE] = 0;
    option_values[OPTION_GUARD_INTERVAL] = 0;
    fake_watch_faults();
    guarded_obey_options();
    for (unsigned i = 0; i < 100000; i++) assert_false(guarded_pool_has(prairie_malloc(100)));
    assert_false(fake_faults_are_watched());
}

static void none_without_a_watch(void **state)
{
    (void)state;
    option_values[OPTION_GUARD_SAMPLE] = 1;
    option_values[OPTION_GUARD_INTERVAL] = 0;
    guarded_obey_options();
    for (unsigned i = 0; i < 10000; i++) assert_false(guarded_pool_has(prairie_malloc(100)));
}

static void none_where_addresses_are_scarce(void **state)
{
    (void)state;
    fake_address_space(256 * MiB, 0);
    guard_from_now();
    for (unsigned i = 0; i < 10000; i++) assert_false(guarded_pool_has(prairie_malloc(100)));
    assert_int_equal(class_map.mask, 0);
    assert_false(fake_faults_are_watched());
    assert_false(guarded_start(8));
}

static void none_without_memory(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    guard_from_now();
    fake_fail_kind(FAKE_RESERVE, true);
    for (unsigned i = 0; i < 100; i++) assert_false(guarded_pool_has(prairie_malloc(100)));
    fake_fail_kind(FAKE_RESERVE, false);
    prairie_check_all();
}

static void none_under_a_hard_limit(void **state)
{
    char *block;

    (void)state;
    guard_from_now();
    block = guarded_block(100);
    limits_set_hard(commit_taken_bytes() + 64 * MiB);
    for (unsigned i = 0; i < 10000; i++) assert_false(guarded_pool_has(prairie_malloc(100)));
    prairie_free(block);
    prairie_check_all();
}

/* ---- what they promise ---- */

static void every_door_keeps_its_contract(void **state)
{
    (void)state;
    guard_from_now();
    for (unsigned i = 0; i < 3000; i++) {
        size_t size = 1 + random_below(5000), bytes;
        int flags = random_below(2) == 0 ? 0 : MALLOCX_LG_ALIGN(random_below(9));
        unsigned char value = (unsigned char)i;
        char *block = flags != 0 ? prairie_mallocx(size, flags) : prairie_calloc(1, size);
        bool is_guarded = guarded_pool_has(block);

        bytes = prairie_usable_size(block);
        __builtin_memset(block, value, bytes);
        switch (random_below(5)) {
        case 0: prairie_sdallocx(block, size, flags); continue;
        case 1:
            block = prairie_realloc(block, 1 + random_below(5000));
            if (prairie_usable_size(block) < bytes) bytes = prairie_usable_size(block);
            assert_true(all_bytes_are(block, value, bytes));
            break;
        case 2:
            block = prairie_rallocx(block, 1 + random_below(5000), 0);
            if (prairie_usable_size(block) < bytes) bytes = prairie_usable_size(block);
            assert_true(all_bytes_are(block, value, bytes));
            break;
        case 3:
            if (is_guarded) assert_int_equal(prairie_xallocx(block, bytes + 1, 0, 0), bytes);
            break;
        default: break;
        }
        if (random_below(3) != 0) prairie_free(block); /* others stay */
        if (i % 100 == 0) prairie_check_all();
    }
}

static void sizes_are_those_of_nallocx(void **state)
{
    (void)state;
    guard_from_now();
    for (size_t size = 1; size <= 4096; size += 97) {
        char *block = guarded_block(size);

        assert_int_equal(prairie_usable_size(block), prairie_nallocx(size, 0));
        prairie_sdallocx(block, size, 0);
        assert_int_equal(guarded_find(block).kind, GUARDED_GONE);
    }
}

static void it_is_counted(void **state)
{
    struct prairie_stats before = { .struct_bytes = sizeof before }, after = before;
    char *block;

    (void)state;
    prairie_free(prairie_malloc(1));
    guard_from_now();
    prairie_stats_read(&before);
    block = prairie_malloc(1000);
    assert_true(guarded_pool_has(block)); /* the first one is */
    prairie_stats_read(&after);
    assert_int_equal(after.allocated - before.allocated, prairie_nallocx(1000, 0));
    assert_true(after.active >= after.allocated && after.mapped >= after.active);
    prairie_free(block);
    prairie_stats_read(&after);
    assert_int_equal(after.allocated, before.allocated);
}

/* ---- children and threads ---- */

static bool some_are_guarded(void)
{
    for (unsigned i = 0; i < 1000; i++)
        if (guarded_pool_has(prairie_malloc(100))) return true;
    return false;
}

static void expect_pool_in_child(void)
{
    int status;

    assert_false(some_are_guarded());
    if (fake_fork() == 0) _exit(some_are_guarded() ? 0 : 1);
    assert_true(wait(&status) > 0 && status == 0);
}

/* The child does not have the thread that was at it. */
static void a_child_opens_what_another_thread_was_opening(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    guard_from_now();
    *inside_pool_opener() = 1;
    expect_pool_in_child();
    start_pool(8);
    expect_pool_in_child();
}

static void a_child_has_the_pool(void **state)
{
    char *block;
    int status;

    (void)state;
    guard_from_now();
    block = guarded_block(100);
    if (fake_fork() == 0) {
        prairie_free(block);
        prairie_free(guarded_block(100));
        prairie_check_all();
        _exit(guarded_find(block).kind == GUARDED_GONE ? 0 : 1);
    }
    assert_true(wait(&status) > 0 && status == 0);
    assert_int_equal(guarded_find(block).kind, GUARDED_BLOCK);
    prairie_free(block);
}

/* Blocks go to where nobody saw them come from. */
static void *free_there(void *block)
{
    prairie_free(block);
    return NULL;
}

static void another_thread_may_free_it(void **state)
{
    char *block;
    pthread_t thread;

    (void)state;
    guard_from_now();
    block = guarded_block(100);
    assert_int_equal(pthread_create(&thread, NULL, free_there, block), 0);
    (void)pthread_join(thread, NULL);
    assert_int_equal(guarded_find(block).kind, GUARDED_GONE);
    prairie_check_all();
}

static void *take_and_give(void *unused)
{
    for (unsigned i = 0; i < 3000; i++) {
        char *kept[8];

        for (unsigned k = 0; k < 8; k++) {
            kept[k] = prairie_malloc(16 * (k + 1));
            *kept[k] = 1;
        }
        for (unsigned k = 0; k < 8; k++) prairie_free(kept[k]);
        if (i % 100 == 0) thread_flush();
    }
    return unused;
}

static void threads_share_the_pool(void **state)
{
    pthread_t thread[3];

    (void)state;
    guard_from_now();
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, take_and_give, NULL), 0);
    for (unsigned i = 0; i < 3; i++) (void)pthread_join(thread[i], NULL);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(short_programs_pay_nothing), UNIT_TEST(one_comes_in_the_end),
          UNIT_TEST(none_comes_before_its_time), UNIT_TEST(zero_is_off),
          UNIT_TEST(none_without_a_watch), UNIT_TEST(none_where_addresses_are_scarce),
          UNIT_TEST(none_without_memory), UNIT_TEST(none_under_a_hard_limit),
          UNIT_TEST(every_door_keeps_its_contract), UNIT_TEST(sizes_are_those_of_nallocx),
          UNIT_TEST(it_is_counted), UNIT_TEST(a_child_has_the_pool),
          UNIT_TEST(another_thread_may_free_it), UNIT_TEST(threads_share_the_pool),
          UNIT_TEST(one_comes_after_each_refill), UNIT_TEST(the_gaps_have_their_mean),
          UNIT_TEST(a_child_opens_what_another_thread_was_opening))
