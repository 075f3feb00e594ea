/* aligned_test.c - every power of two with every size: aligned, usable, or refused in time. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

static void check_block(char *block, size_t align, size_t size)
{
    assert_non_null(block);
    assert_true(is_aligned((uintptr_t)block, align));
    assert_true(prairie_usable_size(block) >= size);
    if (size > 0) block[0] = block[size - 1] = 1;
}

static void every_alignment_with_every_kind_of_size(void **state)
{
    static const size_t sizes[] = { 0,    1,    7,     8,     15,     16,     17,   63,
                                    64,   100,  128,   1000,  1024,   1025,   4095, 4096,
                                    4097, 8192, 14336, 14337, 100000, 1 << 20 };

    (void)state;
    for (size_t align = 1; align <= 4 * MiB; align *= 2) {
        for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
            void *blocks[3];
            for (unsigned j = 0; j < 3; j++) {
                blocks[j] = prairie_aligned_alloc(align, sizes[i]);
                check_block(blocks[j], align, sizes[i]);
            }
            assert_true(blocks[0] != blocks[1] && blocks[1] != blocks[2] && blocks[0] != blocks[2]);
            for (unsigned j = 0; j < 3; j++) prairie_free(blocks[j]);
        }
        prairie_check_all();
    }
}

/* Large alignments with sizes at which sums wrap: always refused, never slow. */
static void absurd_alignments_are_refused(void **state)
{
    (void)state;
    for (int started = 0; started <= 1; started++) {
        for (unsigned bit = BY_WORD(47, 31); bit < SIZE_BITS; bit++) {
            size_t align = (size_t)1 << bit;
            for (size_t below = 0; below < 100000; below = below * 3 + 1) {
                void *block = &block;
                errno = 0;
                assert_null(prairie_aligned_alloc(align, SIZE_MAX - below));
                assert_int_equal(errno, ENOMEM);
                assert_null(prairie_aligned_alloc(align, align - below));
                assert_null(prairie_aligned_alloc(align, 0 - align + below));
                assert_null(prairie_aligned_alloc(align, below));
                assert_int_equal(prairie_posix_memalign(&block, align, below), ENOMEM);
                assert_ptr_equal(block, &block);
            }
        }
        prairie_free(prairie_malloc(1));
    }
    assert_true(fake_committed_bytes() < 16 * MiB);
    prairie_check_all();
}

static void odd_alignments(void **state)
{
    static const size_t odd[] = {
        0, 3, 5, 6, 7, 9, 24, 100, 4095, SIZE_MAX, SIZE_MAX - 1, (SIZE_MAX >> 1) + 2
    };
    void *block;

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(odd); i++) {
        errno = 0;
        assert_null(prairie_aligned_alloc(odd[i], 100));
        assert_int_equal(errno, EINVAL);
        block = &block;
        errno = 4711;
        assert_int_equal(prairie_posix_memalign(&block, odd[i], 100), EINVAL);
        assert_int_equal(errno, 4711);
        assert_ptr_equal(block, &block);
        errno = 0;
        block = prairie_memalign(odd[i], 100); /* rounds up instead */
        if (odd[i] > (SIZE_MAX >> 1) + 1) {
            assert_null(block);
            assert_int_equal(errno, EINVAL);
        } else {
            check_block(block,
                        odd[i] == 0 ? 1
                                    : (size_t)1 << (highest_bit(odd[i]) + !is_power_of_two(odd[i])),
                        100);
            prairie_free(block);
        }
    }
    for (size_t align = 1; align < sizeof(void *); align *= 2)
        assert_int_equal(prairie_posix_memalign(&block, align, 100), EINVAL);
}

static void posix_memalign_returns_its_errors(void **state)
{
    void *block = NULL;

    (void)state;
    errno = 4711;
    assert_int_equal(prairie_posix_memalign(&block, 64, 1000), 0);
    check_block(block, 64, 1000);
    prairie_free(block);
    fake_fail_all(true);
    block = &block;
    assert_int_equal(prairie_posix_memalign(&block, 64, 64 * MiB), ENOMEM);
    assert_ptr_equal(block, &block);
    assert_int_equal(errno, 4711);
    fake_fail_all(false);
    prairie_check_all();
}

static size_t page_size_to_try;

static void pages_from_valloc(void)
{
    char *block;

    fake_page_bytes(page_size_to_try);
    for (size_t size = 0; size < 300000; size = size * 2 + 1) {
        block = prairie_valloc(size);
        check_block(block, page_size_to_try, size);
        prairie_free(block);
        block = prairie_pvalloc(size);
        check_block(block, page_size_to_try,
                    max_size(round_up(size, page_size_to_try), page_size_to_try));
        prairie_free(block);
    }
    errno = 0;
    assert_null(prairie_pvalloc(SIZE_MAX));
    assert_int_equal(errno, ENOMEM);
    assert_null(prairie_valloc(SIZE_MAX));
    for (size_t align = 8; align <= 1 << 20; align *= 2) {
        block = prairie_aligned_alloc(align, 5000);
        check_block(block, align, 5000);
        prairie_free(block);
    }
    prairie_check_all();
}

static void page_alignment_follows_the_page_size(void **state)
{
    (void)state;
    for (page_size_to_try = 4096; page_size_to_try <= 65536; page_size_to_try *= 4)
        expect_survival(pages_from_valloc);
}

/* Freed aligned blocks serve the next ones: the heap does not grow. */
static void aligned_blocks_are_reused(void **state)
{
    size_t open = 0;

    (void)state;
    for (unsigned round = 0; round < 200; round++) {
        void *blocks[20];
        for (unsigned i = 0; i < 20; i++)
            blocks[i] = prairie_aligned_alloc((size_t)1 << (4 + i % 16), 70000);
        for (unsigned i = 0; i < 20; i++) prairie_free(blocks[(i * 7) % 20]);
        if (round == 20) open = space.open_bytes;
    }
    assert_int_equal(space.open_bytes, open);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(every_alignment_with_every_kind_of_size),
          UNIT_TEST(absurd_alignments_are_refused), UNIT_TEST(odd_alignments),
          UNIT_TEST(posix_memalign_returns_its_errors),
          UNIT_TEST(page_alignment_follows_the_page_size), UNIT_TEST(aligned_blocks_are_reused))
