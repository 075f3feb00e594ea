/* hardened_wiped_test.c - blocks of a hardened process that have no mark are wiped as others are. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "hardened.h"
#include "hooks.h"

#include <jemalloc/jemalloc.h>

static const size_t unmarked_sizes[] = { 24, 3000, 14000, 20000, LARGE, 3 * LARGE };

static void sample_all_and_harden(void)
{
    options_parse("lg_prof_sample:0", "test");
    prairie_free(prairie_malloc(1));
    assert_true(profile_start());
    harden();
}

/* All usable bytes read as zero, and do so again when it is freed. */
static void use_and_free(char *pointer, size_t size)
{
    size_t bytes = prairie_usable_size(pointer);

    assert_true(bytes >= size);
    assert_true(all_bytes_are(pointer, 0, bytes));
    memset(pointer, 0xff, bytes);
    prairie_free(pointer);
    assert_true(all_bytes_are(pointer, 0, bytes));
}

static size_t told_bytes;
static void free_it_as_told(void) { prairie_free_sized(block, told_bytes); }
static void sdallocx_it_as_told(void) { prairie_sdallocx(block, told_bytes, 0); }
static void sdallocx_it_aligned(void) { prairie_sdallocx(block, told_bytes, MALLOCX_ALIGN(64)); }
static void free_it_aligned(void) { prairie_free_aligned_sized(block, 64, told_bytes); }

/* In a copy of the process if that is wrong. */
static void free_sized_after_wrong(char *pointer, size_t size, size_t wrong)
{
    block = pointer;
    told_bytes = wrong;
    expect_abort(free_it_as_told, "prairie: wrong size in sized delete: ");
    expect_abort(sdallocx_it_as_told, "prairie: wrong size in sized delete: ");
    expect_abort(sdallocx_it_aligned, "prairie: wrong size in sized delete: ");
    expect_abort(free_it_aligned, "prairie: wrong size in sized delete: ");
    prairie_free_sized(pointer, size);
}

/* Without a mark it may have been of any size that so many bytes serve. */
static void unmarked_blocks_are_of_their_sizes(void **state)
{
    struct arena *arena;
    int flags;

    (void)state;
    sample_all_and_harden();
    for (size_t size = 1; size < 4 * LARGE; size += 1 + size / 9) {
        prairie_free_sized(prairie_malloc(size), size);
        block = prairie_malloc(size);
        told_bytes = size + random_below(prairie_usable_size(block) - size + 1);
        prairie_free_sized(block, told_bytes);
        prairie_free_sized(prairie_realloc(prairie_malloc(size / 2 + 1), size), size);
        prairie_free_sized(prairie_realloc(prairie_malloc(2 * size), size), size);
        prairie_sdallocx(prairie_mallocx(size, 0), size, 0);
        prairie_sdallocx(prairie_mallocx(size, MALLOCX_ALIGN(64)), size, MALLOCX_ALIGN(64));
        prairie_free_aligned_sized(prairie_aligned_alloc(512, size), 512, size);
        prairie_free_aligned_sized(prairie_aligned_alloc(64 * KiB, size), 64 * KiB, size);
    }
    prairie_free_aligned_sized(prairie_aligned_alloc(64 * KiB, 0), 64 * KiB, 0);
    for (size_t i = 0; i < ARRAY_COUNT(unmarked_sizes); i++) {
        size_t size = unmarked_sizes[i];

        free_sized_after_wrong(prairie_malloc(size), size, 2 * size);
        free_sized_after_wrong(prairie_malloc(size), size, size / 4);
    }
    arena = arena_create();
    assert_non_null(arena);
    flags = (int)(MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
    free_sized_after_wrong(prairie_mallocx(LARGE, flags), LARGE, 2 * LARGE);
    free_sized_after_wrong(prairie_malloc(VAST_BYTES_MIN + 5), VAST_BYTES_MIN + 5, LARGE);
    block = prairie_malloc(0);
    told_bytes = 0;
    prairie_free_sized(block, 0);
    prairie_check_all();
}

static void what_is_sampled_is_wiped(void **state)
{
    uint32_t page;

    (void)state;
    sample_all_and_harden();
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < ARRAY_COUNT(unmarked_sizes); i++) {
            block = prairie_malloc(unmarked_sizes[i]);
            assert_int_equal(pointer_kind(block, &page), POINTER_SAMPLED);
            use_and_free(block, unmarked_sizes[i]);
        }
    prairie_check_all();
}

/* Pages from before read as anything. */
static void a_sampled_block_is_cleared_when_it_is_taken(void **state)
{
    char *before[20];

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(before); i++) {
        before[i] = prairie_malloc(20000);
        memset(before[i], 0xff, 20000);
    }
    for (unsigned i = 0; i < ARRAY_COUNT(before); i++) prairie_free(before[i]);
    sample_all_and_harden();
    for (unsigned i = 0; i < ARRAY_COUNT(before); i++) use_and_free(prairie_malloc(14000), 14000);
}

static void use_and_free_in(const struct arena *arena)
{
    int flags = MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE;

    for (unsigned i = 0; i < ARRAY_COUNT(unmarked_sizes); i++) {
        block = prairie_mallocx(unmarked_sizes[i], flags);
        assert_non_null(block);
        use_and_free(block, unmarked_sizes[i]);
    }
}

static void use_and_free_in_arenas(void)
{
    struct arena *arena = arena_create();

    assert_non_null(arena);
    use_and_free_in(arena);
    use_and_free_in(hooked_arena());
    prairie_check_all();
}

static void blocks_of_arenas_are_wiped(void **state)
{
    (void)state;
    harden();
    prairie_free(taken(1));
    use_and_free_in_arenas();
}

static void sampled_blocks_of_arenas_are_wiped(void **state)
{
    (void)state;
    sample_all_and_harden();
    use_and_free_in_arenas();
}

/* What it loses, where it is or by moving, is wiped; what it gains reads as zero. */
static void resize_in(struct arena *arena, size_t from, size_t to)
{
    size_t old_bytes, bytes;
    char *moved;

    block = prairie_mallocx(from, MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
    assert_non_null(block);
    old_bytes = prairie_usable_size(block);
    memset(block, 0xff, old_bytes);
    moved = prairie_realloc(block, to);
    assert_non_null(moved);
    bytes = prairie_usable_size(moved);
    assert_true(all_bytes_are(moved, 0xff, min_size(from, to)));
    if (bytes > old_bytes) assert_true(all_bytes_are(moved + old_bytes, 0, bytes - old_bytes));
    if (moved != block) assert_true(all_bytes_are(block, 0, old_bytes));
    else if (bytes < old_bytes) assert_true(all_bytes_are(block + bytes, 0, old_bytes - bytes));
    prairie_free(moved);
    assert_true(all_bytes_are(moved, 0, bytes));
}

static void what_an_unmarked_block_loses_is_wiped(void **state)
{
    struct arena *arenas_here[2];

    (void)state;
    harden();
    prairie_free(taken(1));
    arenas_here[0] = arena_create();
    arenas_here[1] = hooked_arena();
    for (unsigned i = 0; i < ARRAY_COUNT(arenas_here); i++) {
        assert_non_null(arenas_here[i]);
        resize_in(arenas_here[i], 3 * LARGE, LARGE);
        resize_in(arenas_here[i], 3 * LARGE, 100);
        resize_in(arenas_here[i], LARGE, 3 * LARGE);
        resize_in(arenas_here[i], 20000, 2 * REMAP_BYTES_MIN);
    }
    prairie_check_all();
}

/* More than is wiped of marked blocks goes back to the kernel of these, too: when they lose or gain
 * it, and when others get their pages. */
static void long_unmarked_blocks_are_not_touched(void **state)
{
    const size_t more = WIPED_RUN_BYTES_MAX + 2 * LARGE, most = WIPED_RUN_BYTES_MAX + LARGE;
    const struct arena *arena;
    uint64_t purged;
    size_t kept;
    int flags;

    (void)state;
    options_parse("dirty_decay_ms:-1", "test");
    harden();
    arena = arena_create();
    assert_non_null(arena);
    flags = (int)(MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
    block = prairie_mallocx(more, flags);
    assert_non_null(block);
    memset(block, 0xff, more);
    purged = fake_purged_bytes();
    assert_ptr_equal(prairie_realloc(block, LARGE), block);
    kept = prairie_usable_size(block);
    assert_in_range(fake_purged_bytes() - purged, most - page_bytes(), most);
    assert_ptr_equal(prairie_realloc(block, more), block);
    assert_in_range(fake_purged_bytes() - purged, 2 * (most - page_bytes()), 2 * most);
    assert_true(all_bytes_are(block, 0xff, kept));
    assert_true(all_bytes_are(block + kept, 0, more - kept));
    purged = fake_purged_bytes();
    prairie_free(block);
    assert_in_range(fake_purged_bytes() - purged, more, more + page_bytes());
    assert_true(all_bytes_are(block, 0, more));
    memset(block, 0xff, more);
    purged = fake_purged_bytes();
    assert_ptr_equal(prairie_mallocx(more, flags), block);
    assert_in_range(fake_purged_bytes() - purged, more, more + page_bytes());
    assert_true(all_bytes_are(block, 0, more));
    prairie_free(block);
}

/* Hooks may say that it stays as long as it is: nothing is lost then. */
static void a_block_of_hooks_keeps_what_it_does_not_lose(void **state)
{
    struct arena *arena;
    size_t bytes;

    (void)state;
    harden();
    prairie_free(taken(1));
    arena = hooked_arena();
    block = prairie_mallocx(3 * LARGE, MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
    assert_non_null(block);
    bytes = prairie_usable_size(block);
    memset(block, 0xff, bytes);
    assert_int_equal(prairie_xallocx(block, LARGE, 0, 0), bytes);
    assert_true(all_bytes_are(block, 0xff, bytes));
    prairie_free(block);
}

/* Small ones, large ones with room for a mark, and those that fill their pages. What they gain,
 * too. */
static void junk_is_what_a_block_begins_with(void **state)
{
    const size_t sizes[] = { 100, 40 * KiB - 100, 40 * KiB };

    (void)state;
    options_parse("junk:true", "test");
    heap_obey_options();
    harden();
    for (unsigned i = 0; i < 100; i++) {
        size_t size = sizes[i % ARRAY_COUNT(sizes)];

        block = taken(size);
        assert_true(all_bytes_are(block, 0xa5, size));
        block = prairie_realloc(block, size + 3); /* where it is, when there is room */
        assert_true(all_bytes_are(block, 0xa5, size + 3));
        prairie_free(block);
        block = prairie_calloc(1, size);
        assert_true(all_bytes_are(block, 0, size));
        prairie_free(block);
    }
}

UNIT_MAIN(UNIT_TEST(junk_is_what_a_block_begins_with), UNIT_TEST(what_is_sampled_is_wiped),
          UNIT_TEST(a_sampled_block_is_cleared_when_it_is_taken),
          UNIT_TEST(unmarked_blocks_are_of_their_sizes), UNIT_TEST(blocks_of_arenas_are_wiped),
          UNIT_TEST(sampled_blocks_of_arenas_are_wiped),
          UNIT_TEST(what_an_unmarked_block_loses_is_wiped),
          UNIT_TEST(long_unmarked_blocks_are_not_touched),
          UNIT_TEST(a_block_of_hooks_keeps_what_it_does_not_lose))
