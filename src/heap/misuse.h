/* misuse.h - what a pointer is, and what to say when it should not have come.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_MISUSE_H
#define PRAIRIE_HEAP_MISUSE_H

#include "../space/page_map.h"
#include "../slabs/size_class.h"

/* What a pointer is, for the doors that take one. */
enum pointer_kind {
    POINTER_FOREIGN,
    POINTER_SMALL,
    POINTER_LARGE,
    POINTER_SAMPLED,
    POINTER_GUARDED,   /* guard/guarded.h */
    POINTER_HARDENED,  /* hardened.h: small or large */
    POINTER_ZERO_SIZE, /* zero_size.h */
    POINTER_INTERIOR,
    POINTER_FREED
};
enum pointer_kind pointer_kind(const void *pointer, uint32_t *page);
/* The usable bytes of what is a block; 0: it is none. */
size_t pointer_bytes(enum pointer_kind kind, const void *pointer, uint32_t page);

/* Does the block whose first page this is begin there? */
INLINE bool begins_at(const void *pointer, uint32_t page)
{
    return offset_in_page(pointer) == page_begin_offset(page_record(page));
}

/* Is it a large block of a page heap's that the program holds, without a fence and not hardened?
 * `page` is the one that it lies in. */
INLINE bool is_plain_large(const void *pointer, uint32_t page)
{
    return likely(page != 0)
        && likely(page_holds_large_at(page_record(page), offset_in_page(pointer)));
}

/* The class of an address in the class map, whichever magazine frees go to; 0: none. */
INLINE unsigned class_at(const void *address)
{
    return class_of_offset(class_map_at(address) % OFFSET_FOR_FREES);
}

/* What a wrong pointer came with, for the words about it. */
enum misused_call { CALL_FREE, CALL_REALLOC, CALL_USABLE_SIZE, MISUSED_CALL_COUNT };

/* One line on stderr, and abort. */
NORETURN COLD void misuse_abort(enum misused_call call, enum pointer_kind kind,
                                const void *pointer);

/* What has no bytes of ours may be of size 0, or another heap's, which was there before prairie
 * (os.h); if it is not, misuse_abort. */
COLD void free_other(enum pointer_kind kind, void *pointer);
COLD size_t other_bytes(enum misused_call call, enum pointer_kind kind, const void *pointer);

/* In the checking flavours: a block goes to the program. NULL: none does. Returns its argument. */
void *misuse_note_take(void *block);
/* A pointer comes back, and everything that can be known about it is looked at. */
void misuse_check(enum misused_call call, const void *pointer);
void misuse_note_free(const void *pointer);
/* The same with the size that it is freed with, and the alignment. */
void misuse_check_told(const void *pointer, size_t size, size_t align);

/* In all flavours, where there is time for it: aborts for a block that was not asked for with the
 * size that it is freed with, and the alignment. NULL may have any size. */
void misuse_check_told_size(const void *pointer, size_t size, size_t align);
/* Aborts, unless the block is guarded and the program is to go on. */
COLD void misuse_wrong_size(const void *pointer);
/* At the end of the process: looks through what the calling thread holds, so that a program that
 * ends before its blocks are needed hears of them. */
void misuse_check_end(void);
/* Aborts if the small block that realloc is about to move does not begin there, or was freed a
 * moment ago. */
void misuse_check_moved(const void *pointer, unsigned class_index);

#endif
