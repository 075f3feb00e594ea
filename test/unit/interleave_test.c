/* interleave_test.c - what is read without a lock, when something happens in the middle. */
/* SPDX-License-Identifier: MIT */

#include "library.h"

#include "pages.h"
#include "threads.h"

/* ---- is there a free run of that length? ---- */

enum { RUN_PAGES = 20 };

/* It was clean, and comes back dirty. */
static void *use_clean_run(void *unused)
{
    (void)unused;
    run_return(run_lease(RUN_PAGES, 1, PAGE_LARGE).page);
    return NULL;
}

static void another_uses_the_clean_run(void) { run_thread(use_clean_run, NULL); }

/* All other pages are in use, and the one free run is clean. */
static uint32_t only_clean_run(void)
{
    uint32_t page = between_used(RUN_PAGES);

    while (!run_lease_would_grow(page_heap, 1)) (void)lease(1);
    give_back(page);
    (void)purge_all();
    expect_run(page, RUN_PAGES, PAGE_CLEAN);
    return page;
}

/* It was free before and after, and in neither list when that was looked at. Who is told so looks
 * at limits, or empties caches, for nothing; it does not grow. */
static void a_run_that_is_used_meanwhile_is_not_seen(void **state)
{
    uint32_t page;
    size_t open_bytes;

    (void)state;
    huge.policy = HUGE_NEVER;
    start_pages();
    page = only_clean_run();
    open_bytes = space.open_bytes;
    let_happen("run_lease_would_grow", 0, another_uses_the_clean_run);
    assert_true(run_lease_would_grow(page_heap, RUN_PAGES));
    assert_true(it_happened());
    assert_false(run_lease_would_grow(page_heap, RUN_PAGES));
    assert_int_equal(lease(RUN_PAGES), page);
    assert_int_equal(space.open_bytes, open_bytes);
}

/* ---- what a thread holds ready ---- */

enum { BLOCKS = 400, BLOCK_BYTES = 64 };
static void *blocks[BLOCKS];

static void fill_magazines_anew(void)
{
    for (unsigned i = 0; i < BLOCKS; i++) blocks[i] = prairie_malloc(BLOCK_BYTES);
    for (unsigned i = BLOCKS; i > BLOCKS / 2; i--) prairie_free(blocks[i - 1]);
}

static size_t small_allocated(void)
{
    const struct snapshot *numbers;
    size_t bytes;

    lock_take(&control_lock);
    numbers = snapshot_take();
    assert_non_null(numbers);
    bytes = numbers->all.small.allocated;
    lock_give(&control_lock);
    return bytes;
}

/* Its magazine is another one when the rest is read: no more is taken off than is out of the slabs,
 * and none twice. */
static void a_magazine_that_grows_meanwhile_is_counted_once(void **state)
{
    unsigned class_index = class_of_size(BLOCK_BYTES);
    void *held;

    (void)state;
    fake_cores(1);
    held = prairie_malloc(BLOCK_BYTES);
    assert_int_equal(small_allocated(), BLOCK_BYTES);
    for (unsigned skip = class_index - 1; skip <= class_index; skip++) {
        let_happen("count_cache", skip, fill_magazines_anew);
        assert_in_range(small_allocated(), 0, (BLOCKS + 1) * (size_t)BLOCK_BYTES);
        assert_true(it_happened());
        for (unsigned i = 0; i < BLOCKS / 2; i++) prairie_free(blocks[i]);
        assert_int_equal(small_allocated(), BLOCK_BYTES);
    }
    prairie_free(held);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(a_run_that_is_used_meanwhile_is_not_seen),
          UNIT_TEST(a_magazine_that_grows_meanwhile_is_counted_once))
