/* vast_test.c - blocks that are mappings of their own: taken, told apart, resized, given back. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "control_tree.h"
#include "unit.h"

#include <jemalloc/jemalloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define VAST VAST_BYTES_MIN

/* Of that size, or another one of as many pages that leaves as much of the last one. */
static void expect_vast(const void *block, size_t size)
{
    size_t bytes = round_up(size, page_bytes());

    assert_non_null(block);
    assert_int_equal(page_record(page_at(block))->state, PAGE_VAST);
    assert_ptr_equal(page_address(page_at(block)), block);
    assert_int_equal(prairie_usable_size(block), prairie_nallocx(size, 0));
    assert_int_equal(page_at((const char *)block + bytes), 0);
    prairie_check_all();
}

static void expect_none(void)
{
    assert_int_equal(commit.vast_bytes, 0);
    assert_int_equal(commit.vast_count, 0);
    prairie_check_all();
}

static void a_vast_block_is_a_reservation_of_its_own(void **state)
{
    size_t reserved;
    char *block;

    (void)state;
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

/* However much that is, from where the pages are no longer cleared by hand. */
static void what_is_gained_as_zeros_is_not_touched(void **state)
{
    static const size_t gains[] = { CLEAR_BYTES_MAX, VAST };

    (void)state;
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
    char *block, *run;

    (void)state;
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
    assert_false(is_resident(run + 102400, VAST - 102400));
    prairie_free(run);
    prairie_free(block);
}

/* Bytes that a block loses and gains again within its last page. */
static void the_option_zero_clears_what_is_gained_of_a_page(void **state)
{
    size_t size;
    char *block;

    (void)state;
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

static void a_run_becomes_vast_with_its_pages(void **state)
{
    size_t bytes = REMAP_BYTES_MIN;
    char *block = prairie_malloc(bytes);
    uint64_t moved = fake_moved_bytes();

    (void)state;
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

static void the_hard_limit_holds(void **state)
{
    char *block;

    (void)state;
    prairie_free(prairie_malloc(1));
    block = prairie_malloc(VAST);
    limits_set_hard(3 * VAST);
    assert_null(prairie_malloc(2 * VAST));
    assert_null(prairie_realloc(block, 3 * VAST));
    expect_vast(block, VAST);
    block = prairie_realloc(block, VAST + VAST / 2);
    expect_vast(block, VAST + VAST / 2);
    prairie_free(block);
    block = prairie_malloc(2 * VAST);
    expect_vast(block, 2 * VAST);
    assert_true(commit_taken_bytes() >= 2 * VAST);
    prairie_free(block);
}

static bool seen_allowed;
static unsigned looks;

/* Is there room for another VAST bytes, as this call of the kernel sees it? */
static void look_for_room(enum fake_call kind)
{
    if (kind != FAKE_RESERVE && kind != FAKE_RESIZE && kind != FAKE_MOVE) return;
    looks++;
    seen_allowed |= commit_allows(VAST);
}

/* What a thread is at the kernel for is no other's. */
static void the_hard_limit_counts_what_is_coming(void **state)
{
    char *block, *run = prairie_malloc(REMAP_BYTES_MIN);

    (void)state;
    prairie_free(prairie_malloc(VAST)); /* the order of places is reserved */
    fake_on_call(look_for_room);
    limits_set_hard(2 * VAST);
    block = prairie_malloc(VAST + VAST / 2);
    limits_set_hard(3 * VAST);
    block = prairie_realloc(block, 2 * VAST + VAST / 2);
    expect_vast(block, 2 * VAST + VAST / 2);
    limits_set_hard(5 * VAST);
    run = prairie_realloc(run, VAST + VAST / 2 + VAST / 4);
    expect_vast(run, VAST + VAST / 2 + VAST / 4);
    assert_int_equal(looks, 3);
    assert_false(seen_allowed);
    fake_fail_kind(FAKE_RESIZE, true);
    assert_null(prairie_realloc(block, 3 * VAST));
    fake_fail_kind(FAKE_RESIZE, false);
    fake_on_call(NULL);
    assert_int_equal(commit.vast_coming, 0);
    prairie_free(block);
    prairie_free(run);
    expect_none();
}

static void leave_dirty(void)
{
    prairie_free(prairie_malloc(64 * MiB));
    if (page_heap->free_pages[FREE_DIRTY] == 0) skip();
}

/* Dirty pages make room for growth as they do for new blocks, and a move takes its own along. */
static void the_hard_limit_is_kept_by_purging(void **state)
{
    char *block = prairie_malloc(VAST), *run;

    (void)state;
    leave_dirty();
    limits_set_hard(commit_taken_bytes() + VAST - page_bytes());
    block = prairie_realloc(block, 2 * VAST);
    expect_vast(block, 2 * VAST);
    limits_set_hard(0);
    leave_dirty();
    limits_set_hard(commit_taken_bytes() + VAST - page_bytes());
    run = prairie_malloc(VAST);
    expect_vast(run, VAST);
    prairie_free(run);
    limits_set_hard(0);
    run = prairie_malloc(REMAP_BYTES_MIN);
    limits_set_hard(commit_taken_bytes() + VAST - REMAP_BYTES_MIN);
    run = prairie_realloc(run, VAST);
    expect_vast(run, VAST);
    prairie_free(run);
    prairie_free(block);
    expect_none();
}

static uint32_t on_its_way;

static void bring_back(void)
{
    if (on_its_way != 0) run_put_free(on_its_way, PAGE_CLEAN);
    on_its_way = 0;
}

/* Also by another thread, which has not come back from the kernel. */
static void the_hard_limit_waits_for_who_purges(void **state)
{
    char *block;

    (void)state;
    prairie_free(prairie_malloc(1));
    on_its_way = run_lease(16, 1, PAGE_LARGE).page;
    (void)purge_all();
    run_return(on_its_way);
    assert_int_equal(run_take_dirty(page_heap, 1, 16), on_its_way);
    limits_set_hard(commit_taken_bytes() + VAST - 8 * page_bytes());
    fake_on_sleep(bring_back);
    block = prairie_malloc(VAST);
    expect_vast(block, VAST);
    assert_int_equal(fake_calls(FAKE_SLEEP), 1);
    prairie_free(block);
}

/* What a run left behind when its pages moved away is clean. */
static void a_run_that_became_vast_leaves_no_dirty_pages(void **state)
{
    char *block = prairie_malloc(REMAP_BYTES_MIN);
    size_t dirty = page_heap->free_pages[FREE_DIRTY];
    char *again;

    (void)state;
    memset(block, 1, REMAP_BYTES_MIN);
    block = prairie_realloc(block, VAST);
    expect_vast(block, VAST);
    assert_int_equal(page_heap->free_pages[FREE_DIRTY], dirty);
    again = prairie_calloc(1, REMAP_BYTES_MIN);
    assert_int_equal(again[0] | again[REMAP_BYTES_MIN - 1], 0);
    prairie_free(again);
    prairie_free(block);
}

/* A child is made while others are at the kernel, and so they never come back there. */
static void a_child_does_not_wait_for_what_comes(void **state)
{
    char *stays = prairie_malloc(VAST), *moves = prairie_malloc(2 * VAST);
    uint32_t hidden = page_at(moves);
    int child, status;

    (void)state;
    limits_set_hard(commit_taken_bytes() + 2 * VAST);
    assert_true(inside_expect_bytes(VAST));
    inside_hide_block(hidden, 2 * VAST);
    prairie_check_all();
    child = fake_fork();
    if (child == 0) {
        char *block = prairie_malloc(2 * VAST);
        bool good = block != NULL && commit.vast_coming == 0 && commit.vast_bytes == 3 * VAST;

        prairie_check_all();
        prairie_free(block);
        prairie_free(stays);
        _exit(good && commit.vast_bytes == 0 && commit.vast_count == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    inside_show_block(hidden, (struct os_range){ moves, 2 * VAST }, 2 * VAST);
    inside_give_up(VAST);
    prairie_check_all();
    prairie_free(moves);
    prairie_free(stays);
    expect_none();
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
          UNIT_TEST(what_is_gained_as_zeros_is_not_touched),
          UNIT_TEST(a_small_block_becomes_vast_without_touching_it),
          UNIT_TEST(the_option_zero_touches_no_vast_block),
          UNIT_TEST(the_option_zero_clears_what_is_gained_of_a_page),
          UNIT_TEST(junk_fills_what_is_gained), UNIT_TEST(a_run_becomes_vast_with_its_pages),
          UNIT_TEST(the_space_serves_what_the_kernel_will_not_map),
          UNIT_TEST(the_kernel_serves_what_has_no_numbers), UNIT_TEST(refused_calls_change_nothing),
          UNIT_TEST(the_hard_limit_holds), UNIT_TEST(the_hard_limit_counts_what_is_coming),
          UNIT_TEST(the_hard_limit_is_kept_by_purging),
          UNIT_TEST(the_hard_limit_waits_for_who_purges),
          UNIT_TEST(a_run_that_became_vast_leaves_no_dirty_pages),
          UNIT_TEST(a_child_does_not_wait_for_what_comes), UNIT_TEST(misuse_is_told))
