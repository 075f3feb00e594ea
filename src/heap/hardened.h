/* hardened.h - blocks that end where their size says, and that are looked at when they come and go.
 *
 * In a hardened process (option `hardened`) a block has a mark behind it, which only that block can
 * have. Between the last byte that was asked for and the mark lie a zero, which stops strings, and
 * canaries:
 *
 *      small   | size bytes | 0 | canary ... | mark, 8 bytes |      to the end of the block
 *      large   | size bytes | 0 | canary ... | guarded page  |      its record has the rest (H2)
 *
 * What a mark says is in marks.h.
 *
 * H1  a small block of a hardened slab that the program does not hold reads as zero, mark and all
 * H2  the record of a large one's last page has its slack in bin.next, and in bin.previous its
 *     door, and RUN_GUARDED if that page is guarded. The records of its other pages are as R3 says;
 *     so is the last one's after the free, but RUN_GUARDED stays while the run waits
 * Blocks that were given out before the process was hardened, sampled ones, vast ones, those that
 * are large and of manual arenas, and those of size 0 are as in any other process.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_HARDENED_H
#define PRAIRIE_HEAP_HARDENED_H

#include "misuse.h"
#include "slow.h"

#include "../base/options.h"

enum { HARDENED_MARK_BYTES = sizeof(uint64_t) };

/* Which door gave a block: it must come back through its counterpart. */
enum hardened_door {
    DOOR_MALLOC,
    DOOR_NEW,
    DOOR_NEW_ARRAY,
    DOOR_NEW_ALIGNED,
    DOOR_NEW_ARRAY_ALIGNED
};

/* Written before main. */
extern PRIVATE struct hardening {
    bool is_on;
    uint64_t canaries;     /* eight times the same, which is not 0 */
    uint64_t slack_begins; /* the same with a 0 first */
    uint64_t secret;
} hardening;

/* Of the page of a block, perhaps. */
INLINE bool is_hardened_slab(const struct page *record)
{
    return record->class_at != 0 && (slab_record(record->slab)->hidden & SLAB_HARDENED) != 0;
}

/* From now on, and for every thread; starts the heap. Before main, with at most one thread that has
 * a cache. False: there are more, no arenas are left, or there is no memory. */
bool hardened_start(void);

/* The request that has room for what lies behind. Its size may be too large for any. */
struct alloc_request hardened_request(const struct alloc_request *request);
/* The class of such a request; 0: whole pages. */
INLINE unsigned hardened_class(size_t size, size_t align)
{
    size_t wider = size + HARDENED_MARK_BYTES;

    return likely(wider > size) ? class_of_request(wider, align) : 0;
}
/* Whole pages that wait in the quarantine of such a front's cache, for such a request; NULL: none
 * do. */
void *hardened_take_waiting(struct front *front, const struct alloc_request *wider);
/* A block that was taken for that request begins its life with what the program asked for. Aborts
 * if it was written to since it was freed. True: it reads as zero. False: it is one of those that
 * have no mark. */
bool hardened_begin(void *block, const struct alloc_request *request);

/* The usual ways, of a thread whose front is of kind FRONT_HARDENED.
 *
 * malloc and its kin; jumped to. */
NOINLINE void *hardened_malloc(struct front *front, size_t size, size_t align, bool zero);
/* free of any pointer but NULL. Jumped to. */
NOINLINE void hardened_free(struct front *front, void *block);
/* The same with any front. */
NOINLINE void hardened_free_any(struct front *front, void *block);
/* A library whose processes are hardened asks before all else. */
INLINE bool is_hardened_first(const struct front *front)
{
    return PRAIRIE_HARDENED && !CHECKED && likely(front->kind == FRONT_HARDENED);
}
/* A block of the quarantine, which begins its life. NULL: another way must be taken. */
void *hardened_take(struct front *front, size_t size, size_t align, enum hardened_door door);
/* A small block ends it: of this door, and if `size` is not SIZE_MAX of that size, else it aborts
 * as hardened_check does. False: it is none of a hardened slab, and nothing happened. */
bool hardened_give(struct front *front, void *block, size_t size, enum hardened_door door);

/* Now and then: aborts if blocks that wait in the cache's quarantine were written to. */
void hardened_look(struct cache *cache, unsigned class_index);

/* free of a large one of that page, at an address of kind POINTER_HARDENED: aborts as
 * hardened_check, or if its door is not malloc's; then ends it (hardened_large_end). */
void hardened_free_large(struct cache *cache, void *block, uint32_t page);

#endif
