/* control_blocks.c - what a program asks of blocks: their arena, many at once, how full slabs are.
 * SPDX-License-Identifier: MIT
 */
#include "../arenas/arena_set.h"
#include "../heap/large.h"
#include "../heap/misuse.h"
#include "../heap/placed.h"
#include "../../include/prairie/prairie.h"
#include "control_tree.h"
#include "lengths.h"

#include <errno.h>

/* ---- the arena of a block ---- */

int serve_lookup(struct control_call *call)
{
    const struct arena *arena;
    const void *block;

    if (call->new_buffer == NULL || call->new_length != sizeof block) return EINVAL;
    __builtin_memcpy(&block, call->new_buffer, sizeof block);
    arena = arena_of_address(block);
    if (arena == NULL) return EINVAL;
    call->old.number = arena->index;
    return 0;
}

/* ---- many blocks at once ---- */

struct batch {
    void **blocks;
    size_t count, size;
    int flags; /* as of mallocx */
};

/* Tells how many there are; fewer than wanted, when memory ran out. */
int serve_batch_take(struct control_call *call)
{
    struct batch batch;
    size_t taken = 0;

    if (call->new_buffer == NULL || call->new_length != sizeof batch) return EINVAL;
    __builtin_memcpy(&batch, call->new_buffer, sizeof batch);
    for (; taken < batch.count; taken++) {
        batch.blocks[taken] = prairie_mallocx(batch.size, batch.flags);
        if (batch.blocks[taken] == NULL) break;
    }
    call->old.size = taken;
    return 0;
}

/* ---- how full slabs are ---- */

struct use_of_block {
    size_t free_blocks, blocks, bytes;
};

/* A block that has its pages for itself is told as a slab of one block, longer than any class: for
 * a shorter one programs would look up a bin, in which it is not. */
static struct use_of_block use_alone(size_t bytes)
{
    return (struct use_of_block){ 0, 1, max_size(bytes, lextent_first_bytes()) };
}

/* Of the slab of a block; all 0 for an address of none. Without the rest of the slab's pages:
 * programs divide. */
static struct use_of_block use_of(const void *block, struct arena **arena, struct slab **slab)
{
    struct use_of_block use = { 0, 0, 0 };
    uint32_t page;

    *slab = NULL;
    switch (pointer_kind(block, &page)) {
    case POINTER_LARGE:
    case POINTER_SAMPLED: return use_alone(large_bytes(page));
    case POINTER_GUARDED: return use_alone(page_bytes());
    case POINTER_SMALL:
    case POINTER_HARDENED: break;
    default: return use;
    }
    if (page_record(page)->class_at == 0) return use_alone(large_bytes(page));
    *slab = slab_record(page_record(page)->slab);
    *arena = arenas[(*slab)->arena];
    lock_take(&(*arena)->lock);
    use = (struct use_of_block){ (*slab)->free_count, (*slab)->block_count,
                                 slab_shape[(*slab)->class_index].span_bytes };
    lock_give(&(*arena)->lock);
    return use;
}

int serve_batch_query(struct control_call *call)
{
    const void *const *blocks = call->new_buffer;
    struct use_of_block *uses = call->old_buffer;
    size_t count = call->new_length / sizeof *blocks;
    struct arena *arena;
    struct slab *slab;

    if (blocks == NULL || uses == NULL || call->old_length == NULL || count == 0) return EINVAL;
    if (call->new_length != count * sizeof *blocks || *call->old_length != count * sizeof *uses)
        return EINVAL;
    for (size_t i = 0; i < count; i++) uses[i] = use_of(blocks[i], &arena, &slab);
    return 0;
}

struct use_of_bin {
    void *filled_next; /* the slab that the next block comes from */
    struct use_of_block of_slab;
    size_t free_blocks, blocks; /* of all slabs of the class in this arena */
};

int serve_query(struct control_call *call)
{
    struct use_of_bin *use = call->old_buffer;
    const struct class_bin *bin;
    struct arena *arena;
    struct slab *slab;

    if (call->new_buffer == NULL || call->new_length != sizeof(void *)) return EINVAL;
    if (use == NULL || call->old_length == NULL || *call->old_length != sizeof *use) return EINVAL;
    *use = (struct use_of_bin){ .filled_next = NULL };
    use->of_slab = use_of(*(const void *const *)call->new_buffer, &arena, &slab);
    if (slab == NULL) return 0;
    lock_take(&arena->lock);
    bin = &arena->bin[slab->class_index];
    if (bin->partial.count != 0) use->filled_next = slab_record(bin->partial.first)->base;
    use->free_blocks = bin->slab_free_blocks;
    use->blocks = bin_blocks(bin, slab->class_index);
    lock_give(&arena->lock);
    return 0;
}
