/* zero_size.h - blocks of size 0: addresses that are no other block's, and that nobody may touch.
 *
 * Their addresses lie 16 bytes apart in a stretch of address space that is reserved and never
 * committed, so that a program which reads or writes one ends at once. A bit says which are given
 * out:
 *
 *      address    first + 16 * i, of every alignment up to a page
 *      taken      bit i
 *
 * Addresses are given out in turn, so that one which came back stays unused for as long as
 * possible. Any thread may call any of these at any time; nothing takes a lock.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_ZERO_SIZE_H
#define PRAIRIE_HEAP_ZERO_SIZE_H

#include "misuse.h"

/* NULL: none was found, or none is that aligned, or there is so little address space that not even
 * the class map is there; a block with bytes must do. `align` is a power of two. */
void *zero_size_take(size_t align);
/* False: it was given back already. */
bool zero_size_put(void *block);
/* POINTER_FOREIGN: it does not lie among them. */
enum pointer_kind zero_size_kind(const void *pointer);

#endif
