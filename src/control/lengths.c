/* lengths.c - walks over runs and large blocks.
 * SPDX-License-Identifier: MIT
 */
#include "lengths.h"

#include "../arenas/manual.h"
#include "../page_heap/page_heap.h"
#include "../view/snapshot.h"
#include "control.h"

unsigned last_step_below(size_t bytes, unsigned end)
{
    unsigned step = 0;

    while (step + 1 < end && step_bytes(step + 1) <= bytes) step++;
    return step;
}

static void count_by_step(struct lengths *lengths, size_t pages)
{
    unsigned step = lextent_of(pages << space.page_shift);

    if (step < STEPS_MAX) lengths->large[step]++;
}

static void count_run(enum page_state state, size_t pages, void *context)
{
    struct lengths *lengths = context;
    unsigned step = last_step_below(pages << space.page_shift, STEPS_MAX);

    if (is_large_state((uint8_t)state)) {
        count_by_step(lengths, pages);
    } else if (state == PAGE_DIRTY) {
        lengths->dirty[step]++;
        lengths->dirty_pages[step] += pages;
    } else if (state == PAGE_CLEAN) {
        lengths->clean[step]++;
        lengths->clean_pages[step] += pages;
    }
}

static void count_manual(struct lengths *lengths, unsigned index)
{
    struct arena *arena = made_arena_at(index);

    if (arena == NULL) return;
    lock_take(&arena->lock);
    for (const struct manual_large *owner = arena->manual_large; owner != NULL; owner = owner->next)
        count_by_step(lengths, page_record(owner->page)->run_pages);
    if (arena->extents != NULL) supplied_visit_free(&arena->extents->heap, count_run, lengths);
    lock_give(&arena->lock);
}

void lengths_count(struct lengths *lengths, unsigned arena)
{
    bool all = arena == CONTROL_ARENAS_ALL;

    __builtin_memset(lengths, 0, sizeof *lengths);
    if (all || arena == 0) runs_visit(count_run, lengths);
    for (unsigned index = all ? 0 : arena; index < (all ? arenas_end() : arena + 1); index++)
        count_manual(lengths, index);
}

_Static_assert(sizeof(struct lengths) <= META_RECORD_BYTES_MAX, "a record");

/* Whoever asks for one step of an arena asks for the others next, so that one set is kept. No hard
 * limit refuses it. */
const struct lengths *lengths_of_epoch(uint64_t epoch, unsigned arena)
{
    static struct lengths *kept; /* under control_lock, as all of it */
    static uint64_t kept_epoch;
    static unsigned kept_arena;

    check(lock_is_mine(&control_lock));
    if (kept != NULL && kept_epoch == epoch && kept_arena == arena) return kept;
    if (kept == NULL) kept = meta_take_past_limit(sizeof *kept);
    if (kept == NULL) return NULL;
    lengths_count(kept, arena);
    kept_epoch = epoch;
    kept_arena = arena;
    return kept;
}
