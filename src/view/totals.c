/* totals.c - what the calling thread took and gave back, exactly.
 * SPDX-License-Identifier: MIT
 */
#include "../heap/heap.h"

_Static_assert(sizeof(struct prairie_thread_totals) == 2 * sizeof(uint64_t)
                   && offsetof(struct watch, deallocated)
                          == offsetof(struct watch, allocated) + sizeof(uint64_t),
               "the public struct lies in the watch");

PUBLIC const struct prairie_thread_totals *prairie_thread_totals(void)
{
    struct cache *front = heap_attach();
    struct watch *watch = front != NULL ? thread_watch() : NULL;

    return watch != NULL ? (const struct prairie_thread_totals *)&watch->allocated : NULL;
}
