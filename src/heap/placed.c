/* placed.c - arenas that calls and controls name.
 * SPDX-License-Identifier: MIT
 */
#include "placed.h"

#include "heap.h"
#include "large.h"
#include "sampled.h"
#include "zero_size.h"

#include "../arenas/manual.h"
#include "../guard/guarded.h"

struct arena *placed_arena(unsigned index)
{
    if (!heap_start()) return NULL;
    return index < arena_limit ? arena_at((unsigned)max_size(index, arena_first))
                               : manual_arena_at(index);
}

struct arena *placed_arena_if_made(size_t index)
{
    return made_arena_at(index < arena_limit ? max_size(index, arena_first) : index);
}

/* ---- all at once ---- */

void placed_reset(struct arena *arena)
{
    thread_flush();
    sampled_forget_all(arena);
    arena_reset(arena);
}

bool placed_destroy(struct arena *arena)
{
    if (!arena_begin_destroy(arena)) return false;
    thread_flush();
    sampled_forget_all(arena);
    arena_finish_destroy(arena);
    return true;
}

/* ---- asking ---- */

struct arena *arena_of_address(const void *address)
{
    uint32_t page = page_at(address);
    const struct page *record = page_record(page);

    if (page == 0) {
        bool is_block = guarded_holds(address) || zero_size_kind(address) == POINTER_ZERO_SIZE;

        return is_block ? arena_at(0) : NULL;
    }
    if (record->class_at != 0) return arenas[slab_record(record->slab)->arena];
    if (record->state == PAGE_MANUAL) return manual_arena_of_page(record);
    if (page_is_cached(record)) return NULL; /* the program gave it back */
    return is_large_state(record->state) || record->state == PAGE_VAST ? arena_at(0) : NULL;
}
