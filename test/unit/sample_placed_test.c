/* sample_placed_test.c - blocks for which a call names the arena or the cache are sampled like all
 * others, stay in their arena, and are forgotten with it. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "hooks.h"
#include "samples.h"

static const size_t sampled_sizes[] = { 1, 24, 200, 1024, 1025, 9000, 14336, 14337, 70000 };

static int flags_of_new_arena(void)
{
    struct arena *arena = arena_create();

    assert_non_null(arena);
    return MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE;
}

static struct arena *arena_named(int flags) { return arenas[flags_arena((unsigned)flags)]; }

/* ---- every block is sampled ---- */

static void *placed_sample(size_t size, int flags)
{
    uint64_t before = estimate_now().live;
    unsigned char *block = prairie_mallocx(size, flags | MALLOCX_ZERO);

    assert_non_null(block);
    assert_int_equal(estimate_now().live, before + 1);
    assert_int_equal(prairie_usable_size(block), prairie_nallocx(size, 0));
    assert_true(all_bytes_are(block, 0, prairie_usable_size(block)));
    memset(block, 0xa5, prairie_usable_size(block));
    return block;
}

static void they_stay_in_their_arena_and_every_free_finds_them(void **state)
{
    int flags;

    (void)state;
    sample_from_now(1);
    flags = flags_of_new_arena();
    for (unsigned i = 0; i < ARRAY_COUNT(sampled_sizes); i++) {
        size_t size = sampled_sizes[i];
        void *block[6];

        for (unsigned way = 0; way < 6; way++) {
            block[way] = placed_sample(size, flags);
            assert_ptr_equal(arena_of_address(block[way]), arena_named(flags));
        }
        prairie_free(block[0]);
        prairie_free_sized(block[1], size);
        prairie_sdallocx(block[2], size, 0);
        prairie_sdallocx(block[3], size, flags);
        prairie_dallocx(block[4], flags);
        assert_null(prairie_realloc(block[5], 0));
        assert_int_equal(estimate_now().live, 0);
        assert_null(arena_named(flags)->manual_large);
        prairie_check_all();
    }
}

static void caches_and_automatic_arenas_are_seen_too(void **state)
{
    unsigned number;
    int flags[4];

    (void)state;
    sample_from_now(1);
    number = explicit_cache_create();
    flags[0] = MALLOCX_TCACHE(number);
    flags[1] = MALLOCX_TCACHE_NONE;
    flags[2] = MALLOCX_ARENA(0);
    flags[3] = MALLOCX_ARENA(0) | MALLOCX_TCACHE(number);
    for (unsigned way = 0; way < 4; way++)
        for (unsigned i = 0; i < ARRAY_COUNT(sampled_sizes); i++) {
            void *block = placed_sample(sampled_sizes[i], flags[way]);

            assert_false(arena_of_address(block)->is_manual);
            prairie_dallocx(block, flags[way]);
            assert_int_equal(estimate_now().live, 0);
        }
    assert_null(
        prairie_mallocx(100, MALLOCX_TCACHE(number + 1))); /* there is none, sampled or not */
    explicit_cache_destroy(number);
    prairie_check_all();
}

/* The cache holds an arena's blocks, so that the next one is of that arena, although nobody names
 * it. */
static void a_cache_keeps_to_its_arena(void **state)
{
    unsigned number;
    int flags;
    void *block;

    (void)state;
    sample_from_now(1);
    flags = flags_of_new_arena();
    number = explicit_cache_create();
    sampling_active = false;
    block = prairie_mallocx(100, (flags & ~0xfff00) | MALLOCX_TCACHE(number));
    prairie_dallocx(block, MALLOCX_TCACHE(number));
    sampling_active = true;
    block = placed_sample(100, MALLOCX_TCACHE(number));
    assert_ptr_equal(arena_of_address(block), arena_named(flags));
    prairie_dallocx(block, MALLOCX_TCACHE(number));
    explicit_cache_flush(explicit_cache_at(number));
    assert_true(placed_destroy(arena_named(flags)));
    block = placed_sample(100, MALLOCX_TCACHE(number));
    assert_false(arena_of_address(block)->is_manual);
    prairie_dallocx(block, MALLOCX_TCACHE(number));
    explicit_cache_destroy(number);
    assert_int_equal(estimate_now().live, 0);
}

static void a_bound_thread_has_them_from_its_arena(void **state)
{
    int flags;
    void *block;

    (void)state;
    sample_from_now(1);
    flags = flags_of_new_arena();
    prairie_free(prairie_malloc(1));
    thread_bind(arena_named(flags));
    block = placed_sample(100, 0);
    assert_ptr_equal(arena_of_address(block), arena_named(flags));
    prairie_free(block);
    assert_int_equal(estimate_now().live, 0);
    for (unsigned i = 0; i < ARRAY_COUNT(sampled_sizes); i++) {
        block = placed_sample(sampled_sizes[i], MALLOCX_ARENA(0));
        assert_false(arena_of_address(block)->is_manual);
        prairie_free(block);
    }
    thread_bind(arena_at(0));
    block = placed_sample(100, 0);
    assert_false(arena_of_address(block)->is_manual);
    prairie_free(block);
    prairie_check_all();
}

/* What a hook takes itself is no block of the arena whose hook it is, sampled or not. */
static void *keeping_alloc(struct extent_hooks *hooks, void *new_address, size_t bytes,
                           size_t align, bool *zero, bool *commit, unsigned arena)
{
    seen.nested = prairie_malloc(64);
    return test_alloc(hooks, new_address, bytes, align, zero, commit, arena);
}

static void hooks_have_theirs_from_elsewhere(void **state)
{
    struct extent_hooks hooks = test_hooks;
    struct arena *arena;
    void *block;

    (void)state;
    sample_from_now(1);
    arena = hooked_arena();
    hooks.alloc = keeping_alloc;
    (void)arena_set_hooks(arena, &hooks);
    thread_bind(arena);
    block = prairie_malloc(100);
    assert_ptr_equal(arena_of_address(block), arena);
    assert_non_null(seen.nested);
    assert_ptr_not_equal(arena_of_address(seen.nested), arena);
    thread_bind(arena_at(0));
    assert_true(placed_destroy(arena));
    assert_int_equal(estimate_now().live, 1);
    prairie_free(seen.nested);
    assert_int_equal(estimate_now().live, 0);
    prairie_check_all();
}

static void placed_ones_keep_their_contents_when_resized(void **state)
{
    size_t sizes[] = { 10, 5000, 20000, 30000, 200000, 150000, 6000, 40 };
    unsigned char *block;
    int flags;

    (void)state;
    sample_from_now(1);
    flags = flags_of_new_arena();
    block = placed_sample(5, flags);
    memset(block, 1, 5);
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        block = prairie_rallocx(block, sizes[i], flags);
        assert_true(all_bytes_are(block, 1, 5));
        assert_ptr_equal(arena_of_address(block), arena_named(flags));
        assert_int_equal(prairie_usable_size(block), prairie_nallocx(sizes[i], 0));
        assert_int_equal(estimate_now().live, 1);
        prairie_check_all();
    }
    block = prairie_rallocx(block, 100000, flags);
    assert_int_equal(prairie_xallocx(block, 50000, 0, flags), 53248 - PAGE_STAGGERED);
    assert_int_equal(estimate_now().live, 1);
    assert_int_equal(prairie_usable_size(block), 53248 - PAGE_STAGGERED);
    block = prairie_realloc(block, 20000);
    assert_int_equal(estimate_now().live, 1);
    prairie_free(block);
    assert_int_equal(estimate_now().live, 0);
    prairie_check_all();
}

/* ---- the end of an arena ---- */

static void a_reset_forgets_them(void **state)
{
    int flags;
    void *other;

    (void)state;
    sample_from_now(1);
    flags = flags_of_new_arena();
    other = prairie_malloc(100);
    for (unsigned i = 0; i < ARRAY_COUNT(sampled_sizes); i++)
        (void)placed_sample(sampled_sizes[i], flags);
    placed_reset(arena_named(flags));
    assert_int_equal(estimate_now().live, 1);
    prairie_check_all();
    (void)placed_sample(100, flags);
    arena_named(flags)->threads++;
    assert_false(placed_destroy(arena_named(flags)));
    assert_int_equal(estimate_now().live, 2);
    arena_named(flags)->threads--;
    assert_true(placed_destroy(arena_named(flags)));
    assert_int_equal(estimate_now().live, 1);
    prairie_check_all();
    prairie_free(other);
    assert_int_equal(estimate_now().live, 0);
    assert_int_not_equal(offset_of_sized_free[100], 0);
}

static void *ending_alloc(struct extent_hooks *hooks, void *new_address, size_t bytes, size_t align,
                          bool *zero, bool *commit, unsigned arena)
{
    assert_false(placed_destroy(arenas[arena]));
    return test_alloc(hooks, new_address, bytes, align, zero, commit, arena);
}

/* An end that is refused forgets nothing. */
static void a_refused_end_forgets_none(void **state)
{
    struct extent_hooks hooks = test_hooks;
    struct arena *arena;
    int flags;

    (void)state;
    sample_from_now(1);
    arena = hooked_arena();
    flags = MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE;
    for (unsigned i = 0; i < ARRAY_COUNT(sampled_sizes); i++)
        (void)placed_sample(sampled_sizes[i], flags);
    hooks.alloc = ending_alloc;
    (void)arena_set_hooks(arena, &hooks);
    (void)placed_sample(8 * MiB, flags);
    assert_true(seen.allocs > 1);
    assert_int_equal(estimate_now().live, ARRAY_COUNT(sampled_sizes) + 1);
    assert_true(placed_destroy(arena));
    assert_int_equal(estimate_now().live, 0);
    prairie_check_all();
}

/* ---- where they were ---- */

static const void *told_given;

static void note_given(const void *block, size_t bytes)
{
    (void)bytes;
    told_given = block;
}

/* A vast block takes its page numbers along when it moves, and they tell where it is by now. */
static void a_block_that_moved_is_told_by_its_old_address(void **state)
{
    void *fence, *block, *moved;

    (void)state;
    needs_addresses(4 * VAST_BYTES_MIN);
    sample_from_now(1);
    sampling_hooks[HOOK_GIVEN].given = note_given;
    block = sampled_block(VAST_BYTES_MIN);
    fence = mmap((char *)block + VAST_BYTES_MIN, page_bytes(), PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    moved = prairie_realloc(block, 2 * VAST_BYTES_MIN);
    assert_ptr_not_equal(moved, block);
    assert_ptr_equal(told_given, block);
    assert_int_equal(estimate_now().live, 1);
    prairie_free(moved);
    assert_ptr_equal(told_given, moved);
    assert_int_equal(estimate_now().live, 0);
    if (fence != MAP_FAILED) (void)munmap(fence, page_bytes());
}

/* One of the same size in another place is a new one, and both were taken and given. */
static void a_block_that_moves_for_an_alignment_is_a_new_one(void **state)
{
    enum { SIZE = 100 * KiB, ALIGN = 1 * MiB };
    const struct prairie_thread_totals *totals;
    struct prairie_thread_totals before;
    char *block[2], *moved;
    unsigned i;
    size_t bytes;

    (void)state;
    sample_from_now(1);
    totals = prairie_thread_totals();
    for (i = 0; i < 2; i++) block[i] = placed_sample(SIZE, 0);
    i = is_aligned((uintptr_t)block[0], ALIGN);
    assert_false(is_aligned((uintptr_t)block[i], ALIGN));
    sampling_hooks[HOOK_GIVEN].given = note_given;
    before = *totals;
    moved = prairie_rallocx(block[i], SIZE, MALLOCX_ALIGN(ALIGN));
    bytes = prairie_usable_size(moved);
    assert_true(is_aligned((uintptr_t)moved, ALIGN));
    assert_true(all_bytes_are(moved, 0xa5, bytes));
    assert_ptr_equal(told_given, block[i]);
    assert_int_equal(estimate_now().live, 2);
    assert_int_equal(totals->allocated, before.allocated + bytes);
    assert_int_equal(totals->deallocated, before.deallocated + bytes);
    prairie_check_all();
    prairie_free(moved);
    prairie_free(block[1 - i]);
    assert_int_equal(estimate_now().live, 0);
    prairie_check_all();
}

/* ---- what they stand for ---- */

static void placed_blocks_are_estimated(void **state)
{
    enum { SLOTS = 500 };
    static void *block[SLOTS];
    unsigned number;
    int flags[5];
    double taken = 0;

    (void)state;
    sample_from_now(PERIOD);
    number = explicit_cache_create();
    flags[0] = flags_of_new_arena();
    flags[1] = (flags[0] & ~0xfff00) | MALLOCX_TCACHE(number);
    flags[2] = MALLOCX_TCACHE_NONE;
    flags[3] = MALLOCX_ARENA(0);
    flags[4] = 0;
    for (unsigned i = 0; i < 60000; i++) {
        size_t slot = random_below(SLOTS), way = random_below(ARRAY_COUNT(flags));
        size_t size = 1 + random_below(random_below(10) == 0 ? 60000 : 2000);

        if (block[slot] != NULL) prairie_dallocx(block[slot], flags[way] & MALLOCX_TCACHE_NONE);
        block[slot] = prairie_mallocx(size, flags[way]);
        assert_non_null(block[slot]);
        taken += (double)prairie_usable_size(block[slot]);
    }
    expect_close(taken);
    prairie_check_all();
    for (unsigned i = 0; i < SLOTS; i++) prairie_free(block[i]);
    assert_int_equal(estimate_now().live, 0);
    explicit_cache_destroy(number);
    prairie_check_all();
}

/* A thread that asks for its totals gets them, sampled or not. */
static void totals_of_placed_blocks_are_exact(void **state)
{
    const struct prairie_thread_totals *totals;
    uint64_t taken = 0, given = 0;
    int flags;

    (void)state;
    sample_from_now(PERIOD);
    flags = flags_of_new_arena();
    prairie_free(prairie_malloc(100));
    totals = prairie_thread_totals();
    for (unsigned i = 0; i < 20000; i++) {
        void *block = prairie_mallocx(1 + random_below(i % 20 == 0 ? 60000 : 2000), flags);

        taken += prairie_usable_size(block);
        assert_int_equal(totals->allocated, taken);
        given += prairie_usable_size(block);
        prairie_dallocx(block, flags);
        assert_int_equal(totals->deallocated, given);
    }
    expect_close((double)taken);
}

static void without_memory_placed_blocks_go_unsampled(void **state)
{
    void *block[200];
    unsigned count = 0;
    int flags;

    (void)state;
    sample_from_now(1);
    flags = flags_of_new_arena();
    prairie_free(prairie_mallocx(100, flags));
    fake_fail_all(true);
    while (count < 200 && (block[count] = prairie_mallocx(100 + count * 40, flags)) != NULL)
        count++;
    fake_fail_all(false);
    prairie_check_all();
    while (count > 0) prairie_free(block[--count]);
    assert_int_equal(estimate_now().live, 0);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(they_stay_in_their_arena_and_every_free_finds_them),
          UNIT_TEST(caches_and_automatic_arenas_are_seen_too),
          UNIT_TEST(a_cache_keeps_to_its_arena), UNIT_TEST(a_bound_thread_has_them_from_its_arena),
          UNIT_TEST(hooks_have_theirs_from_elsewhere),
          UNIT_TEST(placed_ones_keep_their_contents_when_resized), UNIT_TEST(a_reset_forgets_them),
          UNIT_TEST(a_refused_end_forgets_none),
          UNIT_TEST(a_block_that_moved_is_told_by_its_old_address),
          UNIT_TEST(a_block_that_moves_for_an_alignment_is_a_new_one),
          UNIT_TEST(placed_blocks_are_estimated), UNIT_TEST(totals_of_placed_blocks_are_exact),
          UNIT_TEST(without_memory_placed_blocks_go_unsampled))
