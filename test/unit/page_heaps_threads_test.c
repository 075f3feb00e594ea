/* page_heaps_threads_test.c - which page heap a thread leases from. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "page_heaps.h"
#include "threads.h"

static void one_thread_has_one_page_heap(void **state)
{
    void *block[200];

    (void)state;
    for (unsigned i = 0; i < 200; i++) block[i] = prairie_malloc((size_t)37 * i * i);
    for (unsigned i = 0; i < 200; i += 2) prairie_free(block[i]);
    for (unsigned i = 1; i < PAGE_HEAPS; i++) assert_int_equal(page_heap[i].open_pages, 0);
    prairie_check_all();
}

static void *small, *large;
static size_t pages_that_threads_keep = LARGE_CACHE_PAGES_MAX;
static size_t longer_pages = LARGE_CACHE_PAGES_MAX + 1;
static void *take_pages(void *pages)
{
    large = prairie_malloc(*(const size_t *)pages << space.page_shift);
    return NULL;
}
static void *take_both(void *pages)
{
    small = prairie_malloc(100);
    return take_pages(pages);
}

/* Each thread has an arena of its own here; its blocks go home when the first thread frees them. */
static void a_threads_pages_are_of_its_arena(void **state)
{
    struct page_heap *heap;

    (void)state;
    fake_cores(4);
    prairie_free(prairie_malloc(100));
    run_thread(take_both, &pages_that_threads_keep);
    heap = page_heap_of(page_at(large));
    assert_ptr_not_equal(heap, page_heap);
    assert_int_equal(page_heap_large_count(heap), 1);
    prairie_free(large);
    prairie_free(small);
    assert_int_equal(page_heap_large_count(heap), 0);
    prairie_check_all();
    assert_true(prairie_purge() > 0);
    assert_int_equal(all_dirty(), 0);
}

/* Whoever takes them, for whoever returns them is to serve the next. */
static void long_blocks_are_of_the_first(void **state)
{
    (void)state;
    fake_cores(4);
    prairie_free(prairie_malloc(100));
    run_thread(take_pages, &longer_pages);
    assert_ptr_equal(page_heap_of(page_at(large)), page_heap);
    prairie_free(large);
    prairie_check_all();
}

static void *take_pages_and_stay(void *pages)
{
    (void)take_pages(pages);
    return stand_by(NULL);
}

/* Threads that take no small block are spread, too, while all of them are there. */
static void threads_with_large_blocks_alone_are_spread(void **state)
{
    pthread_t thread[PAGE_HEAPS];
    void *block[PAGE_HEAPS];

    (void)state;
    fake_cores(PAGE_HEAPS);
    RELAXED_STORE(bystander_may_end, 0);
    for (unsigned i = 0; i < PAGE_HEAPS; i++) {
        RELAXED_STORE(bystander_stands, 0);
        assert_int_equal(
            pthread_create(&thread[i], NULL, take_pages_and_stay, &pages_that_threads_keep), 0);
        wait_until_set(&bystander_stands);
        block[i] = large;
        assert_ptr_equal(page_heap_of(page_at(large)), &page_heap[i]);
    }
    for (unsigned i = 0; i < PAGE_HEAPS; i++) end_bystander(thread[i]);
    for (unsigned i = 0; i < PAGE_HEAPS; i++) prairie_free(block[i]);
    prairie_check_all();
}

static void a_thread_moves_when_its_page_heap_is_held(void **state)
{
    void *before, *after;

    (void)state;
    fake_cores(4);
    before = prairie_malloc(5 * page_bytes());
    assert_ptr_equal(page_heap_of(page_at(before)), page_heap);
    assert_non_null(arena_at(2));
    fake_core_current(2);
    assert_true(lock_try_anywhere(&page_heap->lock)); /* as if by another thread */
    after = prairie_malloc(7 * page_bytes());
    lock_give_anywhere(&page_heap->lock);
    assert_ptr_equal(page_heap_of(page_at(after)), &page_heap[2]);
    prairie_free(after);
    prairie_free(before);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(one_thread_has_one_page_heap), UNIT_TEST(a_threads_pages_are_of_its_arena),
          UNIT_TEST(long_blocks_are_of_the_first),
          UNIT_TEST(threads_with_large_blocks_alone_are_spread),
          UNIT_TEST(a_thread_moves_when_its_page_heap_is_held))
