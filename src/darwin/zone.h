/* zone.h - prairie as a malloc zone, the way in which macOS knows allocators.
 *
 * The system's library keeps a list of zones and serves malloc from the first. A block is found by
 * asking each zone whether the address is its own, so blocks of several zones mix without harm: of
 * the system's own zone are those that were taken before ours came first.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_DARWIN_ZONE_H
#define PRAIRIE_DARWIN_ZONE_H

#include "../heap/doors.h"

#include <malloc/malloc.h>
#include <mach/mach.h>

/* What a reader of another process begins with: addresses there. */
struct zone_roots {
    uint32_t layout; /* constant: ZONE_LAYOUT of the library there */
    vm_address_t space, page_map, meta, arenas, arena_end, caches, explicit_caches;
    vm_address_t foreign_order, foreign_count;
};

struct prairie_zone {
    malloc_zone_t zone; /* first: what the system has the address of */
    struct zone_roots roots;
};

extern PRIVATE struct prairie_zone prairie_zone;

/* A size of 0 gives the smallest block there, not NULL. */
INLINE void *darwin_realloc(void *block, size_t size)
{
    return prairie_realloc(block, size != 0 ? size : 1);
}
/* What a block for so many bytes would have; that many when there can be no such block. */
INLINE size_t darwin_good_size(size_t size)
{
    return max_size(prairie_nallocx(max_size(size, 1), 0), size);
}

/* After the start of the heap. */
void zone_set_roots(void);
/* Registers the zone and makes it the first one. Once, before main; later calls do nothing. */
void zone_install(void);

/* Calls `recorder` with ranges of the kinds in `types`, a few at a time: blocks that the program
 * holds, memory that holds blocks, prairie's own memory. The task is stopped, or its zone locked.
 * `reader` NULL: of this process. KERN_FAILURE: its library is another version, or memory of it
 * cannot be read. */
kern_return_t zone_enumerate(task_t task, void *context, unsigned types, vm_address_t zone,
                             memory_reader_t reader, vm_range_recorder_t recorder);

#endif
