/* hardened_late_test.c - a process becomes hardened after constructors have taken blocks, bound threads
 * and asked for totals. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "hardened.h"
#include "hooks.h"

#include <jemalloc/jemalloc.h>

/* It ends where it was asked to: without the room that realloc leaves behind what has grown. */
static void blocks_from_before_grow_to_what_is_asked_for(void **state)
{
    char *before = prairie_malloc(1000);

    (void)state;
    harden();
    block = prairie_realloc(before, 1100);
    assert_int_equal(prairie_usable_size(block), 1100);
    prairie_free_sized(block, 1100);
    prairie_check_all();
}

static void blocks_from_before_go_home_for_good(void **state)
{
    char *before = prairie_malloc(100), *large = prairie_malloc(LARGE);

    (void)state;
    memset(before, 0xff, 100);
    harden();
    prairie_free(before);
    prairie_free(large);
    for (unsigned i = 0; i < BLOCKS; i++) assert_ptr_not_equal(prairie_malloc(100), before);
    prairie_check_all();
}

/* The thread's counts know what it took before. */
static void blocks_from_before_are_counted_when_they_go(void **state)
{
    char *before = prairie_malloc(100), *large = prairie_malloc(LARGE), *marked;
    size_t bytes = prairie_usable_size(before), large_bytes_before = prairie_usable_size(large);
    const struct counting_front *counting;

    (void)state;
    harden();
    counting = thread_count_calls();
    assert_non_null(counting);
    assert_int_equal(counting->deallocated, 0);
    prairie_free(before);
    assert_int_equal(counting->deallocated, bytes);
    prairie_free(large);
    assert_int_equal(counting->deallocated, bytes + large_bytes_before);
    marked = taken(LARGE);
    assert_int_equal(counting->allocated, LARGE);
    prairie_free(marked);
    assert_int_equal(counting->deallocated, bytes + large_bytes_before + counting->allocated);
}

static void a_bound_thread_is_free_to_choose(void **state)
{
    struct arena *before;

    (void)state;
    prairie_free(prairie_malloc(1));
    before = arenas[0];
    thread_bind(before);
    harden();
    assert_int_equal(before->threads, 0);
    prairie_free(taken(100));
    assert_ptr_not_equal(thread_arena(), before);
    prairie_check_all();
}

/* As in any process. */
static void totals_begin_when_the_program_asks(void **state)
{
    const struct prairie_thread_totals *totals;
    struct counting_front *counting;
    char *before;

    (void)state;
    harden();
    before = taken(100);
    prairie_free(taken(LARGE));
    totals = prairie_thread_totals();
    counting = thread_count_calls();
    assert_int_equal(counting_peak(counting), 0);
    assert_int_equal(totals->allocated, 0);
    assert_int_equal(totals->deallocated, 0);
    block = taken(100);
    assert_int_equal(totals->allocated, 100);
    prairie_free(block);
    assert_int_equal(totals->deallocated, totals->allocated);
    prairie_free(before);
    assert_int_equal(totals->deallocated, 2 * totals->allocated);
    assert_ptr_equal(prairie_thread_totals(), totals);
    assert_true(totals->allocated != 0);
    assert_int_equal(counting_peak(counting), totals->allocated);
}

/* What the thread takes and gives from now on, and nothing else. */
static const struct prairie_thread_totals *told;
static struct prairie_thread_totals expected;

static void expect_totals(uint64_t taken_bytes, uint64_t given_bytes)
{
    expected.allocated += taken_bytes;
    expected.deallocated += given_bytes;
    assert_int_equal(told->allocated, expected.allocated);
    assert_int_equal(told->deallocated, expected.deallocated);
}

/* In place or not. */
static char *resize_counted(char *pointer, size_t size)
{
    size_t old_bytes = prairie_usable_size(pointer), bytes;
    char *moved = prairie_realloc(pointer, size);

    assert_non_null(moved);
    bytes = prairie_usable_size(moved);
    if (bytes == old_bytes) expected = *told;
    else expect_totals(bytes, old_bytes);
    return moved;
}

static void take_and_give_counted(size_t size)
{
    for (unsigned way = 0; way < 4; way++) {
        void *pointer = way == 0 ? prairie_malloc(size)
                      : way == 1 ? prairie_calloc(1, size)
                      : way == 2 ? prairie_aligned_alloc(4096, size)
                                 : prairie_mallocx(size, MALLOCX_ALIGN(64));
        size_t bytes = prairie_usable_size(pointer);

        expect_totals(bytes, 0);
        pointer = resize_counted(pointer, size + 1);
        pointer = resize_counted(pointer, size + size / 2 + 3);
        pointer = resize_counted(pointer, size);
        bytes = prairie_usable_size(pointer);
        if (way % 2 == 0) prairie_free(pointer);
        else prairie_sdallocx(pointer, size, 0);
        expect_totals(0, bytes);
    }
}

static void count_all_sizes(void)
{
    told = prairie_thread_totals();
    assert_non_null(told);
    expected = *told;
    for (unsigned round = 0; round < 3; round++)
        for (size_t size = 1; size < 10 * MiB; size += 1 + size / 3) take_and_give_counted(size);
}

static void totals_are_usable_bytes(void **state)
{
    (void)state;
    harden();
    count_all_sizes();
    assert_true(thread_cache_off());
    count_all_sizes();
    prairie_check_all();
}

static void totals_of_samples_are_usable_bytes(void **state)
{
    (void)state;
    options_parse("lg_prof_sample:10", "test");
    prairie_free(prairie_malloc(1));
    assert_true(profile_start());
    harden();
    count_all_sizes();
    prairie_check_all();
}

static void totals_that_the_program_reads_go_on(void **state)
{
    struct counting_front *counting;
    uint64_t before;

    (void)state;
    prairie_free(prairie_malloc(1));
    counting = thread_count_calls();
    prairie_free(prairie_malloc(100));
    before = counting->allocated;
    assert_true(before > 0);
    harden();
    prairie_free(taken(100));
    assert_ptr_equal(counting_of(thread_front()), counting);
    assert_true(counting->allocated > before);
}

static void a_cache_that_was_off_stays_off(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    assert_true(thread_cache_off());
    harden();
    assert_true(thread_cache_is_off());
    prairie_free(taken(100));
    thread_cache_on();
    assert_int_equal(thread_front()->kind, FRONT_HARDENED);
    block = taken(100);
    prairie_free(block);
    expect_abort(free_it, "prairie: double free: ");
}

/* What was written into its blocks before they were freed is no misuse. */
static void an_explicit_cache_from_before_still_serves(void **state)
{
    int flags;

    (void)state;
    prairie_free(prairie_malloc(1));
    flags = MALLOCX_TCACHE((int)explicit_cache_create());
    block = prairie_mallocx(64, flags);
    memset(block, 1, 64);
    prairie_dallocx(block, flags);
    harden();
    block = prairie_mallocx(64, flags);
    assert_non_null(block);
    assert_int_equal(prairie_usable_size(block), 64); /* it is hardened */
    prairie_dallocx(block, flags);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(blocks_from_before_grow_to_what_is_asked_for),
          UNIT_TEST(blocks_from_before_go_home_for_good),
          UNIT_TEST(blocks_from_before_are_counted_when_they_go),
          UNIT_TEST(a_bound_thread_is_free_to_choose),
          UNIT_TEST(totals_begin_when_the_program_asks), UNIT_TEST(totals_are_usable_bytes),
          UNIT_TEST(totals_of_samples_are_usable_bytes),
          UNIT_TEST(totals_that_the_program_reads_go_on), UNIT_TEST(a_cache_that_was_off_stays_off),
          UNIT_TEST(an_explicit_cache_from_before_still_serves))
