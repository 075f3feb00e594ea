/* large.h - blocks that are whole pages.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_LARGE_H
#define PRAIRIE_HEAP_LARGE_H

#include "../arenas/arena.h"
#include "../cache/large_cache.h"

struct alloc_request;

/* By how much the block for so many bytes is shorter than its pages, which are `page` bytes long: a
 * staggered one, of a size that leaves as much of the last page. */
INLINE size_t large_spare(size_t size, size_t page)
{
    return ((0 - size) & (page - 1)) >= PAGE_STAGGERED ? PAGE_STAGGERED : 0;
}

/* malloc beyond SMALL_BYTES_MAX. Jumped to. */
NOINLINE void *malloc_large(size_t size);
/* The arena which knows its large blocks that the block of a request, small or large, is to come
 * from; NULL: none, as with most. */
struct arena *large_owner(const struct alloc_request *request);
/* Not counted for anybody. NULL: no memory; a request that names no place has been through a
 * shortage then. */
void *large_lease(const struct alloc_request *request);
/* The same of a request that can be served otherwise: short of memory nothing is given back for it,
 * and nobody is told. */
void *large_lease_unhelped(const struct alloc_request *request);
/* The same once, without help, and not filled: for shortage.c. */
void *large_lease_once(const struct alloc_request *request);

/* One that is neither sampled nor staggered. */
void large_put(uint32_t page);
/* One in any state but that of a sampled one. */
void large_give(void *block, uint32_t page);
/* The same before that, and before the place of one that moved goes back: what was in it is wiped
 * in a hardened process, and filled where that is asked for. Those of a vast one go back to the
 * kernel. */
void large_drop_contents(const void *block, uint32_t page);

/* No block is that long, or aligned so widely. */
INLINE bool large_is_too_long(size_t size, size_t align)
{
    return (size | align) > space.block_bytes_max;
}

/* Usable ones. */
size_t large_bytes(uint32_t page);
/* The same of one that is not vast. */
INLINE size_t large_plain_bytes(uint32_t page)
{
    const struct page *record = page_record(page);

    return ((size_t)record->run_pages << space.page_shift) - page_spare_bytes(record);
}
/* Those that the block has after it was resized to that size where it is. */
size_t large_bytes_for(uint32_t page, size_t size);
/* Resizes in place or by moving to where the request says, which names no other arena than the
 * block's; a smaller one that can do neither stays as long as it is. NULL: no memory, the block is as
 * it was. */
void *large_resize(void *block, uint32_t page, const struct alloc_request *request);
/* To `most` bytes in place, or at least `least`; else the block stays as it is. Returns its bytes
 * then. */
size_t large_resize_in_place(uint32_t page, size_t least, size_t most);

/* May pages of a block of so many bytes be moved rather than the bytes? A yes is counted. */
bool large_may_move(size_t bytes);
/* Makes stale pages read as zero, many of them by giving them back to the kernel. Returns the first
 * of them. */
void *large_clear(char *block, size_t bytes);
/* The same of part of a block of any kind, which begins and ends anywhere within its pages. `page`
 * is the block's first one. */
void large_clear_part(uint32_t page, char *begin, char *end);
/* The same to the end of its pages. It is not vast. */
void large_clear_from(uint32_t page, char *begin);

#endif
