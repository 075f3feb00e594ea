/* guarded_pool.c - looking up a guarded block, and noting it when it came out of a magazine.
 * SPDX-License-Identifier: MIT
 */
#include "guarded_pool.h"

struct guarded_pool guarded_pool SPARSE;

static uint64_t bit_of_cell(unsigned cell) { return (uint64_t)1 << (cell % 64); }

unsigned guarded_pool_class(const void *pointer)
{
    size_t page;

    if (!guarded_pool_has(pointer)) return 0;
    page = guarded_pool_page_of(pointer);
    if (page % 2 == 0 || RELAXED_LOAD(guarded_pool.block[page / 2]) != pointer) return 0;
    return RELAXED_LOAD(guarded_pool.class_index[page / 2]);
}

bool stray_put(const void *block, unsigned class_index)
{
    unsigned cell;

    if (guarded_pool_class(block) != class_index) return false;
    cell = (unsigned)(guarded_pool_page_of(block) / 2);
    return (__atomic_fetch_or(&guarded_pool.came[cell / 64], bit_of_cell(cell), __ATOMIC_RELAXED)
            & bit_of_cell(cell))
        == 0;
}

bool stray_fetch(unsigned cell)
{
    if ((RELAXED_LOAD(guarded_pool.came[cell / 64]) & bit_of_cell(cell)) == 0) return false;
    (void)__atomic_fetch_and(&guarded_pool.came[cell / 64], ~bit_of_cell(cell), __ATOMIC_RELAXED);
    return true;
}
