/* large.h - blocks that are whole pages.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_LARGE_H
#define PRAIRIE_HEAP_LARGE_H

#include "../arenas/arena.h"

struct alloc_request;

/* malloc beyond SMALL_BYTES_MAX. Jumped to. */
NOINLINE void *malloc_large(size_t size);
/* The arena which knows its large blocks that the block of a request, small or large, is to come
 * from; NULL: none, as with most. */
struct arena *large_owner(const struct alloc_request *request);
/* Not counted for anybody. NULL: no memory; a request that names no place has been through a
 * shortage then. */
void *large_lease(const struct alloc_request *request);
/* The same of a request that can be served otherwise: short of memory nobody is told. */
void *large_lease_unhelped(const struct alloc_request *request);
/* The same once, without help, and not filled: for shortage.c. */
void *large_lease_once(const struct alloc_request *request);

/* One that is not sampled. */
void large_put(uint32_t page);
/* The same of an arena that owns it, whatever thread gives it back. */
void manual_put(uint32_t page);

size_t large_bytes(uint32_t page);
/* Resizes in place or by moving; a smaller one that can do neither stays as long as it is. NULL: no
 * memory, the block is as it was. */
void *large_resize(void *block, uint32_t page, size_t size);
/* To `most` bytes in place, or at least `least`; else the block stays as it is. Returns its bytes
 * then. */
size_t large_resize_in_place(uint32_t page, size_t least, size_t most);

/* May pages of a block of so many bytes be moved rather than the bytes? A yes is counted. */
bool large_may_move(size_t bytes);
/* Makes stale pages read as zero. Returns the first of them. */
void *large_clear(char *block, size_t bytes);

#endif
