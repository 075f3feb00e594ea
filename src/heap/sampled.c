/* sampled.c - blocks that were sampled: pages of their own, and a record of who took them.
 * SPDX-License-Identifier: MIT
 */
#include "heap.h"

#include "../arenas/explicit.h"
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
    struct origin origin = { return_address, 0, watch->meter->name };

    if (!RELAXED_LOAD(sampling_active) || watch->meter->is_off) return 0;
    origin.depth = unwind_from(frame, return_address, depth_most);
    return sample_note(&origin, bytes);
}

static bool is_owned(uint32_t page) { return page_record(page)->state == PAGE_OWNED; }

uint32_t sampled_number(uint32_t page)
{
    if (page_record(page)->state == PAGE_SAMPLED) return page_record(page)->slab;
    return is_owned(page) ? RELAXED_LOAD(*owned_sample(page)) : 0;
}

static void mark(uint32_t page, uint32_t number)
{
    if (is_owned(page)) RELAXED_STORE(*owned_sample(page), number);
    else run_mark_sampled(page, number);
}

void *sampled_take(struct watch *watch, struct arena *arena, size_t bytes, const void *frame)
{
    uint32_t number = note(watch, bytes, frame);
    void *block;

    if (number == 0) return NULL;
    block = arena != NULL ? owned_take(arena, bytes, 1, false) : large_lease(bytes, 1, false);
    if (block == NULL) sample_forget(number);
    else mark(page_at(block), number);
    return block;
}

void sampled_begin(struct watch *watch, void *block, const void *frame)
{
    uint32_t page = page_at(block), number = note(watch, large_bytes(page), frame);

    if (number != 0) mark(page, number);
}

void sampled_put(uint32_t page)
{
    sample_forget(sampled_pause(page));
    large_put(page);
}

uint32_t sampled_pause(uint32_t page)
{
    uint32_t number = sampled_number(page);

    if (number == 0) return 0;
    if (is_owned(page)) RELAXED_STORE(*owned_sample(page), 0);
    else run_unmark_sampled(page);
    return number;
}

void sampled_go_on(uint32_t page, uint32_t number, bool resized)
{
    if (number == 0) return;
    if (resized) sample_forget(number);
    else mark(page, number);
}

size_t sampled_bytes(uint32_t page) { return sample_bytes(sampled_number(page)); }

static void forget(uint32_t page, void *unused)
{
    uint32_t number = sampled_pause(page);

    (void)unused;
    if (number != 0) sample_forget(number);
}

void sampled_forget_all(struct arena *arena)
{
    lock_take(&arena->lock);
    owned_visit(arena, forget, NULL);
    lock_give(&arena->lock);
}
