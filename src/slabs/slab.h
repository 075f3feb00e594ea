/* slab.h - equal blocks cut from a run, and the bitmap that counts them.
 *
 * What a slab knows about its blocks lies outside of them, in a record of 64-byte units, so that a
 * freed block is never touched and records pack densely:
 *
 *      struct slab     | page, list links, counts, base | free[0] | free[1] | ... |
 *                                                          bit set: the block is free
 *      run of pages    | block 0 | block 1 | block 2 | ...            | (rest < 1 block) |
 *
 * S1  free_count == number of set bits in free[]
 * S2  no bit at or above block_count is set
 * S3  the slab is on its arena's partial list exactly while free_count > 0
 * S4  no word below hint has a bit set
 * S5  no block that is out has a part on a page that is marked as purged
 * In the checking flavours a second bitmap follows the first: the blocks that the program holds,
 * written by the doors (heap/misuse.c), so that a wrong free is known at once. A slab knows the
 * number of its arena but nothing about arenas; all of it is guarded by that arena's lock. page,
 * base, class_index, arena and block_count are constant while the slab is open.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_SLABS_SLAB_H
#define PRAIRIE_SLABS_SLAB_H

#include "../space/meta.h"
#include "../page_heap/page_heap.h"
#include "size_class.h"

struct slab {
    char *base;              /* address of block 0 */
    uint32_t page;           /* first page of the run */
    uint32_t next, previous; /* S3: numbers of the neighbours on its list. The last one's next is 0,
                                the first one's previous the last, which may be itself */
    uint16_t block_count;
    uint16_t free_count; /* S1 */
    uint16_t hint;       /* S4 */
    uint16_t arena;
    uint8_t class_index;
    uint8_t hidden;  /* bits of slab_hidden, set by the arena before it opens; 0: its pages are in
                       the class map */
    uint16_t purged; /* S5: a bit for each page, and SLAB_IDLE */
    ON_ONE_LINE uint64_t free[];
};

/* In `purged`: nobody has taken a block since it was set. */
enum { SLAB_IDLE = 0x8000, SLAB_PAGES_MAX = 15 };

/* Bits of `hidden`: why its blocks take the rare ways, for those who come with a block. */
enum slab_hidden {
    SLAB_HIDDEN = 1,
    SLAB_HARDENED = 2, /* of an arena of a hardened process */
    SLAB_MANUAL = 4    /* of a manual arena */
};

/* What the slabs of a class look like; depends on the page size. */
struct slab_shape {
    uint32_t bytes;      /* of the run */
    uint32_t span_bytes; /* of the blocks in it */
    uint32_t reciprocal; /* 2^32 / block size, rounded up: divides offsets exactly */
    uint16_t block_bytes;
    uint16_t block_count;
    uint16_t word_count; /* of the bitmap */
    uint16_t record_bytes;
};

extern PRIVATE struct slab_shape slab_shape[CLASS_COUNT]; /* constant after slabs_start */

void slabs_start(void);

/* The pages of the run that a slab of the class is made of. */
INLINE size_t slab_pages(unsigned class_index)
{
    return slab_shape[class_index].bytes >> space.page_shift;
}

/* Makes a slab of a used run of slab_shape[].bytes, `page` its first: all blocks are free, the slab
 * is on no list. */
void slab_open(struct slab *slab, unsigned class_index, uint16_t arena, uint32_t page);
/* Every block is free, whoever holds it. The slab is about to be closed: the bitmap is left as it
 * was. */
void slab_reset(struct slab *slab);
/* The run is no slab any more, and the caller's, as is the record. All blocks are free. */
void slab_close(struct slab *slab);

/* Moves up to `wanted` blocks, lowest first, to the places before `end`, downwards: a stack that
 * ends there hands them out in ascending order. Returns how many. */
unsigned slab_fill(struct slab *slab, void **end, unsigned wanted);

/* The first pages from *first on, counted in the slab, that can go to the kernel: no block that is
 * out has a part on them, and they are not marked as purged. Returns how many; 0: there are
 * none. */
size_t slab_unused_pages(const struct slab *slab, size_t *first);
void slab_mark_purged(struct slab *slab, size_t first, size_t pages);
/* How many are marked. */
INLINE unsigned slab_purged_pages(const struct slab *slab)
{
    return slab->purged == 0 ? 0 : bit_count(slab->purged & (SLAB_IDLE - 1u));
}

void slab_check(const struct slab *slab);

/* The word of the checking flavours' second bitmap that holds this block's bit. */
INLINE uint64_t *slab_held_word(struct slab *slab, unsigned index)
{
    return &slab->free[slab_shape[slab->class_index].word_count + index / 64];
}

INLINE uint32_t slab_number(const struct slab *slab) { return meta_number(slab); }
INLINE struct slab *slab_record(uint32_t number) { return (struct slab *)meta_record(number); }

/* The slab of a block; NULL when the address is in no slab of that class. */
INLINE struct slab *slab_of(const void *block, unsigned class_index)
{
    uint32_t page = page_at(block);

    if (unlikely(page == 0)) return NULL;
    if (unlikely(page_record(page)->class_at != offset_of_class(class_index))) return NULL;
    return slab_record(page_record(page)->slab);
}

enum slab_fault { SLAB_FAULT_NONE, SLAB_FAULT_INTERIOR, SLAB_FAULT_TWICE, SLAB_FAULT_ELSEWHERE };

/* Where a block lies in its slab: the high half. The low half is below the reciprocal exactly where
 * a block begins. */
INLINE uint64_t slab_quotient(const struct slab_shape *shape, uintptr_t offset)
{
    return (uint64_t)offset * shape->reciprocal;
}
INLINE bool slab_quotient_is_block(const struct slab_shape *shape, uint64_t quotient)
{
    return likely((uint32_t)quotient < shape->reciprocal);
}
INLINE bool slab_offset_is_block(const struct slab_shape *shape, uintptr_t offset)
{
    return likely(offset < shape->span_bytes)
        && slab_quotient_is_block(shape, slab_quotient(shape, offset));
}
INLINE unsigned slab_quotient_word(uint64_t quotient) { return (unsigned)(quotient >> 38); }
INLINE unsigned slab_quotient_index(uint64_t quotient) { return (unsigned)(quotient >> 32); }

INLINE bool slab_has_free(const struct slab *slab, unsigned index)
{
    return slab->free[index / 64] >> index % 64 & 1;
}

/* Marks a block free. */
INLINE enum slab_fault slab_put_one(struct slab *slab, const struct slab_shape *shape,
                                    const void *block)
{
    uintptr_t offset = (uintptr_t)block - (uintptr_t)slab->base;
    uint64_t quotient = slab_quotient(shape, offset);
    unsigned word = slab_quotient_word(quotient);

    if (unlikely(!slab_offset_is_block(shape, offset))) return SLAB_FAULT_INTERIOR;
    if (unlikely(bit_test_and_set(&slab->free[word], slab_quotient_index(quotient))))
        return SLAB_FAULT_TWICE;
    if (word < slab->hint) slab->hint = (uint16_t)word;
    slab->free_count++;
    return SLAB_FAULT_NONE;
}

/* Marks blocks[] free as long as they lie in this slab, as the first does. Returns how many.
 * *fault: what is wrong with the next one; SLAB_FAULT_NONE: that lies elsewhere, or there is
 * none. */
unsigned slab_put(struct slab *slab, void *const *blocks, unsigned count, enum slab_fault *fault);

#endif
