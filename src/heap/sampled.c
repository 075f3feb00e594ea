/* sampled.c - blocks that were sampled: pages of their own, and a record of who took them.
 * SPDX-License-Identifier: MIT
 */
#include "sampled.h"

#include "large.h"
#include "slow.h"

#include "../arenas/manual.h"
#include "../sample/sample.h"

/* ---- taking ---- */

/* Manual and vast blocks keep their page state when they are sampled: this is where the number of
 * their sample stands, 0 without one. NULL: of any other block, which is in state PAGE_SAMPLED when
 * it is sampled. */
static uint32_t *number_beside_state(uint32_t page)
{
    if (page_is_manual(page)) return manual_sample(page);
    return page_record(page)->state == PAGE_VAST ? &page_record(page)->slab : NULL;
}

uint32_t sampled_number(uint32_t page)
{
    uint32_t *number;

    if (page_record(page)->state == PAGE_SAMPLED) return page_record(page)->slab;
    number = number_beside_state(page);
    return number != NULL ? RELAXED_LOAD(*number) : 0;
}

static void mark(uint32_t page, uint32_t number)
{
    uint32_t *beside = number_beside_state(page);

    if (beside != NULL) RELAXED_STORE(*beside, number);
    else run_mark(page, number != 0 ? PAGE_SAMPLED : PAGE_LARGE, number);
}

void *sampled_take(struct counting_front *counting, struct arena *arena, size_t bytes,
                   const void *frame)
{
    struct stack_trace trace;
    uint32_t number = sampling_note(counting, bytes, frame, &trace);
    /* Aligned like any block of the class, for whatever alignment it was asked. */
    struct alloc_request request = { .size = bytes, .align = page_bytes(), .arena = arena };
    void *block;

    if (number == 0) return NULL;
    block = large_lease_unhelped(&request); /* there may be blocks where there are no pages */
    if (block == NULL) {
        sample_forget(number);
        return NULL;
    }
    mark(page_at(block), number);
    sampling_tell_taken(block, &trace.origin, bytes);
    return block;
}

void sampled_begin(struct counting_front *counting, void *block, const void *frame)
{
    struct stack_trace trace;
    uint32_t page = page_at(block);
    uint32_t number = sampling_note(counting, large_bytes(page), frame, &trace);

    if (number == 0) return;
    mark(page, number);
    sampling_tell_taken(block, &trace.origin, large_bytes(page));
}

/* ---- giving back ---- */

void sampled_end(uint32_t page) { sampled_go_on(large_begin(page), sampled_pause(page), true); }

uint32_t sampled_pause(uint32_t page)
{
    uint32_t number = sampled_number(page);

    if (number != 0) mark(page, 0);
    return number;
}

void sampled_go_on(const void *block, uint32_t number, bool resized)
{
    if (number == 0) return;
    if (!resized) {
        mark(page_at(block), number);
        return;
    }
    sampling_tell_given(block, number);
    sample_forget(number);
}

size_t sampled_bytes(uint32_t page) { return sample_bytes(sampled_number(page)); }

void sampled_forget_all(struct arena *arena)
{
    lock_take(&arena->lock);
    for (const struct manual_large *owner = arena->manual_large; owner != NULL;
         owner = owner->next) {
        uint32_t number = sampled_pause(owner->page);

        if (number != 0) sample_forget(number);
    }
    lock_give(&arena->lock);
}
