/* vast_test.c - blocks that are mappings of their own: taken, told apart, resized, given back. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "control_tree.h"
#include "vast.h"

static void a_vast_block_is_a_reservation_of_its_own(void **state)
{
    size_t reserved;
    char *block;

    (void)state;
    needs_addresses(8 * VAST);
    prairie_free(prairie_malloc(1));
    reserved = fake_reserved_bytes();
    block = prairie_malloc(VAST + 1);
    expect_vast(block, VAST + 1);
    assert_true(fake_reserved_bytes() >= reserved + VAST + page_bytes());
    block[0] = block[VAST] = 1;
    prairie_free(block);
    expect_none();
    block = prairie_calloc(2, VAST / 2);
    expect_vast(block, VAST);
    assert_int_equal(block[0] | block[VAST - 1], 0);
    prairie_free(block);
    block = prairie_aligned_alloc(VAST, VAST);
    expect_vast(block, VAST);
    assert_true(is_aligned((uintptr_t)block, VAST));
    prairie_free_sized(block, VAST);
    expect_none();
    assert_true(
        fake_reserved_bytes()
        <= reserved + (FOREIGN_COUNT_MAX + space.number_max / FOREIGN_UNIT + 1) * sizeof(uint32_t)
               + page_bytes());
}

static void a_smaller_one_is_a_run(void **state)
{
    char *block;

    (void)state;
    needs_addresses(8 * VAST);
    prairie_free(prairie_malloc(1));
    block = prairie_malloc(VAST - page_bytes());
    assert_int_equal(page_record(page_at(block))->state, PAGE_LARGE);
    prairie_free(block);
    expect_none();
}

static size_t approximate_active(void)
{
    size_t active = 0, length = sizeof active;

    assert_int_equal(control_by_name("approximate_stats.active", &active, &length, NULL, 0), 0);
    return active;
}

static void they_are_counted(void **state)
{
    struct prairie_stats before = { .struct_bytes = sizeof before };
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    void *block[3];
    size_t active;

    (void)state;
    needs_addresses(8 * VAST);
    prairie_free(prairie_malloc(1));
    assert_true(prairie_stats_read(&before));
    active = approximate_active();
    for (unsigned i = 0; i < 3; i++) block[i] = prairie_malloc(VAST);
    assert_true(prairie_stats_read(&stats));
    assert_int_equal(stats.large_count, before.large_count + 3);
    assert_int_equal(stats.large_allocated, before.large_allocated + 3 * VAST);
    assert_int_equal(stats.allocated, before.allocated + 3 * VAST);
    assert_true(stats.mapped >= before.mapped + 3 * VAST);
    assert_true(approximate_active() >= active + 3 * VAST);
    assert_int_equal(stats.run_leases, before.run_leases + 3);
    for (unsigned i = 0; i < 3; i++) prairie_free(block[i]);
    assert_true(prairie_stats_read(&stats));
    assert_int_equal(stats.large_count, before.large_count);
    assert_int_equal(stats.allocated, before.allocated);
    assert_int_equal(stats.run_returns, before.run_returns + 3);
}

static void they_change_their_size(void **state)
{
    char *block = prairie_malloc(VAST), *same;

    (void)state;
    needs_addresses(8 * VAST);
    block[0] = 1;
    block[VAST - 1] = 2;
    block = prairie_realloc(block, 2 * VAST);
    expect_vast(block, 2 * VAST);
    assert_int_equal(block[0], 1);
    assert_int_equal(block[VAST - 1], 2);
    assert_int_equal(block[2 * VAST - 1], 0);
    assert_int_equal(commit.vast_bytes, 2 * VAST);
    same = prairie_realloc(block, VAST + 5 * page_bytes());
    assert_ptr_equal(same, block);
    expect_vast(block, VAST + 5 * page_bytes());
    assert_int_equal(prairie_xallocx(block, 3 * page_bytes() + VAST, 0, 0),
                     3 * page_bytes() + VAST);
    expect_vast(block, VAST + 3 * page_bytes());
    /* Nothing lies behind it that it could have. */
    assert_int_equal(prairie_xallocx(block, 2 * VAST, 0, 0), VAST + 3 * page_bytes());
    same = prairie_realloc(block, 20000);
    assert_ptr_equal(same, block);
    expect_vast(block, 20000);
    block = prairie_realloc(block, 100);
    assert_int_equal(block[0], 1);
    expect_none();
    prairie_free(block);
}

/* A short one that cannot grow where it is: most of the places that it moves to are staggered. */
static void a_short_one_moves_to_a_staggered_place(void **state)
{
    enum { COUNT = 400 };
    size_t size, longer;
    unsigned staggered = 0;

    (void)state;
    needs_addresses(8 * VAST);
    prairie_free(prairie_malloc(1));
    size = 4 * page_bytes();
    longer = 6 * page_bytes() - PAGE_STAGGERED;
    for (unsigned i = 0; i < COUNT; i++) {
        char *block = prairie_realloc(prairie_malloc(VAST), size);

        expect_vast(block, size);
        memset(block, (int)(i % 251), size);
        fake_fail_kind(FAKE_RESIZE, true);
        block = prairie_realloc(block, longer);
        fake_fail_kind(FAKE_RESIZE, false);
        assert_true(all_bytes_are(block, (unsigned char)(i % 251), size));
        assert_int_equal(prairie_usable_size(block), longer);
        staggered += !is_page_start(block);
    }
    assert_true(staggered > COUNT / 2);
    expect_none();
}

static void mark_ends(char *block, size_t bytes) { block[0] = 1, block[bytes - 1] = 2; }

static void expect_marks(const char *block, size_t bytes)
{
    assert_int_equal(block[0], 1);
    assert_int_equal(block[bytes - 1], 2);
}

/* It is of no arena, whichever automatic one a call names. */
static void they_grow_as_mappings_whatever_arena_is_named(void **state)
{
    char *block = prairie_malloc(VAST);
    uint32_t page = page_at(block);

    (void)state;
    needs_addresses(8 * VAST);
    mark_ends(block, VAST);
    block = prairie_rallocx(block, VAST + 5 * page_bytes(), MALLOCX_ARENA(0));
    expect_vast(block, VAST + 5 * page_bytes());
    assert_int_equal(page_at(block), page);
    expect_marks(block, VAST);
    prairie_free(block);
    expect_none();
}

/* The kernel chooses no place by an alignment: pages move to one that is taken. */
static void pages_move_to_where_an_alignment_wants_them(void **state)
{
    const size_t longer = VAST + 4 * page_bytes(), wide = 2 * VAST;
    const int flags = MALLOCX_ALIGN(wide);
    char *block = prairie_mallocx(VAST, flags);
    uint64_t moved = fake_moved_bytes();

    (void)state;
    needs_addresses(8 * VAST);
    mark_ends(block, VAST);
    block = prairie_rallocx(block, longer, flags);
    expect_vast(block, longer);
    assert_true(is_aligned((uintptr_t)block, wide));
    assert_int_equal(fake_moved_bytes(), moved + VAST);
    expect_marks(block, VAST);
    assert_ptr_equal(prairie_rallocx(block, VAST, flags), block);
    prairie_free(block);

    /* One that lies elsewhere, and becomes shorter. */
    do block = prairie_malloc(longer);
    while (is_aligned((uintptr_t)block, wide)); /* by chance */
    mark_ends(block, VAST);
    moved = fake_moved_bytes();
    block = prairie_rallocx(block, VAST, flags | MALLOCX_ARENA(0));
    expect_vast(block, VAST);
    assert_true(is_aligned((uintptr_t)block, wide));
    assert_int_equal(fake_moved_bytes(), moved + VAST);
    expect_marks(block, VAST);
    prairie_free(block);
}

static void a_run_becomes_vast_with_its_pages(void **state)
{
    size_t bytes = REMAP_BYTES_MIN;
    char *block = prairie_malloc(bytes);
    uint64_t moved = fake_moved_bytes();

    (void)state;
    needs_addresses(8 * VAST);
    block[0] = 1;
    block[bytes - 1] = 2;
    block = prairie_realloc(block, VAST);
    expect_vast(block, VAST);
    assert_int_equal(fake_moved_bytes(), moved + bytes);
    assert_int_equal(block[0], 1);
    assert_int_equal(block[bytes - 1], 2);
    assert_int_equal(block[bytes], 0);
    prairie_free(block);
    expect_none();
}

/* A kernel that refuses a reservation may have room in the address space's own. */
static void the_space_serves_what_the_kernel_will_not_map(void **state)
{
    char *block;

    (void)state;
    needs_addresses(8 * VAST);
    prairie_free(prairie_malloc(1));
    if (VAST >= REGION_BYTES_FIRST) skip();
    fake_fail_kind(FAKE_RESERVE, true);
    block = prairie_malloc(VAST);
    fake_fail_kind(FAKE_RESERVE, false);
    assert_non_null(block);
    assert_int_equal(page_record(page_at(block))->state, PAGE_LARGE);
    prairie_free(block);
}

/* And one of no vast size has a refuge there when the address space has no numbers. */
static void the_kernel_serves_what_has_no_numbers(void **state)
{
    char *held = prairie_malloc(1), *block; /* so that what is open is never one free run */
    uint32_t next;

    (void)state;
    needs_addresses(8 * VAST);
    next = space.next_number;
    space.next_number = space.foreign_from - 200;
    space.region[0].bytes = (size_t)space.region[0].open_pages << space.page_shift;
    block = prairie_malloc(VAST_REFUGE_BYTES);
    expect_vast(block, VAST_REFUGE_BYTES);
    prairie_free(block);
    assert_null(prairie_malloc(VAST_REFUGE_BYTES - 2 * page_bytes()));
    space.next_number = next;
    prairie_free(held);
}

static void refused_calls_change_nothing(void **state)
{
    (void)state;
    needs_addresses(8 * VAST);
    prairie_free(prairie_malloc(1));
    for (unsigned n = 1; n < 8; n++) {
        char *block, *more;

        fake_fail_row(n, 3);
        block = prairie_malloc(VAST);
        fake_fail_nth(0);
        if (block == NULL) expect_none();
        if (block == NULL) block = prairie_malloc(VAST);
        block[0] = (char)n;
        fake_fail_row(n, 3);
        more = prairie_realloc(block, 2 * VAST);
        fake_fail_nth(0);
        if (more != NULL) block = more;
        assert_int_equal(prairie_usable_size(block), more != NULL ? 2 * VAST : VAST);
        assert_int_equal(block[0], (char)n);
        prairie_check_all();
        prairie_free(block);
        expect_none();
    }
    assert_true(fake_failures() > 5);
}

/* What a run left behind when its pages moved away is clean. */
static void a_run_that_became_vast_leaves_no_dirty_pages(void **state)
{
    char *block = prairie_malloc(REMAP_BYTES_MIN);
    size_t dirty = page_heap->free_pages[FREE_DIRTY];
    char *again;

    (void)state;
    needs_addresses(8 * VAST);
    memset(block, 1, REMAP_BYTES_MIN);
    block = prairie_realloc(block, VAST);
    expect_vast(block, VAST);
    assert_int_equal(page_heap->free_pages[FREE_DIRTY], dirty);
    again = prairie_calloc(1, REMAP_BYTES_MIN);
    assert_int_equal(again[0] | again[REMAP_BYTES_MIN - 1], 0);
    prairie_free(again);
    prairie_free(block);
}

/* ---- misuse ---- */

static char *victim;

static void free_victim(void) { prairie_free(victim); }
static void realloc_victim(void) { (void)prairie_realloc(victim, 5 * MiB); }
static void ask_victim(void) { (void)prairie_usable_size(victim); }

static void misuse_is_told(void **state)
{
    char *block = prairie_malloc(VAST);

    (void)state;
    needs_addresses(8 * VAST);
    victim = block + 16;
    expect_abort(free_victim, "prairie: free of an interior pointer");
    victim = block + VAST / 2;
    expect_abort(free_victim, "prairie: free of an interior pointer");
    expect_abort(realloc_victim, "prairie: realloc of an interior pointer");
    expect_abort(ask_victim, "prairie: malloc_usable_size of an interior pointer");
    victim = block + VAST;
    expect_abort(free_victim, "prairie: free of a foreign pointer");
    prairie_free(block);
    victim = block;
    expect_abort(free_victim, "prairie: double free");
    expect_abort(realloc_victim, "prairie: realloc of a freed pointer");
    expect_abort(ask_victim, "prairie: malloc_usable_size of a freed pointer");
}

/* Slabs' pages are those of the page heaps without large blocks, and vast ones have none. */
static void a_vast_block_is_no_part_of_what_slabs_have(void **state)
{
    size_t pages;
    void *block;

    (void)state;
    needs_addresses(8 * VAST);
    prairie_free(prairie_malloc(1));
    pages = page_heap_slab_pages(page_heap);
    block = prairie_malloc(VAST);
    expect_vast(block, VAST);
    assert_int_equal(page_heap_slab_pages(page_heap), pages);
    prairie_free(prairie_malloc(4 * MiB)); /* of clean pages */
    assert_in_range(page_heap->slab_peak, 1, page_heap->open_pages);
    prairie_free(block);
    expect_none();
}

UNIT_MAIN(UNIT_TEST(a_vast_block_is_no_part_of_what_slabs_have),
          UNIT_TEST(a_vast_block_is_a_reservation_of_its_own), UNIT_TEST(a_smaller_one_is_a_run),
          UNIT_TEST(they_are_counted), UNIT_TEST(they_change_their_size),
          UNIT_TEST(a_short_one_moves_to_a_staggered_place),
          UNIT_TEST(they_grow_as_mappings_whatever_arena_is_named),
          UNIT_TEST(pages_move_to_where_an_alignment_wants_them),
          UNIT_TEST(a_run_becomes_vast_with_its_pages),
          UNIT_TEST(the_space_serves_what_the_kernel_will_not_map),
          UNIT_TEST(the_kernel_serves_what_has_no_numbers), UNIT_TEST(refused_calls_change_nothing),
          UNIT_TEST(a_run_that_became_vast_leaves_no_dirty_pages), UNIT_TEST(misuse_is_told))
