/* wishes.h - what the tests of huge pages share: from how many pages on they are wanted, and what
 * ends the wish. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_WISHES_H
#define PRAIRIE_TEST_WISHES_H

#include "pages.h"

static size_t pages_from(void) { return HUGE_FROM_BYTES >> space.page_shift; }

static void tell_purge(size_t pages) { huge_before_purge(page_heap, pages); }

static void purge_short_until_refused(void)
{
    while (huge.wanted) tell_purge(1);
}

#endif
