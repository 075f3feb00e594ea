/* sampled.c - blocks that were sampled: pages of their own, and a record of who took them.
 * SPDX-License-Identifier: MIT
 */
#include "heap.h"

#include "../guard/sample.h"

bool sampling_active;
bool sampling_polls;

static unsigned depth_most = UNWIND_DEPTH_MAX; /* constant after start-up */

bool sampling_start(unsigned depth)
{
    if (depth < UNWIND_DEPTH_MAX) depth_most = depth;
    return heap_attach() != NULL && threads_meter();
}

/* The number of a new record; 0: there is none. */
static uint32_t note(const struct watch *watch, size_t bytes, const void *frame)
{
    uintptr_t return_address[UNWIND_DEPTH_MAX];
    struct origin origin = { return_address, 0, watch->name };

    if (!RELAXED_LOAD(sampling_active) || watch->sampling_off) return 0;
    origin.depth = unwind_from(frame, return_address, depth_most);
    return sample_note(&origin, bytes);
}

void *sampled_take(struct watch *watch, size_t bytes, const void *frame)
{
    uint32_t number = note(watch, bytes, frame);
    void *block;

    if (number == 0) return NULL;
    block = large_lease(bytes, 1, false);
    if (block == NULL) sample_forget(number);
    else run_mark_sampled(page_at(block), number);
    return block;
}

void sampled_begin(struct watch *watch, void *block, const void *frame)
{
    uint32_t page = page_at(block), number = note(watch, large_bytes(page), frame);

    if (number != 0) run_mark_sampled(page, number);
}

void sampled_put(uint32_t page)
{
    sample_forget(sampled_pause(page));
    large_put(page);
}

uint32_t sampled_pause(uint32_t page)
{
    uint32_t number = 0;

    if (page_record(page)->state != PAGE_SAMPLED) return 0;
    number = page_record(page)->slab;
    run_unmark_sampled(page);
    return number;
}

void sampled_go_on(uint32_t page, uint32_t number, bool resized)
{
    if (number == 0) return;
    if (resized) sample_forget(number);
    else run_mark_sampled(page, number);
}

size_t sampled_bytes(uint32_t page) { return sample_bytes(page_record(page)->slab); }
