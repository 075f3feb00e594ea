/* zero_size_test.c - what malloc(0) and its kin return: addresses that nobody may touch. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "blackbox/hidden.h"
#include "heap/zero_size.h"
#include "unit.h"

#include <errno.h>
#include <jemalloc/jemalloc.h>
#include <pthread.h>

static void expect_nothing_there(const void *block)
{
    assert_non_null(block);
    assert_int_equal(zero_size_kind(block), POINTER_ZERO_SIZE);
    assert_int_equal(prairie_usable_size(block), 0);
}

static void every_door_gives_an_address_of_its_own(void **state)
{
    void *blocks[6];

    (void)state;
    blocks[0] = prairie_malloc(0);
    blocks[1] = prairie_calloc(0, 8);
    blocks[2] = prairie_realloc(NULL, 0);
    blocks[3] = prairie_aligned_alloc(16, 0);
    blocks[4] = prairie_calloc(8, 0);
    assert_int_equal(prairie_posix_memalign(&blocks[5], 64, 0), 0);
    for (unsigned i = 0; i < 6; i++) {
        expect_nothing_there(blocks[i]);
        for (unsigned other = 0; other < i; other++) assert_ptr_not_equal(blocks[i], blocks[other]);
    }
    assert_true(is_aligned((uintptr_t)blocks[3], 16) && is_aligned((uintptr_t)blocks[5], 64));
    for (unsigned i = 0; i < 6; i++) prairie_free(blocks[i]);
    for (unsigned i = 0; i < 6; i++) assert_int_equal(zero_size_kind(blocks[i]), POINTER_FREED);
    prairie_check_all();
}

static void read_one(void)
{
    volatile char *block = prairie_malloc(0);
    (void)*block;
}

static void write_one(void) { *(volatile char *)prairie_calloc(0, 1) = 1; }

static void nobody_reads_or_writes_it(void **state)
{
    (void)state;
    expect_fault(read_one);
    expect_fault(write_one);
}

/* Every alignment up to the page; beyond it the block has pages. */
static void it_is_aligned_as_asked(void **state)
{
    (void)state;
    for (size_t align = 1; align <= 4 * page_bytes(); align *= 2) {
        void *block = prairie_memalign(align, 0);
        assert_true(is_aligned((uintptr_t)block, align));
        assert_int_equal(prairie_usable_size(block) == 0, align <= page_bytes());
        prairie_free(block);
    }
}

static void it_grows_and_shrinks(void **state)
{
    char *block = prairie_realloc(prairie_malloc(0), 100);

    (void)state;
    block[99] = 1;
    prairie_free(block);
    block = prairie_rallocx(prairie_malloc(0), 100000, 0);
    block[99999] = 1;
    prairie_free(block);
    block = prairie_malloc(0);
    assert_int_equal(prairie_xallocx(block, 100, 0, 0), 0);
    prairie_free_sized(block, 0);
    assert_int_equal(zero_size_kind(block), POINTER_FREED);
}

/* Whatever the thread holds of the class that the alignment alone would lead to. */
static void flags_make_no_difference(void **state)
{
    int flags = MALLOCX_ALIGN(64);
    void *warm = prairie_malloc(64), *block;

    (void)state;
    prairie_free(warm);
    for (unsigned i = 0; i < 20; i++) {
        block = prairie_mallocx(0, flags);
        expect_nothing_there(block);
        assert_true(is_aligned((uintptr_t)block, 64));
        prairie_sdallocx(block, 0, flags);
        assert_int_equal(zero_size_kind(block), POINTER_FREED);
        warm = prairie_malloc(64);
        assert_int_equal(prairie_usable_size(warm), 64);
    }
    block = prairie_rallocx(prairie_mallocx(0, 0), 0, MALLOCX_ZERO);
    expect_nothing_there(block);
}

static void tell_no_size(void) { prairie_free_sized(prairie_malloc(100), 0); }

static void a_size_of_0_that_is_wrong_is_told(void **state)
{
    (void)state;
    expect_abort(tell_no_size, "prairie: wrong size in sized delete: 0x");
}

static void give_twice(void)
{
    void *block = prairie_malloc(0);

    prairie_free(block);
    prairie_free(hidden(block));
}

static void give_sized_twice(void)
{
    void *block = prairie_malloc(0);

    prairie_free_sized(block, 0);
    prairie_free_sized(hidden(block), 0);
}

static void give_beside(void) { prairie_free((char *)prairie_malloc(0) + 1); }
static void give_another(void) { prairie_free((char *)prairie_malloc(0) + 16); }

static void resize_freed(void)
{
    void *block = prairie_malloc(0);

    prairie_free(block);
    (void)prairie_realloc(hidden(block), 10);
}

static void misuse_is_told(void **state)
{
    (void)state;
    expect_abort(give_twice, "prairie: double free: 0x");
    expect_abort(give_sized_twice, "prairie: double free: 0x");
    expect_abort(give_beside, "prairie: free of an interior pointer: 0x");
    expect_abort(give_another, "prairie: double free: 0x");
    expect_abort(resize_freed, "prairie: realloc of a freed pointer: 0x");
}

/* For as long as there are others. */
static void an_address_that_came_back_rests(void **state)
{
    void *first = prairie_malloc(0);

    (void)state;
    prairie_free(first);
    for (unsigned i = 0; i < 100000; i++) {
        void *block = prairie_malloc(0);
        assert_ptr_not_equal(block, first);
        prairie_free(block);
    }
}

/* They have the smallest block's bytes then, as with the option, and go back the same way. */
static void expect_bytes(void)
{
    char *block = prairie_malloc(0);

    if (prairie_usable_size(block) < 8) _exit(1);
    block[7] = 1;
    prairie_free_sized(block, 0);
    prairie_check_all();
}

static void without_address_space(void)
{
    prairie_free(prairie_malloc(1));
    fake_fail_kind(FAKE_RESERVE, true);
    expect_bytes();
}

static void without_the_guard(void)
{
    options_parse("guard_zero_size:false", "test");
    expect_bytes();
}

static void without_a_number_left(void)
{
    for (unsigned i = 0; i < 1u << 18; i++)
        if (prairie_usable_size(prairie_malloc(0)) != 0) _exit(1);
    expect_bytes();
}

static void where_there_is_no_address_it_has_bytes(void **state)
{
    (void)state;
    expect_survival(without_address_space);
    expect_survival(without_the_guard);
    expect_survival(without_a_number_left);
}

static void every_call_may_be_refused(void **state)
{
    (void)state;
    fake_fail_all(true);
    assert_null(prairie_malloc(0));
    assert_int_equal(errno, ENOMEM);
    fake_fail_all(false);
    expect_nothing_there(prairie_malloc(0));
}

/* For so many calls. */
static void a_refusal_of_address_space_is_remembered(void **state)
{
    void *block = prairie_malloc(1);
    uint64_t asked;

    (void)state;
    prairie_free(block);
    fake_fail_kind(FAKE_RESERVE, true);
    prairie_free(prairie_malloc(0));
    asked = fake_calls(FAKE_RESERVE);
    for (unsigned i = 0; i < 64; i++) {
        block = prairie_malloc(0);
        assert_int_not_equal(prairie_usable_size(block), 0);
        prairie_free(block);
    }
    assert_int_equal(fake_calls(FAKE_RESERVE), asked);
    fake_fail_kind(FAKE_RESERVE, false);
    expect_nothing_there(prairie_malloc(0));
}

/* They may lie where a vast block was, which is remembered as freed. */
static void old_vast_blocks_do_not_matter(void **state)
{
    char *vast, *block;

    (void)state;
    needs_addresses(2 * VAST_BYTES_MIN);
    vast = prairie_malloc(VAST_BYTES_MIN);
    prairie_free(vast);
    fake_next_place(vast);
    block = prairie_malloc(0);
    assert_in_range(block - vast, 0, VAST_BYTES_MIN);
    expect_nothing_there(block);
    prairie_free(block);
    prairie_free(prairie_realloc(prairie_malloc(0), 10));
}

static void *take_and_give(void *unused)
{
    void *blocks[64];

    for (unsigned round = 0; round < 200; round++) {
        for (unsigned i = 0; i < 64; i++) blocks[i] = prairie_malloc(0);
        for (unsigned i = 0; i < 64; i++) prairie_free(blocks[i]); /* twice would be told */
    }
    return unused;
}

static void threads_share_them(void **state)
{
    pthread_t thread[4];

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, take_and_give, NULL), 0);
    for (unsigned i = 0; i < 4; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(every_door_gives_an_address_of_its_own), UNIT_TEST(nobody_reads_or_writes_it),
          UNIT_TEST(it_is_aligned_as_asked), UNIT_TEST(it_grows_and_shrinks),
          UNIT_TEST(flags_make_no_difference), UNIT_TEST(a_size_of_0_that_is_wrong_is_told),
          UNIT_TEST(misuse_is_told), UNIT_TEST(an_address_that_came_back_rests),
          UNIT_TEST(where_there_is_no_address_it_has_bytes), UNIT_TEST(every_call_may_be_refused),
          UNIT_TEST(a_refusal_of_address_space_is_remembered),
          UNIT_TEST(old_vast_blocks_do_not_matter), UNIT_TEST(threads_share_them))
