/* malloc_test.c - malloc, calloc and free through their doors: sizes, zeros, errno, refusals. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

static bool is_block_aligned(const void *block, size_t size)
{
    return is_aligned((uintptr_t)block, size >= 16 ? 16 : 8);
}

/* ---- sizes ---- */

static void every_small_size_is_served(void **state)
{
    (void)state;
    for (size_t size = 0; size <= SMALL_BYTES_MAX; size++) {
        char *block = prairie_malloc(size);
        assert_non_null(block);
        assert_true(is_block_aligned(block, size));
        assert_int_equal(prairie_usable_size(block), class_bytes[class_of_size(size)]);
        memset(block, 1, prairie_usable_size(block));
        prairie_free(block);
    }
    prairie_check_all();
}

/* Half a KiB less where the last page has it to spare. Those begin with any of the first lines. */
static void large_sizes_are_whole_pages(void **state)
{
    (void)state;
    for (size_t size = SMALL_BYTES_MAX + 1; size <= 64 * MiB; size += size / 3) {
        char *block = prairie_malloc(size);
        assert_non_null(block);
        assert_true(is_aligned((uintptr_t)block, LINE_BYTES));
        assert_int_equal(prairie_usable_size(block),
                         round_up(size, 4096) - ((0 - size) % 4096 >= 512 ? 512 : 0));
        assert_int_equal(prairie_usable_size(block), prairie_nallocx(size, 0));
        block[0] = block[prairie_usable_size(block) - 1] = 1;
        prairie_free(block);
        prairie_check_all();
    }
}

static void size_0_gives_a_pointer_of_its_own(void **state)
{
    void *first = prairie_malloc(0), *second = prairie_malloc(0), *third = prairie_calloc(0, 5);

    (void)state;
    assert_true(first != NULL && second != NULL && third != NULL);
    assert_true(first != second && second != third && first != third);
    prairie_free(first);
    prairie_free(second);
    prairie_free(third);
}

static void absurd_sizes_are_refused(void **state)
{
    (void)state;
    for (int started = 0; started <= 1; started++) {
        for (size_t below = 0; below < (size_t)1 << 21; below = below * 2 + 1) {
            errno = 0;
            assert_null(prairie_malloc(SIZE_MAX - below));
            assert_int_equal(errno, ENOMEM);
            errno = 0;
            assert_null(prairie_calloc(1, SIZE_MAX - below));
            assert_int_equal(errno, ENOMEM);
        }
        assert_null(prairie_malloc((size_t)PTRDIFF_MAX));
        assert_null(prairie_malloc(SIZE_MAX / 2 + 1));
        prairie_free(prairie_malloc(1));
    }
    assert_true(fake_committed_bytes() < 16 * MiB);
    prairie_check_all();
}

static void products_that_overflow_are_refused(void **state)
{
    static const size_t factors[][2] = {
        { SIZE_MAX, 2 },
        { 2, SIZE_MAX },
        { BY_WORD(4 * GiB, 64 * KiB), BY_WORD(4 * GiB, 64 * KiB) },
        { SIZE_MAX / 2 + 1, 2 },
        { SIZE_MAX / 3 + 1, 3 },
        { SIZE_MAX, SIZE_MAX },
    };

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(factors); i++) {
        errno = 0;
        assert_null(prairie_calloc(factors[i][0], factors[i][1]));
        assert_int_equal(errno, ENOMEM);
        errno = 0;
        assert_null(prairie_reallocarray(NULL, factors[i][0], factors[i][1]));
        assert_int_equal(errno, ENOMEM);
    }
}

/* ---- zeros ---- */

/* Stale memory of every kind: magazines, slabs, dirty runs, purged runs. */
static void stain_the_heap(void)
{
    enum { BLOCKS = 400 };
    static void *blocks[BLOCKS];

    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t size = i % 8 == 0 ? 20000 + i * 700 : random_below(SMALL_BYTES_MAX);
        blocks[i] = prairie_malloc(size);
        memset(blocks[i], 0xff, prairie_usable_size(blocks[i]));
    }
    for (unsigned i = 0; i < BLOCKS; i++) prairie_free(blocks[i]);
    if (random_below(2) == 0) (void)prairie_purge();
}

static void calloc_is_zero_to_the_last_usable_byte(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 30; round++) {
        void *blocks[60];
        stain_the_heap();
        for (unsigned i = 0; i < 60; i++) {
            size_t size = i % 4 == 0 ? random_below(400000) : random_below(SMALL_BYTES_MAX);
            blocks[i] = i % 2 ? prairie_calloc(1, size) : prairie_calloc(size, 1);
            assert_non_null(blocks[i]);
            assert_true(all_bytes_are(blocks[i], 0, prairie_usable_size(blocks[i])));
            memset(blocks[i], 0xee, prairie_usable_size(blocks[i]));
        }
        for (unsigned i = 0; i < 60; i++) prairie_free(blocks[i]);
    }
    prairie_check_all();
}

/* Huge stale blocks are purged rather than cleared; when that is refused they are cleared after
 * all. */
static void a_huge_calloc_is_zero_whatever_the_kernel_says(void **state)
{
    size_t size = CLEAR_BYTES_MAX + CLEAR_BYTES_MAX / 2;

    (void)state;
    for (int refused = 0; refused <= 1; refused++) {
        uint64_t purged;
        char *block = prairie_malloc(size);

        memset(block, 0xff, size);
        fake_fail_kind(FAKE_PURGE, true); /* keeps its pages dirty */
        prairie_free(block);
        fake_fail_kind(FAKE_PURGE, refused);
        purged = fake_purged_bytes();
        block = prairie_calloc(1, size);
        assert_int_equal(fake_purged_bytes() > purged, !refused);
        assert_true(all_bytes_are(block, 0, size));
        prairie_free(block);
        prairie_check_all();
    }
}

/* If purging did not zero, calloc would hand out garbage, and this test would see it. */
static void a_scribbling_kernel_is_noticed(void **state)
{
    bool noticed = false;

    (void)state;
    fake_purge_does(FAKE_PURGE_SCRIBBLES);
    for (unsigned i = 0; i < 5 && !noticed; i++) {
        char *block = prairie_malloc(8 * MiB);
        memset(block, 0xff, 8 * MiB);
        prairie_free(block);
        (void)prairie_purge();
        block = prairie_calloc(1, 8 * MiB);
        noticed = !all_bytes_are(block, 0, 8 * MiB);
        prairie_free(block);
    }
    assert_true(noticed);
}

/* ---- errno ---- */

static void errno_is_kept_by_success_and_by_free(void **state)
{
    (void)state;
    stain_the_heap();
    for (unsigned i = 0; i < 5000; i++) {
        size_t size = random_below(i % 10 == 0 ? 4 * MiB : 3000);
        void *block;

        errno = 4711;
        block = random_below(2) ? prairie_malloc(size) : prairie_calloc(1, size);
        assert_int_equal(errno, 4711);
        if (random_below(8) == 0) fake_fail_nth(1);
        prairie_free(block);
        assert_int_equal(errno, 4711);
        fake_fail_nth(0);
    }
    prairie_free(NULL);
    assert_int_equal(errno, 4711);
}

/* ---- free ---- */

static void freed_blocks_are_untouched(void **state)
{
    (void)state;
    for (size_t size = 1; size <= SMALL_BYTES_MAX; size += 1 + size / 7) {
        unsigned char *block = prairie_malloc(size);
        memset(block, 0x5a, size);
        prairie_free(block);
        assert_true(all_bytes_are(block, 0x5a, size));
    }
}

static void sized_frees_take_blocks_and_nothing(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 50; round++) {
        for (size_t size = 0; size <= 40000; size += 1 + size / 5) {
            void *block = prairie_malloc(size), *aligned = prairie_aligned_alloc(64, size);
            prairie_free_sized(block, size);
            prairie_free_sized(NULL, size);
            prairie_free_aligned_sized(aligned, 64, size);
            prairie_free_aligned_sized(NULL, 64, size);
        }
    }
    prairie_check_all();
}

/* ---- refusals ---- */

static void refused_memory_is_enomem_and_passes(void **state)
{
    static const size_t sizes[] = { 0, 1, 100, 1024, 1025, 14336, 14337, 100000, 5000000 };

    (void)state;
    (void)prairie_malloc(1);
    fake_fail_all(true);
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        unsigned served = 0;
        for (;;) {
            errno = 0;
            if (prairie_malloc(sizes[i]) == NULL) break;
            served++;
        }
        assert_int_equal(errno, ENOMEM);
        errno = 0;
        assert_null(prairie_calloc(1, sizes[i]));
        assert_int_equal(errno, ENOMEM);
        prairie_check_all();
    }
    fake_fail_all(false);
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) assert_non_null(prairie_malloc(sizes[i]));
    prairie_check_all();
}

/* All memory there is goes to blocks; freed, it serves again, to the last page. */
static void memory_that_ran_out_comes_back(void **state)
{
    static void *blocks[20000];
    unsigned first_count = 0, count;

    (void)state;
    (void)prairie_malloc(1);
    fake_commit_bytes_max(fake_committed_bytes() + 16 * MiB);
    for (unsigned round = 0; round < 5; round++) {
        for (count = 0; (blocks[count] = prairie_malloc(5000)) != NULL; count++)
            memset(blocks[count], (int)count, 5000);
        if (round == 0) first_count = count;
        assert_true(count >= first_count * 9 / 10);
        for (unsigned i = 0; i < count; i++) {
            assert_true(all_bytes_are(blocks[i], (unsigned char)i, 5000));
            prairie_free(blocks[i]);
        }
        prairie_check_all();
    }
    assert_true(first_count > 2000);
}

UNIT_MAIN(UNIT_TEST(every_small_size_is_served), UNIT_TEST(large_sizes_are_whole_pages),
          UNIT_TEST(size_0_gives_a_pointer_of_its_own), UNIT_TEST(absurd_sizes_are_refused),
          UNIT_TEST(products_that_overflow_are_refused),
          UNIT_TEST(calloc_is_zero_to_the_last_usable_byte),
          UNIT_TEST(a_huge_calloc_is_zero_whatever_the_kernel_says),
          UNIT_TEST(a_scribbling_kernel_is_noticed),
          UNIT_TEST(errno_is_kept_by_success_and_by_free), UNIT_TEST(freed_blocks_are_untouched),
          UNIT_TEST(sized_frees_take_blocks_and_nothing),
          UNIT_TEST(refused_memory_is_enomem_and_passes), UNIT_TEST(memory_that_ran_out_comes_back))
