/* size_class.c - the two tables of the ladder.
 * SPDX-License-Identifier: MIT
 */
#include "size_class.h"

const uint16_t class_bytes[CLASS_COUNT] = {
    0,    8,    16,   32,   48,   64,   80,   96,   112,   128,   160,   192,  224,  256,
    320,  384,  448,  512,  576,  640,  704,  768,  832,   896,   960,   1024, 1152, 1280,
    1408, 1536, 1664, 1792, 1920, 2048, 2304, 2560, 2816,  3072,  3328,  3584, 3840, 4096,
    4608, 5120, 5632, 6144, 6656, 7168, 7680, 8192, 10240, 12288, 14336,
};

const uint8_t place_of_size[TABLE_BYTES_MAX + 1] = {
    [0 ... 8] = place_of_class(1),       [9 ... 16] = place_of_class(2),
    [17 ... 32] = place_of_class(3),     [33 ... 48] = place_of_class(4),
    [49 ... 64] = place_of_class(5),     [65 ... 80] = place_of_class(6),
    [81 ... 96] = place_of_class(7),     [97 ... 112] = place_of_class(8),
    [113 ... 128] = place_of_class(9),   [129 ... 160] = place_of_class(10),
    [161 ... 192] = place_of_class(11),  [193 ... 224] = place_of_class(12),
    [225 ... 256] = place_of_class(13),  [257 ... 320] = place_of_class(14),
    [321 ... 384] = place_of_class(15),  [385 ... 448] = place_of_class(16),
    [449 ... 512] = place_of_class(17),  [513 ... 576] = place_of_class(18),
    [577 ... 640] = place_of_class(19),  [641 ... 704] = place_of_class(20),
    [705 ... 768] = place_of_class(21),  [769 ... 832] = place_of_class(22),
    [833 ... 896] = place_of_class(23),  [897 ... 960] = place_of_class(24),
    [961 ... 1024] = place_of_class(25),
};

unsigned class_of_aligned(size_t size, size_t align)
{
    if (size > SMALL_BYTES_MAX || align > 4096) return 0;
    /* Slabs start at a page, so a block is as aligned as its class's size is. */
    for (unsigned class_index = class_of_size(size); class_index < CLASS_COUNT; class_index++)
        if (is_aligned(class_bytes[class_index], align)) return class_index;
    return 0;
}
