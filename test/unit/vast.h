/* vast.h - what the tests of vast blocks share. */
/* SPDX-License-Identifier: MIT */
/*
 * Include it after library.h.
 */
#ifndef PRAIRIE_TEST_UNIT_VAST_H
#define PRAIRIE_TEST_UNIT_VAST_H

#include "unit.h"

#include <jemalloc/jemalloc.h>

#define VAST VAST_BYTES_MIN

/* Of that size, or another one of as many pages that leaves as much of the last one. */
static inline void expect_vast(const void *block, size_t size)
{
    size_t bytes = round_up(size, page_bytes());

    assert_non_null(block);
    assert_int_equal(page_record(page_at(block))->state, PAGE_VAST);
    assert_ptr_equal(page_address(page_at(block)), block);
    assert_int_equal(prairie_usable_size(block), prairie_nallocx(size, 0));
    assert_int_equal(page_at((const char *)block + bytes), 0);
    prairie_check_all();
}

static inline void expect_none(void)
{
    assert_int_equal(commit.vast_bytes, 0);
    assert_int_equal(commit.vast_count, 0);
    prairie_check_all();
}

#endif
