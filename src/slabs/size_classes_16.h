/* size_classes_16.h - size classes in steps of 16, then four and eight to a doubling.
 *
 *   class   1   2   3 ...   9  10  11  12  13 ...  17  18  19 ..   25
 *   bytes   8  16  32 ... 128 160 192 224 256 ... 512 576 640 .. 1024
 *
 *   class   26   27 ..   49    50    51    52
 *   bytes 1152 1280 .. 8192 10240 12288 14336
 *
 * Steps of 16 to 128, four to a doubling to 512, eight to a doubling to 8192, then four again. The
 * finer steps are where programs ask for a round size and a little more: 1032, 2064, 4376 bytes
 * (docs/decisions).
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_SLABS_SIZE_CLASSES_16_H
#define PRAIRIE_SLABS_SIZE_CLASSES_16_H

#include "../base/bits.h"

enum { CLASS_QUANTUM = 16 };
enum { CLASS_COUNT = 53, CLASS_OF_128 = 9, CLASS_OF_1024 = 25, CLASS_OF_8192 = 49 };

#define CLASS_BYTES_LIST                                                                           \
    0, 8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640, 704, \
        768, 832, 896, 960, 1024, 1152, 1280, 1408, 1536, 1664, 1792, 1920, 2048, 2304, 2560,      \
        2816, 3072, 3328, 3584, 3840, 4096, 4608, 5120, 5632, 6144, 6656, 7168, 7680, 8192, 10240, \
        12288, 14336

#define CLASS_OFFSETS_LIST                                                                  \
    SIZES(1, 8, 1), SIZES(9, 16, 2), SIZES(17, 32, 3), SIZES(33, 48, 4), SIZES(49, 64, 5),  \
        SIZES(65, 80, 6), SIZES(81, 96, 7), SIZES(97, 112, 8), SIZES(113, 128, 9),          \
        SIZES(129, 160, 10), SIZES(161, 192, 11), SIZES(193, 224, 12), SIZES(225, 256, 13), \
        SIZES(257, 320, 14), SIZES(321, 384, 15), SIZES(385, 448, 16), SIZES(449, 512, 17), \
        SIZES(513, 576, 18), SIZES(577, 640, 19), SIZES(641, 704, 20), SIZES(705, 768, 21), \
        SIZES(769, 832, 22), SIZES(833, 896, 23), SIZES(897, 960, 24), SIZES(961, 1024, 25)

/* For sizes above TABLE_BYTES_MAX, up to SMALL_BYTES_MAX. */
INLINE unsigned class_beyond_table(size_t size)
{
    unsigned doubling = highest_bit(size - 1);

    if (size > 8192) return CLASS_OF_8192 + 1 + (unsigned)(((size - 1) >> (doubling - 2)) & 3);
    return CLASS_OF_1024 + 1 + (doubling - 10) * 8 + (unsigned)(((size - 1) >> (doubling - 3)) & 7);
}

#endif
