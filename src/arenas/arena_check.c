/* arena_check.c - walks what arenas hold, and compares it with what they counted.
 * SPDX-License-Identifier: MIT
 */
#include "manual.h"

#include "../slabs/guarded_pool.h"

/* Returns how many pages of its slabs are marked as purged. */
static uint32_t check_class_bin(const struct arena *arena, unsigned class_index)
{
    const struct class_bin *bin = &arena->bin[class_index];
    uint32_t listed = 0, first = bin->partial.first, last = 0;
    uint32_t purged_pages = 0;
    uint64_t free_blocks = 0;

    for (uint32_t number = first; number != 0; number = slab_record(number)->next) {
        const struct slab *slab = slab_record(number);
        slab_check(slab);
        require(slab->arena == arena->index && slab->class_index == class_index); /* A1 */
        require(slab->free_count > 0);                                            /* A1, S3 */
        require(slab->free_count < slab->block_count || slab->next == 0);         /* A3 */
        require(number == first || slab->previous == last);
        free_blocks += slab->free_count;
        purged_pages += slab_purged_pages(slab);
        last = number;
        listed++;
    }
    require(listed == bin->partial.count && (first == 0 || slab_record(first)->previous == last));
    if (arena->is_manual) {
        uint64_t full = 0;
        for (uint32_t number = bin->full.first; number != 0; number = slab_record(number)->next) {
            require(slab_record(number)->arena == arena->index); /* X1 */
            require(slab_record(number)->free_count == 0);       /* X1 */
            full++;
        }
        require(full == bin->full.count && listed + full == bin->slab_count); /* X1 */
    }
    require(free_blocks == bin->slab_free_blocks); /* S3 */
    require(listed <= bin->slab_count);
    return purged_pages;
}

/* NULL (M3) and strays may be among blocks. */
static bool is_of_depot(const void *block, unsigned class_index)
{
    const struct slab *slab = slab_of(block, class_index);

    if (slab != NULL) return !arenas[slab->arena]->is_manual;
    return block == NULL || guarded_pool_class(block) == class_index;
}

static void check_depot(const struct depot *depot, unsigned class_index)
{
    uint32_t full = 0, empty = 0;

    for (void **magazine = depot->full.first; magazine != NULL; magazine = magazine[0], full++)
        for (unsigned slot = 1; slot <= magazine_capacity(class_index); slot++)
            require(is_of_depot(magazine[slot], class_index)); /* D2 */
    for (void **magazine = depot->empty.first; magazine != NULL; magazine = magazine[0]) empty++;
    require((depot->opened != NULL) == (depot->opened_count > 0)); /* D3 */
    for (unsigned slot = 1; slot <= depot->opened_count; slot++)
        require(is_of_depot(depot->opened[slot], class_index));        /* D2 */
    require(full == depot->full.count && empty == depot->empty.count); /* D1 */
}

void arena_check(const struct arena *arena)
{
    size_t active_pages = 0;
    uint32_t staggered = 0, purged_pages = 0;

    check(lock_is_mine(&arena->lock));
    if (arena->extents != NULL) extents_check(arena->extents);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        purged_pages += check_class_bin(arena, class_index);
        active_pages += arena->bin[class_index].slab_count * slab_pages(class_index);
        check_depot(&arena->bin[class_index].depot, class_index);
    }
    for (unsigned pages = 1; pages <= STOCK_PAGES_MAX; pages++)
        stock_check(&arena->stock[pages], pages);
    for (const struct manual_large *owner = arena->manual_large; owner != NULL;
         owner = owner->next) {
        active_pages += page_record(owner->page)->run_pages;
        staggered += page_is_staggered(page_record(owner->page));
    }
    active_pages -= purged_pages;
    require(arena->active_pages == active_pages && arena->staggered == staggered); /* A2 */
    require(arena->purged_pages == purged_pages);                                  /* A4 */
}

void arenas_check(void)
{
    EACH_ARENA (arena) arena_check(arena);
}
