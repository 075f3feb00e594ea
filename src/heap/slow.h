/* slow.h - the one door behind all doors: for what their short ways have not got.
 *
 * A door fills in a request, which stays its own, and passes it on. What the next picture shows is
 * asked here and nowhere else; a request that is refused is refused here.
 *
 *      malloc calloc aligned_alloc new mallocx realloc ...    a miss: alloc_missed(&request)
 *           |
 *      the front's kind   attach; or count, and sample perhaps
 *           |
 *      the place          the thread's cache, an explicit one, an arena's slabs, or whole pages
 *           |
 *      shortage           the reserve and callbacks; not for a small one whose place is named
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_SLOW_H
#define PRAIRIE_HEAP_SLOW_H

#include "large.h"

#include "../arenas/arena.h"
#include "../cache/cache.h"
#include "../sample/unwind.h"

struct alloc_request {
    size_t size, align;   /* align: a power of two */
    unsigned class_index; /* 0: whole pages, or size 0 */
    bool zero;            /* all bytes must read as zero */
    bool uncached;        /* past the thread's cache */
    bool unhelped;        /* nothing is given back for it, and nobody is told; of whole pages */
    bool looked;          /* limits were looked at for it (shortage_look) */
    struct arena *arena;  /* that the call names; NULL: whichever the cache fills from */
    struct cache *cache;  /* the explicit cache that the call names; NULL: none */
    const void *frame;    /* of the door, for the stack of a sample */
};

/* 0: whole pages, or size 0. */
INLINE unsigned class_of_request(size_t size, size_t align)
{
    if (align != 1) return class_of_aligned(size, align);
    return size <= SMALL_BYTES_MAX ? class_of_size(size) : 0;
}

INLINE struct alloc_request alloc_request(size_t size, size_t align, bool zero, const void *frame)
{
    return (struct alloc_request){ .size = size,
                                   .align = align,
                                   .class_index = class_of_request(size, align),
                                   .zero = zero,
                                   .frame = frame };
}

/* Of one for whole pages, once the process has started. */
INLINE size_t request_pages(const struct alloc_request *request)
{
    return pages_for(request->size);
}
INLINE size_t request_align_pages(const struct alloc_request *request)
{
    return max_size(request->align >> space.page_shift, 1);
}
/* The usable bytes of the block. */
INLINE size_t request_bytes(const struct alloc_request *request)
{
    if (request->class_index != 0) return class_bytes[request->class_index];
    return (request_pages(request) << space.page_shift) - large_spare(request->size, page_bytes());
}
/* It is for one place, and nothing that others have will do. */
INLINE bool request_is_placed(const struct alloc_request *request)
{
    return request->arena != NULL || request->cache != NULL;
}

/* The magazine, or what else is at hand, had nothing. NULL: no memory, and errno says so. */
void *alloc_missed(const struct alloc_request *request);
/* The same for doors that jump here, so that their caller is the first in the stack of a sample. */
NOINLINE void *alloc_here(size_t size, size_t align, bool zero);
/* The whole of a door, for callers that have a frame of their own. */
void *alloc_from(const void *frame, size_t size, size_t align, bool zero);
/* For shortage.c: one try from where the request would be served, without help or counting. */
void *alloc_once(const struct alloc_request *request);

/* The way of malloc when hardened_malloc has no block, and of free when a block has no mark, or is
 * large. Jumped to. */
NOINLINE void *alloc_unready(size_t size, size_t align, bool zero);
COLD void free_unmarked(struct front *front, void *block);

/* The magazine was full, or that of class 0: a block, NULL, or no block at all. Jumped to. */
NOINLINE void free_missed(struct front *front, void *block);
/* A small block goes straight to its slab. */
void free_home(unsigned class_index, void *block);
/* Into this explicit cache; NULL: past all caches. */
void free_placed(void *block, struct cache *cache);

/* A large block, sampled or not. As large_resize and large_resize_in_place (large.h). */
void *resize_large(void *block, const struct alloc_request *request);
size_t resize_in_place(void *block, size_t least, size_t most, const void *frame);

COLD void *refuse_memory(void); /* sets ENOMEM, returns NULL */

#endif
