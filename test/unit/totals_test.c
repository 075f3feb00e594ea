/* totals_test.c - what a thread took and gave back is counted, and sampled, whether it may hold
 * blocks or not. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "control_tree.h"
#include "samples.h"
#include "threads.h"

/* ---- the totals ---- */

/* Exactly what it says of itself, by every way. */
static void expect_counted(const struct prairie_thread_totals *totals)
{
    struct prairie_thread_totals before = *totals;
    uint64_t bytes = 0;

    for (size_t size = 1; size < MiB; size = size * 2 + 1) {
        void *block = prairie_malloc(size);

        bytes += prairie_usable_size(block);
        assert_int_equal(totals->allocated - before.allocated, bytes);
        assert_int_equal(totals->deallocated - before.deallocated,
                         bytes - prairie_usable_size(block));
        if (size % 2) prairie_free(block);
        else prairie_sdallocx(block, size, 0);
        assert_int_equal(totals->deallocated - before.deallocated, bytes);
    }
}

/* From pages to a class that has as many bytes, and within them. */
static void a_realloc_that_moves_is_both(void **state)
{
    const struct prairie_thread_totals *totals = prairie_thread_totals();
    struct prairie_thread_totals before;
    char *block = prairie_aligned_alloc(2 * os_page_bytes(), 3000), *moved;
    size_t bytes = prairie_usable_size(block);

    (void)state;
    assert_non_null(totals);
    before = *totals;
    moved = prairie_realloc(block, bytes);
    assert_int_equal(prairie_usable_size(moved), bytes);
    assert_ptr_not_equal(moved, block);
    assert_int_equal(totals->allocated - before.allocated, bytes);
    assert_int_equal(totals->deallocated - before.deallocated, bytes);
    before = *totals;
    assert_ptr_equal(prairie_realloc(moved, bytes - 1), moved);
    assert_int_equal(totals->allocated, before.allocated);
    assert_int_equal(totals->deallocated, before.deallocated);
    prairie_free(moved);
}

static void *count_much(void *totals)
{
    *(const struct prairie_thread_totals **)totals = prairie_thread_totals();
    for (unsigned i = 0; i < 1000; i++) prairie_free(prairie_malloc(1000));
    return NULL;
}

static void totals_outlive_the_cache(void **state)
{
    const struct prairie_thread_totals *totals, *of_other;
    uint64_t allocated;

    (void)state;
    prairie_free(prairie_malloc(1));
    totals = prairie_thread_totals();
    for (unsigned round = 0; round < 3; round++) {
        assert_true(thread_cache_off());
        allocated = totals->allocated;
        run_thread(count_much, &of_other);
        assert_ptr_not_equal(of_other, totals);
        assert_int_equal(totals->allocated, allocated);
        assert_ptr_equal(prairie_thread_totals(), totals);
        expect_counted(totals);
        thread_cache_on();
        assert_ptr_equal(prairie_thread_totals(), totals);
        expect_counted(totals);
        assert_true(thread_front()->cache->spare[class_of_size(7)].capacity != 0);
    }
    prairie_check_all();
}

/* Nobody asks: nothing is counted once the cache is back, and records are as before. */
static void without_a_question_the_front_goes(void **state)
{
    size_t used;

    (void)state;
    prairie_free(prairie_malloc(1));
    thread_flush();
    used = commit.record_bytes;
    for (unsigned i = 0; i < 5; i++) {
        assert_true(thread_cache_off());
        prairie_free(prairie_malloc(100000));
        thread_cache_on();
        assert_true(thread_front()->kind == FRONT_CACHE);
        assert_int_equal(commit.record_bytes, used);
    }
    assert_true(thread_cache_off());
    expect_counted(prairie_thread_totals());
    thread_cache_on();
    expect_counted(prairie_thread_totals());
}

static void the_first_question_without_a_cache(void **state)
{
    (void)state;
    options_parse("tcache:false", "test");
    heap_obey_options();
    expect_counted(prairie_thread_totals());
    thread_cache_on();
    expect_counted(prairie_thread_totals());
    assert_true(thread_front()->cache->spare[class_of_size(7)].capacity != 0);
}

static void *take_and_end(void *unused)
{
    prairie_free(prairie_malloc(100000));
    prairie_free(prairie_malloc(100));
    return unused;
}

/* A cache that was off is an ordinary one for the next thread. */
static void *off_and_end(void *unused)
{
    prairie_free(prairie_malloc(100));
    assert_true(thread_cache_off());
    return unused;
}

static void *expect_kept(void *unused)
{
    void *block = prairie_malloc(100);

    prairie_free(block);
    assert_ptr_equal(prairie_malloc(100), block);
    assert_true(thread_front()->kind == FRONT_CACHE);
    assert_true(thread_front()->keeps_runs);
    return unused;
}

static void records_are_as_new_for_the_next_thread(void **state)
{
    size_t used = 0;

    (void)state;
    prairie_free(prairie_malloc(1));
    run_thread(take_and_end, NULL);
    run_thread(off_and_end, NULL); /* with the blocks that the first one abandoned */
    run_thread(off_and_end, NULL);
    used = commit.record_bytes;
    for (unsigned i = 0; i < 20; i++) run_thread(off_and_end, NULL);
    assert_int_equal(commit.record_bytes, used);
    run_thread(expect_kept, NULL);
    prairie_check_all();
}

/* ---- without memory ---- */

static void without_memory_the_cache_stays(void **state)
{
    void *block;

    (void)state;
    block = prairie_malloc(100);
    prairie_free(block);
    fake_fail_all(true);
    while (meta_take(sizeof(struct exact_front)) != NULL) {}
    assert_false(thread_cache_off());
    assert_false(thread_cache_is_off());
    assert_ptr_equal(prairie_malloc(100), block);
    prairie_free(block);
    fake_fail_all(false);
    assert_true(thread_cache_off());
    prairie_check_all();
}

static void without_memory_no_thread_begins(void **state)
{
    (void)state;
    options_parse("tcache:false", "test");
    heap_obey_options();
    for (unsigned nth = 1; nth < 12; nth++) {
        fake_fail_row(nth, 2);
        prairie_free(prairie_malloc(100));
    }
    fake_fail_nth(0);
    assert_non_null(prairie_malloc(100));
    assert_true(thread_cache_is_off());
    prairie_check_all();
}

/* ---- samples ---- */

static void a_thread_without_a_cache_is_sampled(void **state)
{
    uint64_t bytes = 0;

    (void)state;
    options_parse("tcache:false", "test");
    heap_obey_options();
    prairie_free(prairie_malloc(1));
    sample_from_now(PERIOD);
    assert_true(thread_cache_is_off());
    for (unsigned i = 0; i < 20000; i++) {
        size_t size = 1 + random_below(i % 100 == 0 ? 50000 : 500);
        void *block = prairie_malloc(size);
        bytes += prairie_usable_size(block);
        prairie_free(block);
    }
    expect_close((double)bytes);
    prairie_check_all();
}

static void sampling_goes_on_through_it_all(void **state)
{
    uint64_t bytes = 0;
    const struct sampler *sampler;

    (void)state;
    prairie_free(prairie_malloc(1));
    sample_from_now(PERIOD);
    sampler = ((struct counting_front *)thread_front())->sampler;
    for (unsigned i = 0; i < 20000; i++) {
        size_t size = 1 + random_below(500);
        prairie_free(prairie_malloc(size));
        bytes += class_bytes[class_of_size(size)];
        if (i % 100 == 50) assert_true(thread_cache_off());
        if (i % 100 == 99) thread_cache_on();
        assert_ptr_equal(((struct counting_front *)thread_front())->sampler, sampler);
    }
    assert_true(thread_front()->kind == FRONT_SAMPLED);
    expect_close((double)bytes);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(a_realloc_that_moves_is_both), UNIT_TEST(totals_outlive_the_cache),
          UNIT_TEST(without_a_question_the_front_goes),
          UNIT_TEST(the_first_question_without_a_cache),
          UNIT_TEST(records_are_as_new_for_the_next_thread),
          UNIT_TEST(without_memory_the_cache_stays), UNIT_TEST(without_memory_no_thread_begins),
          UNIT_TEST(a_thread_without_a_cache_is_sampled),
          UNIT_TEST(sampling_goes_on_through_it_all))
