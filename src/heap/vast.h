/* vast.h - blocks that are mappings of their own, because they are too large for the page map, it
 * is full, or they grow again and again (large_resize.c).
 *
 * A vast block is foreign (foreign.h) as one whole, without a record for each page:
 *
 *      address    | first page | ............ all other pages ............ |
 *      number     | first      | first + 1                                 |
 *      record     | VAST       | INSIDE                                    |
 *
 * Its memory comes from the kernel when it is taken and goes back when it is freed. The last few
 * that were freed are remembered, to tell a double free from a foreign pointer.
 *
 * O1  commit.vast_bytes and commit.vast_count are those of the foreign extents whose first record
 *     says VAST; the page heap counts them among its large blocks
 * O2  commit.vast_coming are the bytes that threads are asking the kernel for; the hard limit
 *     counts them already
 * Functions here take the page heap's lock themselves.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_VAST_H
#define PRAIRIE_HEAP_VAST_H

#include "../space/foreign.h"
#include "../page_heap/page_heap.h"

/* Is a block of this size and alignment better a mapping of its own? */
INLINE bool vast_is_better(size_t bytes, size_t align) { return (bytes | align) >= VAST_BYTES_MIN; }
/* Is it worth one when the address space has no numbers left for it? */
bool vast_is_refuge(size_t bytes);

/* A block of `bytes`, whole pages, that reads as zero, at a multiple of `align`. NULL: no
 * memory. */
char *vast_take(size_t bytes, size_t align);
/* A block of `bytes` with the contents of a large run, which is given back then. NULL: not
 * possible, the run is as it was. */
char *vast_take_from(uint32_t page, size_t bytes);
void vast_put(uint32_t page);
size_t vast_bytes(uint32_t page);
/* How many there are, as of a moment ago. */
size_t vast_count_now(void);
/* To so many bytes, whole pages; what is gained reads as zero. Its page number stays; its address
 * may change if `may_move`. False: no memory, the block is as it was. */
bool vast_resize(uint32_t page, size_t bytes, bool may_move);
/* Does the address lie in one of the last few vast blocks that were freed? */
bool vast_was_there(const void *address);
/* In the child of a fork, under the lock: what other threads were asking the kernel for will not
 * come. */
void vast_forget_others(void);

#endif
