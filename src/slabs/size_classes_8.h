/* size_classes_8.h - the size classes that jemalloc has with a quantum of 8: steps of 8, then four
 * to a doubling.
 *
 *   class   1   2   3 ...  8   9  10  11  12   13 ... 24    25 ... 36    37    38    39
 *   bytes   8  16  24 ... 64  80  96 112 128  160 .. 1024 1280 .. 8192 10240 12288 14336
 *
 * For servers that carry their allocator along and know this list of size classes: they ask for
 * sizes on it, and move their blocks by its numbers. Blocks of 24, 40 and 56 bytes are aligned to
 * 8.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_SLABS_SIZE_CLASSES_8_H
#define PRAIRIE_SLABS_SIZE_CLASSES_8_H

#include "../base/bits.h"

enum { CLASS_QUANTUM = 8 };
enum { CLASS_COUNT = 40, CLASS_OF_128 = 12, CLASS_OF_1024 = 24, CLASS_OF_8192 = 36 };

#define CLASS_BYTES_LIST                                                                        \
    0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, \
        640, 768, 896, 1024, 1280, 1536, 1792, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168,  \
        8192, 10240, 12288, 14336

#define CLASS_OFFSETS_LIST                                                                         \
    SIZES(1, 8, 1), SIZES(9, 16, 2), SIZES(17, 24, 3), SIZES(25, 32, 4), SIZES(33, 40, 5),         \
        SIZES(41, 48, 6), SIZES(49, 56, 7), SIZES(57, 64, 8), SIZES(65, 80, 9), SIZES(81, 96, 10), \
        SIZES(97, 112, 11), SIZES(113, 128, 12), SIZES(129, 160, 13), SIZES(161, 192, 14),         \
        SIZES(193, 224, 15), SIZES(225, 256, 16), SIZES(257, 320, 17), SIZES(321, 384, 18),        \
        SIZES(385, 448, 19), SIZES(449, 512, 20), SIZES(513, 640, 21), SIZES(641, 768, 22),        \
        SIZES(769, 896, 23), SIZES(897, 1024, 24)

/* For sizes above TABLE_BYTES_MAX, up to SMALL_BYTES_MAX. */
INLINE unsigned class_beyond_table(size_t size)
{
    unsigned doubling = highest_bit(size - 1);

    return CLASS_OF_1024 + 1 + (doubling - 10) * 4 + (unsigned)(((size - 1) >> (doubling - 2)) & 3);
}

#endif
