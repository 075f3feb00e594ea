/* sampling.c - what is sampled now, and calls of the program's functions that see it.
 * SPDX-License-Identifier: MIT
 */
#include "sampling.h"

#include "../cache/thread.h"
#include "../os/os.h"
#include "sample.h"

bool sampling_active;
bool sampling_polls;

static unsigned depth_max = UNWIND_DEPTH_MAX; /* constant after start-up */

/* Frees have magazines of their own from now on. */
bool sampling_start(unsigned depth)
{
    bool done;

    if (depth < UNWIND_DEPTH_MAX) depth_max = depth;
    done = threads_sample();
    sized_frees_aim();
    return done;
}

/* ---- functions of the program ---- */

union sampling_hook sampling_hooks[HOOK_COUNT] SEALED;

/* Where a thread was before a hook was called. */
struct sampling_callout {
    struct sampler *sampler;
    bool in_hook;
    struct os_callout outside;
};

struct sampler *sampler_here(void)
{
    const struct counting_front *counting = counting_of(thread_word());

    return counting != NULL ? counting->sampler : NULL;
}

static struct sampling_callout hook_begins(void)
{
    struct sampler *sampler = sampler_here();
    struct sampling_callout before = { sampler, sampler != NULL && sampler->in_hook,
                                       os_callout_begin() };

    if (sampler != NULL) sampler->in_hook = true;
    return before;
}

static void hook_ends(struct sampling_callout before)
{
    if (before.sampler != NULL) before.sampler->in_hook = before.in_hook;
    os_callout_end(before.outside);
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
    void (*hook)(void **, unsigned *, unsigned) = RELAXED_LOAD(sampling_hooks[HOOK_WALK].walk);
    struct sampling_callout before;
    unsigned depth = 0;

    if (likely(hook == NULL)) return unwind_from(frame, return_address, depth_max);
    before = hook_begins();
    sampler->frame = frame;
    hook((void **)return_address, &depth, depth_max);
    sampler->frame = NULL;
    hook_ends(before);
    return depth < depth_max ? depth : depth_max;
}

void sampling_tell_taken(const void *block, const struct origin *origin, size_t bytes)
{
    void (*hook)(const void *, size_t, void **, unsigned, size_t) =
        RELAXED_LOAD(sampling_hooks[HOOK_TAKEN].taken);
    struct sampling_callout before;

    if (likely(hook == NULL)) return;
    before = hook_begins();
    hook(block, bytes, (void **)(uintptr_t)origin->return_address, origin->depth, bytes);
    hook_ends(before);
}

void sampling_tell_given(const void *block, uint32_t number)
{
    void (*hook)(const void *, size_t) = RELAXED_LOAD(sampling_hooks[HOOK_GIVEN].given);
    struct sampling_callout before;

    if (likely(hook == NULL)) return;
    before = hook_begins();
    hook(block, sample_bytes(number));
    hook_ends(before);
}

void sampling_tell_dumped(const char *path)
{
    void (*hook)(const char *) = RELAXED_LOAD(sampling_hooks[HOOK_DUMP].dump);
    struct sampling_callout before;

    if (hook == NULL) return;
    before = hook_begins();
    hook(path);
    hook_ends(before);
}

/* ---- records ---- */

uint32_t sampling_note(const struct counting_front *counting, size_t bytes, const void *frame,
                       struct stack_trace *trace)
{
    struct sampler *sampler = counting->sampler;
    unsigned depth;

    if (!RELAXED_LOAD(sampling_active) || sampler->is_off || sampler->in_hook) return 0;
    depth = walk(sampler, frame, trace->return_address);
    trace->origin = (struct origin){ trace->return_address, depth, sampler->name };
    return sample_note(&trace->origin, bytes);
}
