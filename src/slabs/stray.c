/* stray.c - a bit for each guarded block that was drained out of a magazine.
 * SPDX-License-Identifier: MIT
 */
#include "stray.h"

struct strays strays SPARSE;

static uint64_t bit_of_cell(unsigned cell) { return (uint64_t)1 << (cell % 64); }

unsigned stray_class(const void *pointer)
{
    size_t page;

    if (!stray_pool_has(pointer)) return 0;
    page = stray_page_of(pointer);
    if (page % 2 == 0 || RELAXED_LOAD(strays.block[page / 2]) != pointer) return 0;
    return RELAXED_LOAD(strays.class_index[page / 2]);
}

bool stray_put(const void *block, unsigned class_index)
{
    unsigned cell;

    if (stray_class(block) != class_index) return false;
    cell = (unsigned)(stray_page_of(block) / 2);
    return (__atomic_fetch_or(&strays.came[cell / 64], bit_of_cell(cell), __ATOMIC_RELAXED)
            & bit_of_cell(cell))
        == 0;
}

bool stray_fetch(unsigned cell)
{
    if ((RELAXED_LOAD(strays.came[cell / 64]) & bit_of_cell(cell)) == 0) return false;
    (void)__atomic_fetch_and(&strays.came[cell / 64], ~bit_of_cell(cell), __ATOMIC_RELAXED);
    return true;
}
