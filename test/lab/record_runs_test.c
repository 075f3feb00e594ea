/* record_runs_test.c - the recorder of lab/runs writes down whatever the heap asks of a page heap. */
/* SPDX-License-Identifier: MIT */
#include "prairie.c"

#include "pages.h"

/* Recording, into the buffer alone: nothing here fills it. */
static void start_recording(void)
{
    void *first = prairie_malloc(MiB); /* starts the library */

    prairie_free(first);
    record.file = INT32_MAX;
    record.count = 0;
}

static void end_recording(void) { record.file = -1; }

static void expect_event(unsigned number, uint32_t page, size_t pages)
{
    assert_true(number < record.count);
    assert_int_equal(record.event[number][0], page);
    assert_int_equal(record.event[number][1], pages);
}

/* Taken, made shorter and longer again where it is, and given back. */
static void a_block_that_changes_is_recorded(void **state)
{
    uint32_t page;
    char *block;

    (void)state;
    start_recording();
    block = prairie_malloc(2 * MiB);
    page = page_at(block);
    expect_event(0, page, page_record(page)->run_pages);
    assert_ptr_equal(prairie_realloc(block, MiB), block);
    expect_event(1, page, page_record(page)->run_pages);
    assert_ptr_equal(prairie_realloc(block, 2 * MiB), block);
    expect_event(2, page, page_record(page)->run_pages);
    prairie_free(block);
    expect_event(3, page, 0);
    assert_int_equal(record.count, 4);
    end_recording();
}

/* Its pages move to a new run, and the old one goes back clean. */
static void a_block_that_moves_is_recorded(void **state)
{
    uint32_t page, moved_page;
    char *block, *moved;

    (void)state;
    start_recording();
    block = prairie_malloc(8 * MiB);
    page = page_at(block);
    (void)prairie_malloc(8 * MiB); /* behind it */
    record.count = 0;
    moved = prairie_realloc(block, 32 * MiB);
    assert_non_null(moved);
    assert_ptr_not_equal(moved, block);
    moved_page = page_at(moved);
    expect_event(0, moved_page, page_record(moved_page)->run_pages);
    expect_event(1, page, 0);
    assert_int_equal(record.count, 2);
    end_recording();
}

UNIT_MAIN(UNIT_TEST(a_block_that_changes_is_recorded), UNIT_TEST(a_block_that_moves_is_recorded))
