/* hardened_large.h - hardened blocks of whole pages: a page more behind them, which is guarded
 * where it can be, and what is said of them in its record (H2).
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_HARDENED_LARGE_H
#define PRAIRIE_HEAP_HARDENED_LARGE_H

#include "hardened.h"
#include "vast.h"

/* A longer one that cannot be closed gives its pages back: wiping costs less than fresh pages do,
 * but a program that never wants so much again would hold it. */
#define WIPED_RUN_BYTES_MAX BY_WORD(4 * MiB, 512 * KiB)

/* It is a mapping of its own, or would be with a page more behind its whole pages. */
INLINE bool hardened_large_is_vast(size_t size, size_t align)
{
    return vast_is_better(size, align) || size > VAST_BYTES_MIN - 2 * os_page_bytes();
}

/* Of no mapping of its own, and of no arena that knows its large blocks. Nor for a hook that is
 * asked for an extent, which may be just this block: a run without a page more. */
bool hardened_large_is_usual(const struct alloc_request *request);

/* Below, `page` is the first one of such a block. */

/* H2 */
INLINE struct page *hardened_large_record(uint32_t page)
{
    return page_record(page + page_record(page)->run_pages - 1);
}
/* The bytes of the pages before the last one. */
INLINE size_t hardened_large_room(uint32_t page)
{
    return ((size_t)page_record(page)->run_pages - 1) << space.page_shift;
}
/* The bytes that were asked for. */
INLINE size_t hardened_large_size(uint32_t page)
{
    return hardened_large_room(page) - hardened_large_record(page)->bin.next;
}

/* In the place of fresh pages, or of those of a run that waited, which may still have its guard. */
void hardened_large_begin(char *block, uint32_t page, size_t size, bool has_waited);
/* Within its pages. */
void hardened_large_set_size(char *block, uint32_t page, size_t size);
void hardened_large_set_door(uint32_t page, enum hardened_door door);
/* Aborts unless its canaries are whole. */
void hardened_large_check(const void *block, uint32_t page);
/* It was looked at, and is no longer the program's: it has no contents, and goes to the quarantine
 * of the cache, or past it. NULL: to none. */
void hardened_large_end(struct cache *cache, char *block, uint32_t page);
/* With other pages behind it, or without some; one that may not move becomes no sample. False: not
 * where it is; nothing happened. */
bool hardened_large_resize(char *block, uint32_t page, size_t old_size, size_t size, bool may_move);
/* Its pages, with so many bytes, take the place of those of a new block that has room for them, and
 * it is no longer the program's. False: bytes must be copied; nothing happened. The block was
 * looked at. */
NONNULL bool hardened_move_pages(void *block, uint32_t page, size_t bytes, void *to);

#endif
