/* extended_test.c - requests with flags: which class an alignment leads to, and what a refusing
 * kernel leaves. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "heap/hardened.h"
#include "unit.h"

#include <jemalloc/jemalloc.h>

static void a_table_tells_aligned_classes_up_to_its_end(void **state)
{
    (void)state;
    for (size_t align = 1; align <= TABLE_BYTES_MAX; align *= 2)
        for (size_t size = 1; size <= TABLE_BYTES_MAX; size++)
            assert_int_equal(class_of_size(inside_table_bytes_of(size, align)),
                             class_of_aligned(size, align));
    assert_true(inside_table_bytes_of(1025, 1) > TABLE_BYTES_MAX);
    assert_true(inside_table_bytes_of(1, 2048) > TABLE_BYTES_MAX);
    assert_true(inside_table_bytes_of(0, SIZE_MAX / 2 + 1) > TABLE_BYTES_MAX);
}

static void flags_mean_what_the_header_says(void **state)
{
    (void)state;
    assert_int_equal(flags_align(MALLOCX_ALIGN(4096) | MALLOCX_ZERO), 4096);
    for (unsigned bits = 8 * sizeof(size_t) - 1; bits <= FLAG_ALIGN; bits++)
        assert_int_equal(flags_align(bits), SIZE_MAX / 2 + 1);
    assert_int_equal(FLAG_ZERO, MALLOCX_ZERO);
    assert_int_equal(flags_cache(0), CACHE_OWN);
    assert_int_equal(flags_cache(MALLOCX_TCACHE_NONE | MALLOCX_ZERO), CACHE_NONE);
    assert_int_equal(flags_cache(MALLOCX_TCACHE(0) | 63), CACHE_FIRST_EXPLICIT);
    assert_int_equal((unsigned)MALLOCX_ARENA(4094) & ~FLAG_ARENA, 0);
}

/* A refusal is told with ENOMEM and leaves the block as it was. */
static void refusals_change_nothing(void **state)
{
    char *small = prairie_mallocx(100, MALLOCX_ZERO);
    char *large = prairie_mallocx(100 * KiB, MALLOCX_ZERO);
    size_t sizes[] = { 64 * MiB, SIZE_MAX / 2, SIZE_MAX };

    (void)state;
    small[99] = large[100 * KiB - 1] = 7;
    fake_fail_all(true);
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        int flags[] = { 0, MALLOCX_TCACHE_NONE, MALLOCX_ZERO, MALLOCX_ALIGN(4096) };
        for (unsigned j = 0; j < ARRAY_COUNT(flags); j++) {
            errno = 0;
            assert_null(prairie_mallocx(sizes[i], flags[j]));
            assert_int_equal(errno, ENOMEM);
            errno = 0;
            assert_null(prairie_rallocx(small, sizes[i], flags[j]));
            assert_int_equal(errno, ENOMEM);
            assert_null(prairie_rallocx(large, sizes[i], flags[j]));
            assert_int_equal(prairie_xallocx(large, sizes[i], 0, flags[j]),
                             prairie_nallocx(100 * KiB, 0));
        }
    }
    fake_fail_all(false);
    assert_int_equal(small[99] + large[100 * KiB - 1], 14);
    prairie_dallocx(small, 0);
    prairie_sdallocx(large, 100 * KiB, 0);
    prairie_check_all();
}

/* Of every size, hardened or not, nallocx tells what mallocx does. */
static void expect_no_block_aligned_to(int bits)
{
    static const size_t sizes[] = { 0, 1, 100, 5000, 100 * KiB };

    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        assert_int_equal(prairie_nallocx(sizes[i], MALLOCX_LG_ALIGN(bits)), 0);
        errno = 0;
        assert_null(prairie_mallocx(sizes[i], MALLOCX_LG_ALIGN(bits)));
        assert_int_equal(errno, ENOMEM);
    }
}

static void the_highest_alignments_are_refused(void **state)
{
    (void)state;
    for (int bits = 8 * sizeof(size_t) - 1; bits <= 63; bits++) expect_no_block_aligned_to(bits);
    assert_true(hardened_start());
    for (int bits = 8 * sizeof(size_t) - 1; bits <= 63; bits++) expect_no_block_aligned_to(bits);
    assert_int_equal(prairie_nallocx(100, MALLOCX_ALIGN(64)), 100);
}

static void the_largest_sizes_are_told_as_none(void **state)
{
    (void)state;
    for (unsigned hardened = 0; hardened < 2; hardened++) {
        assert_int_equal(prairie_nallocx(LARGE_BYTES_MAX, 0), LARGE_BYTES_MAX);
        assert_int_equal(prairie_nallocx(LARGE_BYTES_MAX + 1, 0), 0);
        assert_int_equal(prairie_nallocx(SIZE_MAX, 0), 0);
        assert_true(hardened != 0 || hardened_start());
    }
}

/* Without a cache nothing is held back: the last block closes its slab but for one. */
static void uncached_blocks_are_not_cached(void **state)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    void *blocks[300];

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++)
        blocks[i] = prairie_mallocx(500, MALLOCX_TCACHE_NONE);
    assert_true(prairie_stats_read(&stats));
    assert_int_equal(stats.cached, 0);
    assert_int_equal(stats.allocated, ARRAY_COUNT(blocks) * 512);
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++)
        prairie_dallocx(blocks[i], MALLOCX_TCACHE_NONE);
    assert_true(prairie_stats_read(&stats));
    assert_int_equal(stats.cached + stats.allocated, 0);
    assert_int_equal(stats.refills + stats.overflows, 0);
    prairie_check_all();
}

/* When the way to `most` is barred, the way to `least` may be open. */
static void growth_takes_the_least_when_the_most_is_barred(void **state)
{
    size_t page = os_page_bytes();
    char *first = prairie_mallocx(8 * page, 0);
    char *second = prairie_mallocx(8 * page, 0);
    char *third = prairie_mallocx(8 * page, 0);

    (void)state;
    if (second != first + 8 * page || third != second + 8 * page) skip();
    prairie_dallocx(second, 0);
    assert_int_equal(prairie_xallocx(first, 12 * page, 100 * page, 0), 12 * page);
    assert_int_equal(prairie_xallocx(first, 16 * page, 0, 0), 16 * page);
    assert_int_equal(prairie_xallocx(first, 17 * page, 0, 0), 16 * page);
    assert_int_equal(prairie_xallocx(first, 8 * page, 2 * page, 0), 10 * page);
    /* What it has already is at least that: it stays. */
    assert_int_equal(prairie_xallocx(first, 4 * page, 100 * page, 0), 10 * page);
    assert_int_equal(prairie_xallocx(first, 10 * page, 100 * page, 0), 10 * page);
    prairie_check_all();
}

/* Any run of pages is aligned to a page: that is no reason to move. */
static void page_aligned_blocks_are_resized_where_they_are(void **state)
{
    size_t page = os_page_bytes(), align = 1 * MiB;
    int flags = MALLOCX_ALIGN(page);
    char *first = prairie_mallocx(32 * page, flags);
    char *block = prairie_mallocx(32 * page, flags), *moved;
    static const unsigned pages[] = { 8, 16, 5, 32 };

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(pages); i++) {
        block[0] = (char)i;
        assert_ptr_equal(prairie_rallocx(block, pages[i] * page, flags), block);
        assert_int_equal(prairie_usable_size(block), pages[i] * page);
        assert_int_equal(block[0], i);
    }
    assert_false(is_aligned((uintptr_t)block, align) && is_aligned((uintptr_t)first, align));
    if (is_aligned((uintptr_t)block, align)) {
        first[0] = block[0];
        block = first;
    }
    moved = prairie_rallocx(block, 16 * page, MALLOCX_ALIGN(align));
    assert_true(is_aligned((uintptr_t)moved, align));
    assert_int_equal(moved[0], 3);
    prairie_check_all();
}

/* As realloc moves those that are aligned to a page. */
static void widely_aligned_blocks_move_by_their_pages(void **state)
{
    const size_t size = 2 * REMAP_BYTES_MIN, align = 16 * os_page_bytes();
    char *block = prairie_mallocx(size, MALLOCX_ALIGN(align)), *other = prairie_malloc(size),
         *moved;

    (void)state;
    memset(block, 1, size);
    moved = prairie_rallocx(block, 4 * size, MALLOCX_ALIGN(align));
    assert_ptr_not_equal(moved, block);
    assert_true(is_aligned((uintptr_t)moved, align));
    assert_int_equal(prairie_usable_size(moved), 4 * size);
    assert_true(all_bytes_are(moved, 1, size));
    assert_int_equal(fake_moved_bytes(), size);
    prairie_free(moved);
    prairie_free(other);
    prairie_check_all();
}

/* Where the kernel moves a mapping to is nobody's choice. */
static void vast_blocks_stay_aligned(void **state)
{
    const size_t align = 16 * MiB;
    char *block = NULL;

    (void)state;
    needs_addresses(8 * VAST_BYTES_MIN);
    for (unsigned i = 1; i < 5; i++) {
        block = prairie_rallocx(block, i * VAST_BYTES_MIN, MALLOCX_ALIGN(align));
        assert_non_null(block);
        assert_true(is_aligned((uintptr_t)block, align));
        assert_int_equal(prairie_usable_size(block), i * VAST_BYTES_MIN);
        if (i > 1) assert_int_equal(block[i - 1], i - 1);
        block[i] = (char)i;
    }
    prairie_free(block);
    prairie_check_all();
}

/* ---- moving ---- */

enum { SPARSE_SLABS = 12, BLOCKS_MAX = SPARSE_SLABS * 64 };

static char *scattered[BLOCKS_MAX];

/* Of slabs with free blocks: one that is used no more than nine eighths of what they are on
 * average, unless blocks come from it next. */
static bool is_worth_moving(const char *block, unsigned class_index)
{
    const struct slab *own = slab_of(block, class_index), *last = NULL;
    const struct class_bin *bin = &arena_of_block(class_index, scattered[0])->bin[class_index];
    size_t slabs = 0, used = 0;

    if (own->free_count == 0 || slab_number(own) == bin->partial.first) return false;
    for (unsigned i = 0; i < BLOCKS_MAX; i++) {
        const struct slab *slab = scattered[i] != NULL ? slab_of(scattered[i], class_index) : last;

        if (slab == last) continue;
        last = slab;
        slabs += slab->free_count != 0;
        used += slab->free_count != 0 ? slab->block_count - slab->free_count : 0;
    }
    return (own->block_count - own->free_count) * slabs <= used * 9 / 8;
}

static void blocks_of_sparse_slabs_are_worth_moving(void **state)
{
    unsigned class_index = class_of_size(500), worth = 0, others = 0;
    char *large = prairie_malloc(100 * KiB);

    (void)state;
    for (unsigned i = 0; i < BLOCKS_MAX; i++)
        scattered[i] = prairie_mallocx(500, MALLOCX_TCACHE_NONE);
    assert_int_equal(prairie_defrag_hint(scattered[0]), 0); /* full */
    for (unsigned i = 0; i < BLOCKS_MAX; i++) {
        unsigned slab = i / 64;

        if (slab == 0 || i % 64 < 4 || random_below(SPARSE_SLABS + 1) < slab) continue;
        prairie_dallocx(scattered[i], MALLOCX_TCACHE_NONE);
        scattered[i] = NULL;
    }
    for (unsigned i = 0; i < BLOCKS_MAX; i++) {
        bool is_worth;

        if (scattered[i] == NULL) continue;
        is_worth = is_worth_moving(scattered[i], class_index);
        assert_int_equal(prairie_defrag_hint(scattered[i]), is_worth);
        worth += is_worth;
        others += !is_worth;
    }
    assert_true(worth > 0 && others > 64);
    assert_int_equal(prairie_defrag_hint(large), 0);
    assert_int_equal(prairie_defrag_hint(&large), 0);
    prairie_free(large);
}

/* 63 blocks of one slab and 49 of another, where blocks come from next, are 112: an eighth more is
 * twice 63. */
static void an_eighth_more_is_still_sparse(void **state)
{
    const struct class_bin *bin;
    unsigned class_index = class_of_size(500);

    (void)state;
    for (unsigned i = 0; i < 2 * 64; i++) scattered[i] = prairie_mallocx(500, MALLOCX_TCACHE_NONE);
    bin = &arena_of_block(class_index, scattered[0])->bin[class_index];
    if (slab_of(scattered[0], class_index)->block_count != 64) skip();
    prairie_dallocx(scattered[63], MALLOCX_TCACHE_NONE);
    for (unsigned i = 64; i < 64 + 15; i++) prairie_dallocx(scattered[i], MALLOCX_TCACHE_NONE);
    assert_int_equal(bin->partial.first, slab_number(slab_of(scattered[127], class_index)));
    assert_int_equal(prairie_defrag_hint(scattered[0]), 1);
    prairie_dallocx(scattered[64 + 15], MALLOCX_TCACHE_NONE);
    assert_int_equal(prairie_defrag_hint(scattered[0]), 0);
    assert_int_equal(prairie_defrag_hint(scattered[127]), 0);
}

static void misuse_of_sizes(void) { prairie_sdallocx(prairie_mallocx(100, 0), 200, 0); }

static void misuse_of_alignment(void)
{
    prairie_sdallocx(prairie_mallocx(40, MALLOCX_ALIGN(64)), 40, 0);
}

static void wrong_sizes_are_found(void **state)
{
    (void)state;
    expect_abort(misuse_of_sizes, "prairie: wrong size in sized delete");
    expect_abort(misuse_of_alignment, "prairie: wrong size in sized delete");
}

/* However much that is, in place or moved: pages of the program's blocks are cleared by hand up to
 * CLEAR_BYTES_MAX. The second block begins with its page, the first may begin behind. */
static void what_is_gained_as_zeros_is_not_touched(void **state)
{
    static const size_t sizes[] = { 48, 20000, 128 * KiB };
    size_t most = 2 * CLEAR_BYTES_MAX + 3 * KiB;

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        char *block = prairie_malloc(most);
        uint64_t purged;
        size_t old_bytes, kept;

        memset(block, 0xee, most); /* dirty pages, which the next one may get */
        prairie_free(block);
        block = prairie_malloc(sizes[i]);
        old_bytes = prairie_usable_size(block);
        memset(block, 1, old_bytes);
        purged = fake_purged_bytes();
        block = prairie_rallocx(block, most, MALLOCX_ZERO);
        kept = round_up(old_bytes, page_bytes()) + page_bytes();
        assert_true(fake_purged_bytes() >= purged + round_down(most - kept, page_bytes()));
        assert_true(all_bytes_are(block, 1, old_bytes));
        assert_true(all_bytes_are(block + old_bytes, 0, prairie_usable_size(block) - old_bytes));
        prairie_free(block);
        prairie_check_all();
    }
}

/* A run on every platform: with 32 bits a vast block is short, and what such a one loses is the
 * kernel's again. */
static void xallocx_touches_no_zeros(void **state)
{
    size_t room = CLEAR_BYTES_MAX + CLEAR_BYTES_MAX / 2, old_bytes, bytes;
    char *block = prairie_malloc(room);
    uint64_t purged;

    (void)state;
    memset(block, 0xee, room);
    old_bytes = prairie_xallocx(block, room / 3, 0, 0);
    assert_int_equal(old_bytes, room / 3);
    memset(block, 1, old_bytes);
    purged = fake_purged_bytes();
    bytes = prairie_xallocx(block, room, 0, MALLOCX_ZERO);
    assert_int_equal(bytes, room);
    assert_true(fake_purged_bytes() >= purged + bytes - old_bytes);
    assert_true(all_bytes_are(block, 1, old_bytes));
    assert_true(all_bytes_are(block + old_bytes, 0, bytes - old_bytes));
    prairie_free(block);
}

UNIT_MAIN(UNIT_TEST(a_table_tells_aligned_classes_up_to_its_end),
          UNIT_TEST(flags_mean_what_the_header_says), UNIT_TEST(refusals_change_nothing),
          UNIT_TEST(the_highest_alignments_are_refused), UNIT_TEST(an_eighth_more_is_still_sparse),
          UNIT_TEST(blocks_of_sparse_slabs_are_worth_moving),
          UNIT_TEST(the_largest_sizes_are_told_as_none), UNIT_TEST(uncached_blocks_are_not_cached),
          UNIT_TEST(growth_takes_the_least_when_the_most_is_barred),
          UNIT_TEST(page_aligned_blocks_are_resized_where_they_are),
          UNIT_TEST(widely_aligned_blocks_move_by_their_pages), UNIT_TEST(vast_blocks_stay_aligned),
          UNIT_TEST(what_is_gained_as_zeros_is_not_touched), UNIT_TEST(xallocx_touches_no_zeros),
          UNIT_TEST(wrong_sizes_are_found))
