/* sealed.c - the pages of what is sealed, and their rights.
 * SPDX-License-Identifier: MIT
 */
#include "sealed.h"

#include "../base/units.h"
#include "../os/os.h"

SEALED_BOUNDS;

bool sealed_is_closed SEALED;

/* Whole pages of the kernel's. */
static struct os_range sealed_pages(void)
{
    uintptr_t first = round_up((uintptr_t)prairie_sealed_first, os_page_bytes());
    uintptr_t end = round_down((uintptr_t)prairie_sealed_end, os_page_bytes());

    return (struct os_range){ (char *)first, end > first ? end - first : 0 };
}

void sealed_begin(void)
{
    struct os_range pages = sealed_pages();

    if (pages.bytes == 0) return;
    sealed_is_closed = true;
    if (!os_forbid_writes(pages)) sealed_is_closed = false;
}

bool sealed_open(void) { return !sealed_is_closed || os_commit(sealed_pages()); }

/* A kernel that will not leaves them open; the next control tries again. */
void sealed_close(void)
{
    if (sealed_is_closed) (void)os_forbid_writes(sealed_pages());
}
