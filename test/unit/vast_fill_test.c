/* vast_fill_test.c - what a vast block reads as where it grows, and how little of that is
 * touched. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "vast.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/* However much that is, from where the pages are no longer cleared by hand. */
static void what_is_gained_as_zeros_is_not_touched(void **state)
{
    static const size_t gains[] = { CLEAR_BYTES_MAX, VAST };

    (void)state;
    needs_addresses(8 * VAST);
    for (unsigned i = 0; i < ARRAY_COUNT(gains); i++) {
        char *block = prairie_malloc(VAST);
        uint64_t purged = fake_purged_bytes();

        block[VAST - 1] = 1;
        block = prairie_rallocx(block, VAST + gains[i], MALLOCX_ZERO);
        expect_vast(block, VAST + gains[i]);
        assert_int_equal(fake_purged_bytes(), purged + gains[i]);
        assert_int_equal(block[VAST - 1], 1);
        assert_int_equal(block[VAST] | block[VAST + gains[i] - 1], 0);
        prairie_free(block);
    }
}

/* Of what a small block becomes, only the rest of its last page is written. */
static void a_small_block_becomes_vast_without_touching_it(void **state)
{
    static const size_t sizes[] = { 48, 4096, 14336 };

    (void)state;
    needs_addresses(8 * VAST);
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        char *block = prairie_malloc(sizes[i]);
        size_t kept = round_up(prairie_usable_size(block), page_bytes());
        uint64_t purged;

        memset(block, 1, prairie_usable_size(block));
        purged = fake_purged_bytes();
        block = prairie_rallocx(block, VAST, MALLOCX_ZERO);
        expect_vast(block, VAST);
        assert_int_equal(fake_purged_bytes(), purged + VAST - kept);
        assert_int_equal(block[0], 1);
        assert_int_equal(block[sizes[i] - 1], 1);
        assert_int_equal(block[kept - 1] & ~1, 0);
        assert_int_equal(block[kept] | block[VAST - 1], 0);
        prairie_free(block);
    }
}

static bool is_resident(char *base, size_t bytes)
{
    static unsigned char in_core[16 * KiB];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), step;

    for (size_t at = 0; at < bytes; at += step) {
        step = min_size(bytes - at, sizeof in_core * page);
        assert_int_equal(mincore(base + at, step, in_core), 0);
        for (size_t i = 0; i < step / page; i++)
            if (in_core[i] & 1) return true;
    }
    return false;
}

/* The option zero has nothing to write where the kernel's zeros are. */
static void the_option_zero_touches_no_vast_block(void **state)
{
    char *block, *run, *rest;

    (void)state;
    needs_addresses(8 * VAST);
    /* Where every process gets huge pages, what is copied would bring one. qemu knows no such call;
     * the look is the same without. */
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) assert_int_equal(errno, EINVAL);
    options_parse("zero:true", "test");
    heap_obey_options();
    block = prairie_malloc(VAST);
    block = prairie_realloc(block, 2 * VAST);
    expect_vast(block, 2 * VAST);
    assert_false(is_resident(block, 2 * VAST));
    run = prairie_malloc(REMAP_BYTES_MIN);
    run = prairie_realloc(run, VAST);
    expect_vast(run, VAST);
    assert_false(is_resident(run + REMAP_BYTES_MIN, VAST - REMAP_BYTES_MIN));
    prairie_free(run);
    run = prairie_malloc(100000);
    run = prairie_realloc(run, VAST);
    expect_vast(run, VAST);
    rest = (char *)round_up((uintptr_t)run + 100000, (size_t)sysconf(_SC_PAGESIZE));
    assert_false(is_resident(rest, (size_t)(run + VAST - rest)));
    prairie_free(run);
    prairie_free(block);
}

/* Bytes that a block loses and gains again within its last page. */
static void the_option_zero_clears_what_is_gained_of_a_page(void **state)
{
    size_t size;
    char *block;

    (void)state;
    needs_addresses(8 * VAST);
    prairie_free(prairie_malloc(1));
    options_parse("zero:true", "test");
    heap_obey_options();
    size = VAST + page_bytes();
    block = prairie_malloc(size);
    memset(block + VAST, 1, page_bytes());
    block = prairie_realloc(block, size - PAGE_STAGGERED - 88);
    expect_vast(block, size - PAGE_STAGGERED - 88);
    block = prairie_realloc(block, size);
    expect_vast(block, size);
    assert_true(all_bytes_are(block + size - PAGE_STAGGERED, 0, PAGE_STAGGERED));
    assert_int_equal(block[size - PAGE_STAGGERED - 89], 1);
    prairie_free(block);
}

static void junk_fills_what_is_gained(void **state)
{
    char *block;

    (void)state;
    needs_addresses(8 * VAST);
    if (VAST > 64 * MiB) skip();
    options_parse("junk:alloc", "test");
    heap_obey_options();
    block = prairie_malloc(VAST);
    memset(block, 1, VAST);
    block = prairie_realloc(block, 2 * VAST);
    expect_vast(block, 2 * VAST);
    assert_int_equal(block[VAST - 1], 1);
    assert_true(all_bytes_are(block + VAST, 0xa5, VAST));
    prairie_free(block);
    block = prairie_malloc(100000);
    memset(block, 1, 100000);
    block = prairie_realloc(block, VAST);
    expect_vast(block, VAST);
    assert_int_equal(block[99999], 1);
    assert_true(all_bytes_are(block + 102400, 0xa5, VAST - 102400));
    prairie_free(block);
}

UNIT_MAIN(UNIT_TEST(what_is_gained_as_zeros_is_not_touched),
          UNIT_TEST(a_small_block_becomes_vast_without_touching_it),
          UNIT_TEST(the_option_zero_touches_no_vast_block),
          UNIT_TEST(the_option_zero_clears_what_is_gained_of_a_page),
          UNIT_TEST(junk_fills_what_is_gained))
