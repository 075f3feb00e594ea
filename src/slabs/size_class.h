/* size_class.h - the ladder of block sizes, and which rung a size stands on.
 *
 *   class   1   2   3 ...  9   10  11  12  13 ... 17  18  19 ... 25    26   27 ... 49    50    51    52
 *   bytes   8  16  32 ... 128 160 192 224 256 ... 512 576 640 .. 1024 1152 1280 .. 8192 10240 12288 14336
 *
 * Steps of 16 to 128, four to a doubling to 512, eight to a doubling to 8192, then four again. The finer
 * steps are where programs ask for a round size and a little more: 1032, 2064, 4376 bytes
 * (docs/decisions). Every block of a power-of-two class is aligned to its size, up to the page. Class 0 is
 * "no class".
 *
 * A class is named in the hot path by its place: the offset of its magazine in a cache, in words.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_SLABS_SIZE_CLASS_H
#define PRAIRIE_SLABS_SIZE_CLASS_H

#include "../base/bits.h"
#include "../base/limits.h"

enum { CLASS_COUNT = 53, CLASS_OF_1024 = 25, CLASS_OF_8192 = 49 };
enum { PLACE_PER_CLASS = 2 }; /* words in a struct magazine */

#define place_of_class(class_index) ((uint8_t)((class_index)*PLACE_PER_CLASS))
#define class_of_place(place) ((unsigned)(place) / PLACE_PER_CLASS)

extern PRIVATE const uint16_t class_bytes[CLASS_COUNT];
/* The place for each size up to TABLE_BYTES_MAX. A byte a size: no rounding, no shift. */
extern PRIVATE const uint8_t place_of_size[TABLE_BYTES_MAX + 1];

/* For sizes above TABLE_BYTES_MAX, up to SMALL_BYTES_MAX. */
INLINE unsigned class_beyond_table(size_t size)
{
    unsigned doubling = highest_bit(size - 1);

    if (size > 8192) return CLASS_OF_8192 + 1 + (unsigned)(((size - 1) >> (doubling - 2)) & 3);
    return CLASS_OF_1024 + 1 + (doubling - 10) * 8 + (unsigned)(((size - 1) >> (doubling - 3)) & 7);
}

/* For sizes up to SMALL_BYTES_MAX. */
INLINE unsigned class_of_size(size_t size)
{
    if (size <= TABLE_BYTES_MAX) return class_of_place(place_of_size[size]);
    return class_beyond_table(size);
}

/* The smallest class of at least `size` bytes whose blocks are all aligned to `align` (a power of two);
 * 0 when no class is. */
unsigned class_of_aligned(size_t size, size_t align);

#endif
