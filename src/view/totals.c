/* totals.c - what the calling thread took and gave back, exactly.
 * SPDX-License-Identifier: MIT
 */
#include "stats.h"

_Static_assert(sizeof(struct prairie_thread_totals) == 2 * sizeof(uint64_t)
                   && offsetof(struct watch, deallocated)
                          == offsetof(struct watch, allocated) + sizeof(uint64_t),
               "the public struct lies in the watch");

struct watch *totals_watch(void) { return heap_attach() != NULL ? thread_watch() : NULL; }

PUBLIC const struct prairie_thread_totals *prairie_thread_totals(void)
{
    const struct watch *watch = totals_watch();

    return watch != NULL ? (const struct prairie_thread_totals *)&watch->allocated : NULL;
}
