/* defrag.c - would the heap be smaller if this block moved?
 *
 * Servers that move their own objects ask this of each one, take a new block past all caches when
 * the answer is yes, and free the old one past them too. Sparse slabs empty themselves into fuller
 * ones that way.
 * SPDX-License-Identifier: MIT
 */
#include "heap.h"

/* Not from a full slab, nor from the one that is filled from next, where the block would go. Else
 * when the slab is used no more than the average of those with free blocks; an eighth on top keeps
 * slabs that are all used alike from staying as they are. */
static bool is_sparse(const struct class_bin *bin, const struct slab *slab)
{
    uint64_t block_count, used;

    if (slab == NULL || slab->free_count == 0 || bin->partial == slab_number(slab)) return false;
    block_count = slab->block_count;
    used = bin->partial_count * block_count - bin->slab_free_blocks;
    return (block_count - slab->free_count) * bin->partial_count <= used + used / 8;
}

PUBLIC int prairie_defrag_hint(void *block)
{
    uint32_t page = open_page_at(block);
    unsigned class_index;
    struct arena *arena;
    bool sparse;

    if (page == 0 || page_record(page)->class_at == 0) return 0;
    class_index = class_of_offset(page_record(page)->class_at);
    arena = arena_of_block(class_index, block);
    lock_take(&arena->lock);
    sparse = is_sparse(&arena->bin[class_index], slab_of(block, class_index));
    lock_give(&arena->lock);
    return sparse;
}
