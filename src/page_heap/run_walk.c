/* run_walk.c - walks by the lengths in the page map.
 * SPDX-License-Identifier: MIT
 */
#include "run_walk.h"

#include "../space/commit.h"
#include "../space/foreign.h"
#include "run_find.h"

/* Runs for one holding of the lock: some tens of microseconds. */
enum { RUNS_PER_HOLD = 1024 };

/* `page` began a run when the lock was given. Now it may be in the middle of one, whose last page
 * says that it is a boundary again; the run is left out. */
static uint32_t next_start(uint32_t page, uint32_t end)
{
    if (page >= end || page_record(page)->state != PAGE_INSIDE) return page;
    while (page < end && page_record(page)->state == PAGE_INSIDE) page++;
    return page < end ? page + 1 : end;
}

/* A run in a large cache is used, and so is what lies in a piece of a supplied page heap. */
static enum page_state visible_state(const struct page *record)
{
    bool is_used = page_is_cached(record) || is_supplied_free_state(record->state);

    return is_used ? PAGE_USED : (enum page_state)record->state;
}

static READS_UNLOCKED bool has_vast_blocks(void) { return commit.vast_count != 0; }

static void visit_vast(struct page_heap *heap,
                       void (*visit)(enum page_state state, size_t pages, void *context),
                       void *context)
{
    lock_take(&heap->lock);
    foreign_visit_whole(visit, context);
    lock_give(&heap->lock);
}

void runs_visit(struct page_heap *heap,
                void (*visit)(enum page_state state, size_t pages, void *context), void *context)
{
    uint32_t regions = __atomic_load_n(&space.region_count, __ATOMIC_ACQUIRE);

    for (uint32_t i = 0; i < regions; i++) {
        const struct region *region = &space.region[i];
        uint32_t page = region->first_page, end;

        do {
            lock_take(&heap->lock);
            end = region->first_page + region->open_pages;
            page = next_start(page, end);
            for (unsigned runs = 0; runs < RUNS_PER_HOLD && page < end; runs++) {
                const struct page *record = page_record(page);
                if (record->run_pages == 0) page = end; /* not a run: nothing to go on from */
                else {
                    visit(visible_state(record), record->run_pages, context);
                    page += record->run_pages;
                }
            }
            lock_give(&heap->lock);
        } while (page < end);
    }
    if (has_vast_blocks()) visit_vast(heap, visit, context);
}
