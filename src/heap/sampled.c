/* sampled.c - blocks that were sampled: pages of their own, and a record of who took them.
 * SPDX-License-Identifier: MIT
 */
#include "sampled.h"

#include "heap.h"
#include "large.h"
#include "slow.h"

#include "../arenas/manual.h"
#include "../guard/sample.h"

#include <errno.h>

bool sampling_active;
bool sampling_polls;

static unsigned depth_most = UNWIND_DEPTH_MAX; /* constant after start-up */

bool sampling_start(unsigned depth)
{
    if (depth < UNWIND_DEPTH_MAX) depth_most = depth;
    return heap_attach() != NULL && threads_sample();
}

/* ---- functions of the program ---- */

struct sampling_hooks sampling_hooks;

/* Where a thread was before a hook was called. */
struct interlude {
    struct sampler *sampler;
    bool in_hook;
    int errno_kept;
};

static struct sampler *sampler_here(void)
{
    const struct counting_front *counting = counting_of(thread_front());

    return counting != NULL ? counting->sampler : NULL;
}

static struct interlude hook_begins(void)
{
    struct sampler *sampler = sampler_here();
    struct interlude before = { sampler, sampler != NULL && sampler->in_hook, errno };

    if (sampler != NULL) sampler->in_hook = true;
    return before;
}

static void hook_ends(struct interlude before)
{
    if (before.sampler != NULL) before.sampler->in_hook = before.in_hook;
    errno = before.errno_kept;
}

void sampling_walk(void **return_address, unsigned *depth, unsigned most)
{
    const struct sampler *sampler = sampler_here();
    const void *frame = sampler != NULL && sampler->frame != NULL ? sampler->frame : FRAME_HERE();

    *depth = unwind_from(frame, (uintptr_t *)return_address, most);
    FRAME_LASTS();
}

static unsigned walk(struct sampler *sampler, const void *frame, uintptr_t *return_address)
{
    void (*hook)(void **, unsigned *, unsigned) = RELAXED_LOAD(sampling_hooks.walk);
    struct interlude before;
    unsigned depth = 0;

    if (likely(hook == NULL)) return unwind_from(frame, return_address, depth_most);
    before = hook_begins();
    sampler->frame = frame;
    hook((void **)return_address, &depth, depth_most);
    sampler->frame = NULL;
    hook_ends(before);
    return depth < depth_most ? depth : depth_most;
}

static void tell_taken(const void *block, const struct origin *origin, size_t bytes)
{
    void (*hook)(const void *, size_t, void **, unsigned, size_t) =
        RELAXED_LOAD(sampling_hooks.taken);
    struct interlude before;

    if (likely(hook == NULL)) return;
    before = hook_begins();
    hook(block, bytes, (void **)(uintptr_t)origin->return_address, origin->depth, bytes);
    hook_ends(before);
}

static void tell_given(const void *block, uint32_t number)
{
    void (*hook)(const void *, size_t) = RELAXED_LOAD(sampling_hooks.given);
    struct interlude before;

    if (likely(hook == NULL)) return;
    before = hook_begins();
    hook(block, sample_bytes(number));
    hook_ends(before);
}

/* ---- taking ---- */

/* A stack, and the room for it. */
struct stack_trace {
    struct origin origin;
    uintptr_t return_address[UNWIND_DEPTH_MAX];
};

/* The number of a new record; 0: there is none. */
static uint32_t note(const struct counting_front *counting, size_t bytes, const void *frame,
                     struct stack_trace *trace)
{
    struct sampler *sampler = counting->sampler;
    unsigned depth;

    if (!RELAXED_LOAD(sampling_active) || sampler->is_off || sampler->in_hook) return 0;
    depth = walk(sampler, frame, trace->return_address);
    trace->origin = (struct origin){ trace->return_address, depth, sampler->name };
    return sample_note(&trace->origin, bytes);
}

/* Where the number of the sample of a block stands that is in one state whether it has one or not;
 * NULL: it is in state PAGE_SAMPLED if it has. */
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
    else run_mark_sampled(&page_heap, page, number);
}

void *sampled_take(struct counting_front *counting, struct arena *arena, size_t bytes,
                   const void *frame)
{
    struct stack_trace trace;
    uint32_t number = note(counting, bytes, frame, &trace);
    struct alloc_request request = { .size = bytes, .align = 1, .arena = arena };
    void *block;

    if (number == 0) return NULL;
    block = large_lease(&request);
    if (block == NULL) {
        sample_forget(number);
        return NULL;
    }
    mark(page_at(block), number);
    tell_taken(block, &trace.origin, bytes);
    return block;
}

void sampled_begin(struct counting_front *counting, void *block, const void *frame)
{
    struct stack_trace trace;
    uint32_t page = page_at(block), number = note(counting, large_bytes(page), frame, &trace);

    if (number == 0) return;
    mark(page, number);
    tell_taken(block, &trace.origin, large_bytes(page));
}

/* ---- giving back ---- */

void sampled_put(uint32_t page)
{
    uint32_t number = sampled_pause(page);

    tell_given(page_address(page), number);
    sample_forget(number);
    large_put(page);
}

uint32_t sampled_pause(uint32_t page)
{
    uint32_t number = sampled_number(page);

    if (number == 0) return 0;
    if (number_beside_state(page) != NULL) RELAXED_STORE(*number_beside_state(page), 0);
    else run_mark_sampled(&page_heap, page, 0);
    return number;
}

void sampled_go_on(const void *block, uint32_t number, bool resized)
{
    if (number == 0) return;
    if (!resized) {
        mark(page_at(block), number);
        return;
    }
    tell_given(block, number);
    sample_forget(number);
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
    manual_visit(arena, forget, NULL);
    lock_give(&arena->lock);
}
