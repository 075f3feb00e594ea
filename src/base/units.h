/* units.h - sizes, and rounding them without overflow surprises.
 *
 * Owns no state.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_BASE_UNITS_H
#define PRAIRIE_BASE_UNITS_H

#include "attrs.h"

#define SIZE_BITS ((unsigned)sizeof(size_t) * 8)

#define KiB ((size_t)1 << 10)
#define MiB ((size_t)1 << 20)
#define GiB ((size_t)1 << 30)
#define TiB ((uint64_t)1 << 40)

INLINE bool is_power_of_two(size_t value) { return value != 0 && (value & (value - 1)) == 0; }

/* `unit` is a power of two. The caller has made sure that value + unit does not wrap. */
INLINE size_t round_up(size_t value, size_t unit) { return (value + unit - 1) & ~(unit - 1); }
INLINE size_t round_down(size_t value, size_t unit) { return value & ~(unit - 1); }
INLINE bool is_aligned(uintptr_t value, size_t unit) { return (value & (unit - 1)) == 0; }

INLINE size_t min_size(size_t a, size_t b) { return a < b ? a : b; }
INLINE size_t max_size(size_t a, size_t b) { return a > b ? a : b; }

#endif
