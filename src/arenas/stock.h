/* stock.h - the runs that an arena keeps between slabs.
 *
 * Those of a stock have one length: leased a few at a time, so that bursts take the page heap's
 * lock once for several, and kept while they are warm. It is short, for nobody else can have what
 * it holds. Under the lock of the arena.
 *
 * T1  every run in stock[n] is n pages long, used, and belongs to no slab
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_ARENAS_STOCK_H
#define PRAIRIE_ARENAS_STOCK_H

#include "../page_heap/page_heap.h"

enum { STOCK_RUNS_MAX = 8, STOCK_PAGES_MAX = 16 };

struct stock {
    uint32_t count;
    uint32_t low;                  /* the fewest since stock_return_unneeded was last called */
    uint32_t page[STOCK_RUNS_MAX]; /* first pages; the last one in is the first out */
};

/* A used run of `pages`, which are at most STOCK_PAGES_MAX; several are leased when `ahead`.
 * Page 0: no memory. */
struct run stock_take(struct stock *stock, struct page_heap *heap, size_t pages, bool ahead);
void stock_put(struct stock *stock, uint32_t page);
/* Returns so many, those that were put first: the others are warm. */
void stock_return(struct stock *stock, uint32_t count);
/* Returns half of those that were not taken at any moment since the last call. How many. */
unsigned stock_return_unneeded(struct stock *stock);
void stock_check(const struct stock *stock, size_t pages);

#endif
