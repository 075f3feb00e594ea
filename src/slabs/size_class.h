/* size_class.h - the block sizes, and which class a size belongs to.
 *
 * The list of size classes is one of two: size_classes_16.h, or size_classes_8.h for
 * PRAIRIE_QUANTUM=8. Every block of a power-of-two class is aligned to its size, up to the page.
 * Class 0 is "no class".
 *
 * The hot path names a class by its offset: that of its magazine in a cache, in words.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_SLABS_SIZE_CLASS_H
#define PRAIRIE_SLABS_SIZE_CLASS_H

#include "../base/bits.h"
#include "../base/constants.h"

enum { OFFSET_PER_CLASS = 2 }; /* words in a struct magazine */
enum {
    OFFSET_FOR_FREES = 128
}; /* added to an offset: that of the magazine for frees, while they have one of their own */

#define offset_of_class(class_index) ((uint8_t)((class_index)*OFFSET_PER_CLASS))
#define class_of_offset(offset) ((unsigned)(offset) / OFFSET_PER_CLASS)

#if defined(PRAIRIE_QUANTUM) && PRAIRIE_QUANTUM == 8
#include "size_classes_8.h"
#elif defined(PRAIRIE_QUANTUM) && PRAIRIE_QUANTUM != 16
#error "PRAIRIE_QUANTUM is 8 or 16"
#else
#include "size_classes_16.h"
#endif

extern PRIVATE const uint16_t class_bytes[CLASS_COUNT];
/* The same for what stands in the class map; 0 for 0. */
extern PRIVATE const uint16_t bytes_of_half_offset[OFFSET_FOR_FREES];
INLINE size_t bytes_of_offset(uint8_t offset)
{
    uint16_t bytes; /* two for each class, as offsets have: no shift */

    __builtin_memcpy(&bytes, (const char *)bytes_of_half_offset + offset, sizeof bytes);
    return bytes;
}
/* The offset for each size up to TABLE_BYTES_MAX. A byte a size: no rounding, no shift. */
extern PRIVATE const uint8_t offset_of_size[TABLE_BYTES_MAX + 1];
/* Where a sized free puts a block of that size. The same, unless blocks are sampled
 * (sample/sample.h): then frees have magazines of their own, and a class of which a sampled block
 * lives has offset 0, as one has whose guarded blocks are watched (guard/guarded.h). In a program
 * with a delete of its own all have (cxx/cxx_new.c). */
extern PRIVATE uint8_t offset_of_sized_free[TABLE_BYTES_MAX + 1];
/* Sized frees that look at the address before guarded blocks are no longer watched; 0: none are. A
 * hint; atomic. */
extern PRIVATE uint32_t sized_frees_left;
void sized_free_goes_to(unsigned class_index, uint8_t offset);
/* All have offset 0 from now on. */
void sized_frees_go_nowhere(void);

/* For sizes up to SMALL_BYTES_MAX. */
INLINE unsigned class_of_size(size_t size)
{
    if (size <= TABLE_BYTES_MAX) return class_of_offset(offset_of_size[size]);
    return class_beyond_table(size);
}

/* The smallest class of at least `size` bytes whose blocks are all aligned to `align` (a power of
 * two); 0 when no class is. */
unsigned class_of_aligned(size_t size, size_t align);

#endif
