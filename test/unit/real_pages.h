/* real_pages.h - pages of the real kernel, as the tests of its floor use them. */
/* SPDX-License-Identifier: MIT */
/*
 * After kernel_gate.h and unit.h. Tests of the library have pages.h.
 */
#ifndef PRAIRIE_TEST_REAL_PAGES_H
#define PRAIRIE_TEST_REAL_PAGES_H

static inline size_t bytes_of(size_t pages) { return pages * os_page_bytes(); }

static inline struct os_range part(struct os_range range, size_t first_page, size_t pages)
{
    return (struct os_range){ range.base + bytes_of(first_page), bytes_of(pages) };
}

/* Committed, each page with its own number in it, from 1 on. Around them nothing is that the test
 * itself needs. */
static inline struct os_range numbered(size_t pages)
{
    enum { MARGIN_PAGES = 8 };
    struct os_range all = os_reserve(bytes_of(pages + 2 * MARGIN_PAGES), os_page_bytes()), range;

    assert_non_null(all.base);
    assert_int_equal(all.bytes, bytes_of(pages + 2 * MARGIN_PAGES));
    range = part(all, MARGIN_PAGES, pages);
    assert_true(os_commit(range));
    assert_true(all_bytes_are(range.base, 0, range.bytes));
    for (size_t i = 0; i < pages; i++) memset(range.base + bytes_of(i), (int)i + 1, bytes_of(1));
    return range;
}

static char *touched;
static inline void read_there(void) { (void)*(volatile char *)touched; }

#endif
