/* snapshot_count.h - fills a snapshot.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_VIEW_SNAPSHOT_COUNT_H
#define PRAIRIE_VIEW_SNAPSHOT_COUNT_H

#include "snapshot.h"

/* Counts now, into what is all 0. The numbers of each arena below the end go into `arenas_apart`,
 * where it is not NULL; the first one is there. `arenas_apart` NULL: sums only, with what destroyed
 * arenas had counted; else under control_lock. */
void snapshot_count(struct snapshot *numbers, struct snapshot_arena *const *arenas_apart,
                    unsigned end);
/* Adds what destroyed arenas had counted, and what follows from all that was counted. Once. */
void snapshot_count_past(struct snapshot_arena *into);

/* The record of that number, also of an arena that was destroyed, which may have counted. */
INLINE struct arena *snapshot_counted_arena(unsigned index)
{
    return __atomic_load_n(&arenas[index], __ATOMIC_ACQUIRE);
}

#endif
