/* shortage_limits_test.c - the wall of the hard limit, and what the soft one tells. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "heap/hardened.h"
#include "page_heap/run_find.h"
#include "shortage.h"

/* All that the hard limit bounds. */
static size_t taken_bytes(void)
{
    return space.open_bytes - (page_heap->free_pages[FREE_CLEAN] << space.page_shift)
         + commit.record_bytes;
}

static void the_hard_limit_is_a_wall(void **state)
{
    size_t bytes = 0;

    (void)state;
    limit_hard_set(4 * MiB);
    while (prairie_malloc(50000) != NULL) bytes += 50000;
    assert_int_equal(errno, ENOMEM);
    assert_true(bytes > 3 * MiB);
    assert_true(taken_bytes() <= 4 * MiB);
    while (prairie_malloc(100) != NULL) {}
    assert_true(taken_bytes() <= 4 * MiB);
    limit_hard_set(0);
    assert_int_equal(limit_hard_get(), 0);
    assert_non_null(prairie_malloc(2 * MiB));
}

/* Takes what can be had, in blocks of each of these sizes in turn, of small and large ones, aligned
 * ones and ones that grow in place. */
static size_t take_all(void)
{
    static const size_t sizes[] = { 3000000, 200000, 50000, 9000, 600, 24 };
    size_t bytes = 0;
    void *block = prairie_malloc(20000), *grown;

    for (size_t size = 40000; (grown = prairie_realloc(block, size)) != NULL; size += 20000) {
        block = grown;
        bytes = size;
        assert_true(taken_bytes() <= limits_hard());
    }
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        while (prairie_malloc(sizes[i]) != NULL) bytes += sizes[i];
        assert_true(taken_bytes() <= limits_hard());
        while (prairie_aligned_alloc(8192, sizes[i]) != NULL) bytes += sizes[i];
        assert_true(taken_bytes() <= limits_hard());
    }
    return bytes;
}

/* What was open once and is free now is no reason to let it be taken again. */
static void the_hard_limit_counts_what_is_taken_not_what_is_open(void **state)
{
    size_t bytes = min_size(64 * MiB, VAST_BYTES_MIN / 2);

    (void)state;
    prairie_free(prairie_malloc(bytes));
    assert_true(space.open_bytes >= bytes);
    limit_hard_set(4 * MiB);
    assert_true(taken_bytes() <= 4 * MiB);
    assert_true(take_all() > 3 * MiB);
}

/* A limit below what is in use takes effect as blocks come back. */
static void a_hard_limit_below_what_is_used_refuses_growth(void **state)
{
    void *block[8];

    (void)state;
    for (unsigned i = 0; i < 8; i++) assert_non_null(block[i] = prairie_malloc(1 * MiB));
    limit_hard_set(4 * MiB);
    assert_null(prairie_malloc(1 * MiB));
    for (unsigned i = 0; i < 4; i++) prairie_free(block[i]);
    assert_null(prairie_malloc(1 * MiB));
    prairie_free(block[4]);
    prairie_free(block[5]);
    assert_non_null(prairie_malloc(1 * MiB));
    assert_true(taken_bytes() <= 4 * MiB);
}

/* Dirty pages count, and go to the kernel when they are not where they are wanted. */
static void dirty_pages_do_not_keep_a_block_from_its_limit(void **state)
{
    static void *block[64];

    (void)state;
    limit_hard_set(6 * MiB);
    for (unsigned i = 0; i < 64; i++) assert_non_null(block[i] = prairie_malloc(64 * KiB));
    for (unsigned i = 0; i < 64; i += 2) prairie_free(block[i]);
    assert_non_null(prairie_malloc(3 * MiB));
    assert_true(taken_bytes() <= 6 * MiB);
}

/* Nor a block that has room to grow, and of which two would be too much. */
static void dirty_pages_do_not_keep_a_block_from_growing(void **state)
{
    static void *block[48];
    void *last, *after;

    (void)state;
    for (unsigned i = 0; i < 48; i++) assert_non_null(block[i] = prairie_malloc(64 * KiB));
    last = prairie_malloc(2 * MiB);
    after = prairie_malloc(1 * MiB);
    assert_true(last != NULL && after == (char *)last + 2 * MiB);
    prairie_free(after);
    (void)prairie_purge();
    for (unsigned i = 0; i < 48; i += 2) prairie_free(block[i]);
    assert_true(page_heap->free_pages[FREE_DIRTY] << space.page_shift >= 512 * KiB);
    limit_hard_set(taken_bytes() + 64 * KiB);
    prairie_free(prairie_malloc(64 * KiB));
    assert_ptr_equal(prairie_realloc(last, 2 * MiB + 256 * KiB), last);
    assert_true(taken_bytes() <= limit_hard_get());
}

/* ---- pages that another thread has on their way to the kernel ---- */

enum { SLEEPS_MAX = 20 };

static uint32_t on_its_way; /* 0: it is back */
static enum page_state comes_back_as;

static void bring_back(void)
{
    if (on_its_way != 0) run_put_free(on_its_way, comes_back_as);
    on_its_way = 0;
}

/* Another thread is about to purge the only dirty pages, 4 MiB, and the limit has room for 64
 * KiB. */
static void start_with_pages_on_their_way(void)
{
    uint32_t page;

    prairie_free(prairie_malloc(1));
    huge_obey_option(HUGE_NEVER); /* it is one run */
    page = run_lease(4 * MiB >> space.page_shift, 1, PAGE_LARGE).page;
    assert_int_not_equal(page, 0);
    (void)purge_all();
    run_return(page);
    on_its_way = run_take_dirty(page_heap, 1, 4 * MiB >> space.page_shift);
    assert_int_equal(on_its_way, page);
    limit_hard_set(commit_taken_bytes() + 64 * KiB);
}

static void a_refusal_waits_for_pages_on_their_way(void **state)
{
    void *block;

    (void)state;
    start_with_pages_on_their_way();
    comes_back_as = PAGE_CLEAN;
    fake_on_sleep(bring_back);
    block = prairie_malloc(2 * MiB);
    assert_non_null(block);
    assert_int_equal(on_its_way, 0);
    assert_int_equal(fake_calls(FAKE_SLEEP), 1);
    assert_null(prairie_malloc(4 * MiB)); /* nothing is on its way now */
    assert_int_equal(fake_calls(FAKE_SLEEP), 1);
    prairie_free(block);
    prairie_check_all();
}

static void bring_back_late(void)
{
    if (fake_calls(FAKE_SLEEP) == SLEEPS_MAX) bring_back();
}

static void a_refusal_waits_some_milliseconds(void **state)
{
    (void)state;
    start_with_pages_on_their_way();
    comes_back_as = PAGE_CLEAN;
    fake_on_sleep(bring_back_late);
    assert_non_null(prairie_malloc(2 * MiB));
    assert_int_equal(fake_calls(FAKE_SLEEP), SLEEPS_MAX);
    prairie_check_all();
}

static void small_blocks_wait_for_pages_on_their_way(void **state)
{
    unsigned blocks = 0;

    (void)state;
    start_with_pages_on_their_way();
    comes_back_as = PAGE_CLEAN;
    fake_on_sleep(bring_back);
    while (prairie_malloc(1000) != NULL) blocks++;
    assert_int_equal(fake_calls(FAKE_SLEEP), 1);
    assert_in_range(blocks * 1000, 3 * MiB, 5 * MiB);
    prairie_check_all();
}

static void a_callback_waits_for_pages_on_their_way(void **state)
{
    (void)state;
    start_with_pages_on_their_way();
    shortage_gather();
    (void)purge_all();
    limit_hard_set(commit_taken_bytes());
    comes_back_as = PAGE_CLEAN;
    fake_on_sleep(bring_back);
    assert_false(reserve_cb_register(hear, called("a")));
    assert_int_equal(on_its_way, 0);
}

/* Who purges may be kept from running. */
static void a_refusal_does_not_wait_for_ever(void **state)
{
    (void)state;
    start_with_pages_on_their_way();
    assert_null(prairie_malloc(2 * MiB));
    assert_in_range(fake_calls(FAKE_SLEEP), 1, SLEEPS_MAX);
    assert_non_null(prairie_malloc(32 * KiB)); /* for which there is room */
    assert_in_range(fake_calls(FAKE_SLEEP), 1, SLEEPS_MAX);
    comes_back_as = PAGE_DIRTY;
    bring_back();
    prairie_check_all();
}

/* A size that is beyond the limit by itself is no reason to give anything back. */
static void what_can_never_fit_costs_no_pages(void **state)
{
    static void *block[64];
    uint64_t purges;
    size_t dirty;

    (void)state;
    for (unsigned i = 0; i < 64; i++) assert_non_null(block[i] = prairie_malloc(64 * KiB));
    for (unsigned i = 0; i < 16; i += 2) prairie_free(block[i]);
    limit_hard_set(taken_bytes() + 1 * MiB);
    dirty = page_heap->free_pages[FREE_DIRTY];
    purges = fake_calls(FAKE_PURGE);
    assert_true(dirty > 0);
    assert_null(prairie_malloc(limit_hard_get() + 1));
    assert_null(prairie_malloc(VAST_BYTES_MIN));
    assert_null(prairie_malloc(space.block_bytes_max / 2));
    assert_null(prairie_realloc(block[63], VAST_BYTES_MIN));
    assert_int_equal(fake_calls(FAKE_PURGE), purges);
    assert_int_equal(page_heap->free_pages[FREE_DIRTY], dirty);
    /* Nobody knows this one before it is tried. */
    assert_null(prairie_malloc(round_down(limit_hard_get(), page_bytes())));
    assert_true(fake_calls(FAKE_PURGE) > purges);
}

/* Clean pages at the end of the region are nothing that the limit counts. */
static void the_hard_limit_closes_no_pages(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    assert_true(hole_at_the_end(page_heap).pages > 0);
    EACH_ARENA (arena) meta_end_row(&arena->row);
    limit_hard_set(commit_taken_bytes());
    assert_null(prairie_malloc(1000));
    assert_int_equal(fake_calls(FAKE_CLOSE), 0);
}

/* Nor are those that lie before or behind an aligned block, nor what opens for their records. */
static void the_hard_limit_does_not_count_what_alignment_leaves(void **state)
{
    size_t align = BY_WORD(64 * MiB, 8 * MiB), wider = BY_WORD(GiB, 16 * MiB), used;
    char *block;

    (void)state;
    prairie_free(prairie_malloc(1));
    used = commit_taken_bytes();
    limit_hard_set(used + 2 * MiB);
    block = prairie_aligned_alloc(align, 1 * MiB);
    assert_non_null(block);
    assert_in_range(commit_taken_bytes() - used, 1 * MiB, 1 * MiB + 64 * KiB);
    assert_null(prairie_aligned_alloc(align, 3 * MiB / 2));
    assert_non_null(prairie_aligned_alloc(wider, 100000));
    memset(block, 1, 1 * MiB);
    prairie_free(block);
    prairie_check_all();
}

static void the_reserve_serves_at_the_wall(void **state)
{
    (void)state;
    start_with_reserve();
    add(hear, "a");
    limit_hard_set(3 * MiB);
    while (told.count == 0) assert_non_null(prairie_malloc(16 * KiB));
    assert_string_equal(told.conditions, "L");
    assert_true(reserve_cur_get() < reserve_min_get());
}

static void hear_and_fail(void *name, reserve_cnd_t condition, size_t size)
{
    hear(name, condition, size);
    errno = EBADF;
}

static void what_callbacks_leave_in_errno_is_theirs(void **state)
{
    (void)state;
    start_with_reserve();
    add(hear_and_fail, "a");
    limit_hard_set(3 * MiB);
    errno = 0;
    while (told.count == 0) assert_non_null(prairie_malloc(16 * KiB));
    assert_int_equal(errno, 0);
}

/* Growth is looked at from a step before the line on: what it opens at once, rounded up to a huge
 * page. */
static void the_soft_limit_is_looked_at_in_time(void **state)
{
    size_t soft = 256 * MiB, line = soft - soft / 16, step;

    (void)state;
    prairie_free(prairie_malloc(1));
    RELAXED_STORE(limits.follows_group, false);
    assert_true(limits_look_from(0) == SIZE_MAX);
    limit_soft_set(soft);
    step = max_size(OPEN_BYTES_MIN, space.open_bytes / 8) + HUGE_PAGE_BYTES;
    assert_int_equal(limits_look_from(0), line - step);
    assert_int_equal(limits_look_from(16 * MiB), line - 16 * MiB - HUGE_PAGE_BYTES);
    assert_int_equal(limits_look_from(line), 0);
}

static void the_soft_limit_is_told_and_told_again(void **state)
{
    const size_t soft = 3 * MiB;
    size_t first;

    (void)state;
    assert_false(reserve_min_set(0));
    add(hear, "a");
    limit_soft_set(soft);
    assert_int_equal(limit_soft_get(), soft);
    while (told.count == 0) spare_block(16 * KiB);
    first = commit_taken_bytes();
    assert_in_range(first, soft - soft / 8, soft + soft / 8);
    assert_string_equal(told.conditions, "L");
    assert_int_equal(told.last_size, 16 * KiB);
    while (told.count == 1) spare_block(16 * KiB);
    assert_in_range(commit_taken_bytes() - first, soft / 64, soft / 8);
    while (spare.count > 0) prairie_free(spare.block[--spare.count]);
    spare_block(16 * KiB); /* it hears that there is less */
    forget_told();
    while (told.count == 0) spare_block(16 * KiB);
    assert_in_range(commit_taken_bytes(), soft - soft / 8, soft + soft / 8);
}

/* Blocks that are mappings of their own count too, though the region does not grow with them. */
/* However low it is. */
static void a_soft_limit_is_not_told_again_without_growth(void **state)
{
    (void)state;
    assert_false(reserve_min_set(0));
    add(hear, "a");
    limit_soft_set(1);
    while (told.count == 0) spare_block(16 * KiB);
    forget_told();
    for (unsigned i = 0; i < 10; i++) {
        prairie_free(spare.block[--spare.count]);
        spare_block(16 * KiB);
    }
    assert_int_equal(told.count, 0);
}

static void vast_blocks_reach_the_soft_limit(void **state)
{
    (void)state;
    needs_addresses(4 * VAST_BYTES_MIN);
    assert_false(reserve_min_set(0));
    add(hear, "a");
    limit_soft_set(3 * (VAST_BYTES_MIN / 2));
    assert_non_null(prairie_malloc(VAST_BYTES_MIN));
    assert_int_equal(told.count, 0);
    assert_non_null(prairie_malloc(VAST_BYTES_MIN));
    assert_string_equal(told.conditions, "L");
}

/* Also while it grows, and in what others may take before somebody looks. */
static void a_vast_block_that_grows_reaches_the_soft_limit(void **state)
{
    void *block;

    (void)state;
    needs_addresses(4 * VAST_BYTES_MIN);
    assert_false(reserve_min_set(0));
    add(hear, "a");
    limit_soft_set(3 * (VAST_BYTES_MIN / 2));
    block = prairie_malloc(VAST_BYTES_MIN);
    assert_true(limits_look_from(0) < VAST_BYTES_MIN / 2);
    assert_int_equal(told.count, 0);
    assert_non_null(prairie_realloc(block, 2 * VAST_BYTES_MIN));
    assert_string_equal(told.conditions, "L");
}

static void a_hardened_block_that_grows_reaches_the_soft_limit(void **state)
{
    const size_t step = 512 * KiB;
    size_t bytes = step;
    char *block;

    (void)state;
    assert_true(hardened_start());
    assert_false(reserve_min_set(0));
    add(hear, "a");
    prairie_free(prairie_malloc(16 * MiB));
    thread_flush();
    limit_soft_set(8 * MiB);
    block = prairie_malloc(bytes);
    for (; told.count == 0 && bytes < 16 * MiB; bytes += step)
        assert_ptr_equal(prairie_realloc(block, bytes + step), block);
    assert_string_equal(told.conditions, "L");
    assert_int_equal(told.last_size, step);
    assert_in_range(bytes, 6 * MiB, 9 * MiB);
    prairie_free(block);
    prairie_check_all();
}

/* Whoever is told hears for how much. */
static void large_blocks_that_reach_the_soft_limit_are_named(void **state)
{
    (void)state;
    assert_false(reserve_min_set(0));
    add(hear, "a");
    limit_soft_set(8 * MiB);
    while (told.count == 0) assert_non_null(prairie_malloc(512 * KiB - 5));
    assert_int_equal(told.last_size, 512 * KiB);
}

static void reach_the_soft_limit(void)
{
    size_t bytes = 0;

    add(hear, "a");
    assert_false(reserve_min_set(0));
    limit_soft_set(2 * MiB);
    for (; told.count == 0 && bytes < 4 * MiB; bytes += 100) (void)prairie_malloc(100);
    assert_int_equal(told.count, 1);
    assert_true(bytes > 1 * MiB);
}

/* Small blocks come the other way through the doors. */
static void small_blocks_reach_the_soft_limit(void **state)
{
    (void)state;
    reach_the_soft_limit();
}

static void counted_blocks_reach_the_soft_limit(void **state)
{
    (void)state;
    assert_non_null(prairie_thread_totals());
    reach_the_soft_limit();
}

static void beyond_the_soft_limit_nothing_stays_dirty(void **state)
{
    void *block[8];

    (void)state;
    limit_soft_set(1 * MiB);
    for (unsigned i = 0; i < 8; i++) assert_non_null(block[i] = prairie_malloc(256 * KiB));
    prairie_free(block[0]);
    assert_true(page_heap->free_pages[FREE_DIRTY] << space.page_shift < 64 * KiB);
    assert_true(RELAXED_LOAD(purge_mode.keeps_none));
    for (unsigned i = 1; i < 8; i++) prairie_free(block[i]);
    prairie_free(prairie_malloc(20000)); /* looks, and sees that all is well */
    assert_false(RELAXED_LOAD(purge_mode.keeps_none));
}

UNIT_MAIN(
    UNIT_TEST(the_hard_limit_is_a_wall),
    UNIT_TEST(the_hard_limit_counts_what_is_taken_not_what_is_open),
    UNIT_TEST(a_hard_limit_below_what_is_used_refuses_growth),
    UNIT_TEST(dirty_pages_do_not_keep_a_block_from_its_limit),
    UNIT_TEST(dirty_pages_do_not_keep_a_block_from_growing),
    UNIT_TEST(a_refusal_waits_for_pages_on_their_way), UNIT_TEST(a_refusal_waits_some_milliseconds),
    UNIT_TEST(small_blocks_wait_for_pages_on_their_way),
    UNIT_TEST(a_callback_waits_for_pages_on_their_way), UNIT_TEST(a_refusal_does_not_wait_for_ever),
    UNIT_TEST(what_can_never_fit_costs_no_pages), UNIT_TEST(the_hard_limit_closes_no_pages),
    UNIT_TEST(the_hard_limit_does_not_count_what_alignment_leaves),
    UNIT_TEST(the_reserve_serves_at_the_wall), UNIT_TEST(what_callbacks_leave_in_errno_is_theirs),
    UNIT_TEST(the_soft_limit_is_looked_at_in_time),
    UNIT_TEST(the_soft_limit_is_told_and_told_again),
    UNIT_TEST(a_soft_limit_is_not_told_again_without_growth),
    UNIT_TEST(vast_blocks_reach_the_soft_limit),
    UNIT_TEST(a_vast_block_that_grows_reaches_the_soft_limit),
    UNIT_TEST(a_hardened_block_that_grows_reaches_the_soft_limit),
    UNIT_TEST(large_blocks_that_reach_the_soft_limit_are_named),
    UNIT_TEST(small_blocks_reach_the_soft_limit), UNIT_TEST(counted_blocks_reach_the_soft_limit),
    UNIT_TEST(beyond_the_soft_limit_nothing_stays_dirty))
