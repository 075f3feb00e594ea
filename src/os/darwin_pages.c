/* darwin_pages.c - what macOS wants to hear before a mapping goes.
 *
 * Its kernel keeps pages in memory objects, and maps parts of an object. When a part of a mapping
 * goes, the footprint falls, but the object keeps the pages for as long as any other part of it is
 * mapped: nobody can reach them, and the kernel compresses them and writes them to disk as if
 * somebody could. What was called reusable before it drops instead, and what it had compressed at
 * once.
 *
 * It does nothing where an object is shared: with a child of a fork, or with the rest of a mapping
 * that was cut before; and nothing in a program that has smaller pages than its kernel.
 * SPDX-License-Identifier: MIT
 */
#include "unix.h"

#include <errno.h>
#include <sys/mman.h>

static void advise(struct os_range range, int advice)
{
    int saved_errno = errno;

    (void)madvise(range.base, range.bytes, advice);
    errno = saved_errno;
}

void unix_discard(struct os_range range) { advise(range, MADV_FREE_REUSABLE); }
void unix_keep(struct os_range range) { advise(range, MADV_FREE_REUSE); }
