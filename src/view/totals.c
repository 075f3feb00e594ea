/* totals.c - what the calling thread took and gave back, exactly.
 * SPDX-License-Identifier: MIT
 */
#include "stats.h"

_Static_assert(sizeof(struct prairie_thread_totals) == 2 * sizeof(uint64_t)
                   && offsetof(struct counting_front, deallocated)
                          == offsetof(struct counting_front, allocated) + sizeof(uint64_t),
               "the public struct lies in the counting front");

struct counting_front *totals_count_calls(void)
{
    return heap_attach() != NULL ? thread_count_calls() : NULL;
}

PUBLIC const struct prairie_thread_totals *prairie_thread_totals(void)
{
    const struct counting_front *counting = totals_count_calls();

    return counting != NULL ? (const struct prairie_thread_totals *)&counting->allocated : NULL;
}
