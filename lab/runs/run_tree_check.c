/* run_tree_check.c - walks the regions and the trees of runs: to compare them, and for those who
 * count.
 * SPDX-License-Identifier: MIT
 */
#include "extents.h"

void runs_visit(void (*visit)(enum page_state state, size_t pages, void *context), void *context)
{
    struct page_heap *const heap = page_heap;

    lock_take(&heap->lock);
    for (uint32_t i = 0; i < space.region_count; i++) {
        const struct region *region = &space.region[i];
        uint32_t page = region->first_page, end = page + region->open_pages;

        while (page < end) {
            struct tree_run like = { .page = page }, *run = used_at(page);
            enum page_state state = (enum page_state)page_record(page)->state;

            if (run == NULL) {
                run = free_after(&like);
                state = run->kind == FREE_DIRTY ? PAGE_DIRTY : PAGE_CLEAN;
            }
            visit(state, run->pages, context);
            page += run->pages;
        }
    }
    lock_give(&heap->lock);
}

static void check_region(const struct region *region, size_t *free_pages, size_t *free_count)
{
    uint32_t end = region->first_page + region->open_pages;
    struct tree_run *previous = NULL;

    for (uint32_t page = region->first_page; page < end;) {
        struct tree_run like = { .page = page }, *free_run = free_after(&like);
        struct tree_run *used_run = used_at(page);
        bool is_free = starts_at(free_run, page);

        require(is_free != (used_run != NULL)); /* T1 */
        if (is_free) {
            require(previous == NULL || previous->kind != free_run->kind); /* T2 */
            free_pages[free_run->kind] += free_run->pages;
            ++*free_count;
            page += free_run->pages;
        } else {
            require(page_record(page)->run_pages == used_run->pages);
            page += used_run->pages;
        }
        previous = is_free ? free_run : NULL;
        require(page <= end); /* T1 */
    }
}

static size_t count_by_size(unsigned kind)
{
    size_t count = 0;

    for (struct RUN_VERB(node) *node = RUN_VERB(first)(&kept_runs.by_size[kind]); node != NULL;
         node = RUN_VERB(next)(&kept_runs.by_size[kind], node, order_by_size), count++)
        require(at_size(node)->kind == kind); /* T3 */
    return count;
}

void page_heaps_check(void)
{
    struct page_heap *const heap = page_heap;
    size_t free_pages[FREE_KINDS] = { 0 }, free_count = 0;

    require(RUN_VERB(fault)(&kept_runs.free_runs, order_by_address) == NULL);
    require(RUN_VERB(fault)(&kept_runs.used_runs, order_by_address) == NULL);
    for (uint32_t i = 0; i < space.region_count; i++)
        check_region(&space.region[i], free_pages, &free_count);
    for (unsigned kind = 0; kind < FREE_KINDS; kind++) {
        require(RUN_VERB(fault)(&kept_runs.by_size[kind], order_by_size) == NULL);
        require(free_pages[kind] == heap->free_pages[kind]); /* T4 */
    }
    require(count_by_size(FREE_DIRTY) + count_by_size(FREE_CLEAN) == free_count); /* T3 */
}
