/* pages.h - what the tests of page runs share. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_PAGES_H
#define PRAIRIE_TEST_PAGES_H

#include "unit.h"

static void start_pages(void)
{
    page_heaps_start();
    assert_true(space_start());
}

static void take_page_heaps(void)
{
    for (unsigned i = 0; i < page_heap_count(); i++) lock_take(&page_heap[i].lock);
}
static void give_page_heaps(void)
{
    for (unsigned i = page_heap_count(); i-- > 0;) lock_give(&page_heap[i].lock);
}

static void check_runs(void)
{
    take_page_heaps();
    page_heaps_check();
    give_page_heaps();
}

/* Regions of 32-bit addresses are too small for huge pages, and not all kernels heed wishes. */
static void need_huge_pages(void)
{
    if (!OS_HEEDS_HUGE_WISHES || REGION_BYTES_FIRST < HUGE_REGION_BYTES_MIN) skip();
}

static uint32_t lease(size_t pages)
{
    struct run run = run_lease(pages, 1, PAGE_LARGE);

    assert_int_not_equal(run.page, 0);
    assert_int_equal(page_record(run.page)->run_pages, pages);
    check_runs();
    return run.page;
}

static void give_back(uint32_t page)
{
    run_return(page);
    check_runs();
}

static size_t bytes_of(size_t pages) { return pages << space.page_shift; }
static size_t pages_of_bytes(size_t bytes) { return bytes >> space.page_shift; }

static size_t dirty_pages(void) { return page_heap->free_pages[FREE_DIRTY]; }

/* As many pages as make purging worth while, many times over. */
static size_t burst_pages(void) { return pages_of_bytes(64 * PURGE_KEEP_BYTES); }

/* So many runs of as many pages, as slabs have them. */
static void lease_for_slabs(uint32_t *page, unsigned count, size_t pages)
{
    for (unsigned i = 0; i < count; i++) page[i] = run_lease(pages, 1, PAGE_USED).page;
}

static void stain(uint32_t page, size_t pages, unsigned char value)
{
    memset(page_address(page), value, bytes_of(pages));
}

static uint32_t lease_written(size_t pages)
{
    uint32_t page = lease(pages);

    stain(page, pages, 1);
    return page;
}

/* The run that starts at this page is `pages` long and in this state. */
static void expect_run(uint32_t page, size_t pages, enum page_state state)
{
    assert_int_equal(page_record(page)->state, state);
    assert_int_equal(page_record(page)->run_pages, pages);
}

static void tag_as(uint32_t page, size_t pages, enum page_state state)
{
    struct page *first = page_record(page), *last = first + pages - 1;

    last->run_pages = first->run_pages = (uint32_t)pages;
    last->state = PAGE_USED;
    first->state = (uint8_t)state;
    first->bin_index = page_heap->number;
}

/* Makes the first and the last page of a large run, which has two more than `pages`, used ones of
 * their own, so that a test knows the neighbours of those between. Returns the first of these. */
static uint32_t set_apart(uint32_t page, size_t pages)
{
    lock_take(&page_heap->lock);
    tag_as(page, 1, PAGE_USED);
    tag_as(page + 1, pages, PAGE_LARGE);
    tag_as(page + 1 + (uint32_t)pages, 1, PAGE_USED);
    page_heap->large_pages -= 2;
    lock_give(&page_heap->lock);
    check_runs();
    return page + 1;
}

static uint32_t between_used(size_t pages) { return set_apart(lease(pages + 2), pages); }

/* An open slab on no list; NULL: no memory. */
static struct slab *open_test_slab(unsigned class_index, uint16_t arena)
{
    struct slab *slab = meta_take(slab_shape[class_index].record_bytes);
    uint32_t page = run_lease(slab_pages(class_index), 1, PAGE_USED).page;

    if (slab != NULL && page != 0) {
        slab_open(slab, class_index, arena, page);
        return slab;
    }
    if (slab != NULL) meta_give(slab, slab_shape[class_index].record_bytes);
    if (page != 0) run_return(page);
    return NULL;
}

/* Closes it, and gives its run back. */
INLINE void close_test_slab(struct slab *slab)
{
    uint32_t page = slab->page;

    slab_close(slab);
    run_return(page);
}

#endif
