/* no_guard.c - where a kernel has no guards for pages: they are closed instead, which is another
 * mapping.
 * SPDX-License-Identifier: MIT
 */
#include "os.h"

bool os_guard(struct os_range range) { return os_close(range); }
bool os_unguard(struct os_range range) { return os_commit(range); }

bool os_fence(struct os_range range)
{
    (void)range;
    return false;
}

bool os_unfence(struct os_range range)
{
    (void)range;
    return false;
}
