/* stock.h - runs between slabs: leased a few at a time ahead of need, and kept a moment after.
 *
 * Bursts open and close slabs one after the other. A stock takes the page heap's lock once for
 * several of them, and a slab that opens soon after another closed gets its run, which is warm. It
 * is short: what it holds is memory that nobody else can have. One for each length, in each arena,
 * under the arena's lock.
 *
 * T1  every run in stock[n] is n pages long, used, and belongs to no slab
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_ARENAS_STOCK_H
#define PRAIRIE_ARENAS_STOCK_H

#include "../page_heap/page_heap.h"

enum { STOCK_RUNS_MAX = 8, STOCK_PAGES_MAX = 16 };

struct stock {
    uint64_t leased; /* statistics: runs so far */
    uint32_t count;
    uint32_t low;                  /* the fewest since stock_return_unneeded was last called */
    uint32_t page[STOCK_RUNS_MAX]; /* first pages; the last one in is the first out */
};

/* A used run of `pages`, which are at most STOCK_PAGES_MAX; several are leased when `ahead`. 0: no
 * memory. */
uint32_t stock_take(struct stock *stock, size_t pages, bool ahead);
void stock_put(struct stock *stock, uint32_t page);
/* Returns all of them. */
void stock_clear(struct stock *stock);
/* Returns half of those that were not taken at any moment since the last call. How many. */
unsigned stock_return_unneeded(struct stock *stock);
void stock_check(const struct stock *stock, size_t pages);

#endif
