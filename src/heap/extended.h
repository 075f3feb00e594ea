/* extended.h - the flags of the doors that take them, bit by bit.
 *
 *      31      20 19       8 7 6 5     0
 *     | arena + 1 | cache + 2 | z | align |     a binary interface: programs are compiled with it
 *
 * `align` is a logarithm. A cache of 0 is the calling thread's own, 1 is none: the block comes from
 * its slab at once and goes back there at once. An arena of 0 is the one that the thread fills
 * from.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_EXTENDED_H
#define PRAIRIE_HEAP_EXTENDED_H

#include "../base/attrs.h"

#define FLAG_ALIGN 0x3fu
#define FLAG_ZERO 0x40u
#define FLAG_CACHE 0xfff00u
#define FLAG_ARENA 0xfff00000u

/* What nallocx still tells a size for; the address space is smaller, so such blocks are refused
 * later. */
#define LARGE_BYTES_MAX (7 * (SIZE_MAX / 16 + 1))

enum { CACHE_OWN, CACHE_NONE, CACHE_FIRST_EXPLICIT };

/* More than a word can name is its highest power of two, which no block is aligned to. */
INLINE size_t flags_align(unsigned flags)
{
    const unsigned most = 8 * sizeof(size_t) - 1;
    unsigned bits = flags & FLAG_ALIGN;

    return (size_t)1 << (bits < most ? bits : most);
}
INLINE unsigned flags_cache(unsigned flags) { return (flags & FLAG_CACHE) >> 8; }
/* Only when there is one. */
INLINE unsigned flags_arena(unsigned flags) { return (flags >> 20) - 1; }

#endif
