/* control_prof.c - samples of allocations, and what the calling thread took and gave back.
 *
 * Without prof:true the names are there, as in a jemalloc that was built to profile: what is asked
 * is answered with "off", and what would need samples is refused with ENOENT.
 * SPDX-License-Identifier: MIT
 */
#include "../view/profile.h"
#include "../view/stats.h"
#include "control_tables.h"

#include <errno.h>

enum prof_leaf {
    PROF_ACTIVE,
    PROF_DUMP,
    PROF_GDUMP,
    PROF_INTERVAL,
    PROF_LG_SAMPLE,
    PROF_PREFIX,
    PROF_RESET,
    PROF_THREAD_ACTIVE_INIT,
    PROF_HOOK_WALK,
    PROF_HOOK_DUMP,
    PROF_HOOK_TAKEN,
    PROF_HOOK_GIVEN,
};

static const struct control_row prof_rows[] = {
    { "prof.active", CONTROL_BOOL, CONTROL_BOTH, PROF_ACTIVE },
    { "prof.dump", CONTROL_RAW, CONTROL_WRITE, PROF_DUMP },
    { "prof.gdump", CONTROL_BOOL, CONTROL_BOTH, PROF_GDUMP },
    { "prof.interval", CONTROL_U64, CONTROL_READ, PROF_INTERVAL },
    { "prof.lg_sample", CONTROL_SIZE, CONTROL_READ, PROF_LG_SAMPLE },
    { "prof.prefix", CONTROL_TEXT, CONTROL_WRITE, PROF_PREFIX },
    { "prof.reset", CONTROL_RAW, CONTROL_WRITE, PROF_RESET },
    { "prof.thread_active_init", CONTROL_BOOL, CONTROL_BOTH, PROF_THREAD_ACTIVE_INIT },
    { "experimental.hooks.prof_backtrace", CONTROL_POINTER, CONTROL_BOTH, PROF_HOOK_WALK },
    { "experimental.hooks.prof_dump", CONTROL_POINTER, CONTROL_BOTH, PROF_HOOK_DUMP },
    { "experimental.hooks.prof_sample", CONTROL_POINTER, CONTROL_BOTH, PROF_HOOK_TAKEN },
    { "experimental.hooks.prof_sample_free", CONTROL_POINTER, CONTROL_BOTH, PROF_HOOK_GIVEN },
};

/* A switch that is off for good without prof:true. */
static int serve_switch(struct control_call *call, bool (*get)(void), void (*set)(bool))
{
    call->old.flag = profile_is_on() && get();
    if (!call->writes) return 0;
    if (!profile_is_on()) return call->new_value.flag ? ENOENT : 0;
    set(call->new_value.flag);
    return 0;
}

/* The caller's argument, which may be left out. Else an error number. */
static int argument_of(const struct control_call *call, void *argument, size_t bytes)
{
    if (!profile_is_on()) return ENOENT;
    if (call->old_buffer != NULL || call->old_length != NULL) return EPERM;
    if (call->new_buffer == NULL) return 0;
    if (call->new_length != bytes) return EINVAL;
    __builtin_memcpy(argument, call->new_buffer, bytes);
    return 0;
}

static int serve_dump(struct control_call *call)
{
    const char *name = NULL;
    int error = argument_of(call, &name, sizeof name);

    if (error != 0) return error;
    return profile_dump(name) ? 0 : EFAULT;
}

static int serve_reset(struct control_call *call)
{
    size_t lg_sample = profile_lg_sample();
    int error = argument_of(call, &lg_sample, sizeof lg_sample);

    if (error != 0) return error;
    profile_reset(lg_sample < 63 ? (unsigned)lg_sample : 63);
    return 0;
}

/* ---- functions of the program ---- */

/* Functions as the caller's pointers have them. */
union hook {
    void *pointer;
    void (*walk)(void **return_address, unsigned *depth, unsigned most);
    profile_dump_hook *dump;
    void (*taken)(const void *block, size_t size, void **return_address, unsigned depth,
                  size_t bytes);
    void (*given)(const void *block, size_t bytes);
};

static union hook hook_of(unsigned leaf)
{
    union hook hook = { .pointer = NULL };

    switch (leaf) {
    case PROF_HOOK_WALK:
        hook.walk = RELAXED_LOAD(sampling_hooks.walk);
        if (hook.walk == NULL) hook.walk = sampling_walk;
        return hook;
    case PROF_HOOK_DUMP: hook.dump = profile_hook_of_dumps(); return hook;
    case PROF_HOOK_TAKEN: hook.taken = RELAXED_LOAD(sampling_hooks.taken); return hook;
    default: hook.given = RELAXED_LOAD(sampling_hooks.given); return hook;
    }
}

static int serve_hook(struct control_call *call)
{
    union hook hook = { .pointer = call->new_value.pointer };
    unsigned leaf = call->row->leaf;

    if (call->old_buffer == NULL && !call->writes) return EINVAL;
    call->old.pointer = hook_of(leaf).pointer;
    if (!call->writes) return 0;
    if (!profile_is_on()) return ENOENT;
    switch (leaf) {
    case PROF_HOOK_WALK:
        if (hook.pointer == NULL) return EINVAL;
        RELAXED_STORE(sampling_hooks.walk, hook.walk != sampling_walk ? hook.walk : NULL);
        return 0;
    case PROF_HOOK_DUMP: profile_set_hook_of_dumps(hook.dump); return 0;
    case PROF_HOOK_TAKEN: RELAXED_STORE(sampling_hooks.taken, hook.taken); return 0;
    default: RELAXED_STORE(sampling_hooks.given, hook.given); return 0;
    }
}

static int serve_prof(struct control_call *call)
{
    if (call->row->leaf >= PROF_HOOK_WALK) return serve_hook(call);
    switch (call->row->leaf) {
    case PROF_ACTIVE: return serve_switch(call, profile_active, profile_set_active);
    case PROF_GDUMP: return serve_switch(call, profile_gdump, profile_set_gdump);
    case PROF_THREAD_ACTIVE_INIT:
        return serve_switch(call, profile_thread_active_init, profile_set_thread_active_init);
    case PROF_INTERVAL: call->old.u64 = profile_interval_bytes(); return 0;
    case PROF_LG_SAMPLE: call->old.size = profile_lg_sample(); return 0;
    case PROF_DUMP: return serve_dump(call);
    case PROF_RESET: return serve_reset(call);
    case PROF_PREFIX:
        if (!profile_is_on()) return ENOENT;
        if (!call->writes || call->new_value.text == NULL) return EINVAL;
        profile_set_prefix(call->new_value.text);
        return 0;
    default: return ENOENT;
    }
}

const struct control_table control_prof = { prof_rows, ARRAY_COUNT(prof_rows), NULL, serve_prof };

/* ---- the calling thread ---- */

enum thread_leaf {
    THREAD_ALLOCATED,
    THREAD_ALLOCATED_AT,
    THREAD_DEALLOCATED,
    THREAD_DEALLOCATED_AT,
    THREAD_PEAK_READ,
    THREAD_PEAK_RESET,
    THREAD_PROF_NAME,
    THREAD_PROF_ACTIVE,
};

static const struct control_row thread_rows[] = {
    { "thread.allocated", CONTROL_U64, CONTROL_READ, THREAD_ALLOCATED },
    { "thread.allocatedp", CONTROL_POINTER, CONTROL_READ, THREAD_ALLOCATED_AT },
    { "thread.deallocated", CONTROL_U64, CONTROL_READ, THREAD_DEALLOCATED },
    { "thread.deallocatedp", CONTROL_POINTER, CONTROL_READ, THREAD_DEALLOCATED_AT },
    { "thread.peak.read", CONTROL_U64, CONTROL_READ, THREAD_PEAK_READ },
    { "thread.peak.reset", CONTROL_ACTION, 0, THREAD_PEAK_RESET },
    { "thread.prof.name", CONTROL_TEXT, CONTROL_BOTH, THREAD_PROF_NAME },
    { "thread.prof.active", CONTROL_BOOL, CONTROL_BOTH, THREAD_PROF_ACTIVE },
};

static int serve_total(struct control_call *call)
{
    struct counting_front *counting = totals_count_calls();

    if (counting == NULL) return EAGAIN;
    switch (call->row->leaf) {
    case THREAD_ALLOCATED: call->old.u64 = counting->allocated; return 0;
    case THREAD_DEALLOCATED: call->old.u64 = counting->deallocated; return 0;
    case THREAD_ALLOCATED_AT: call->old.pointer = &counting->allocated; return 0;
    case THREAD_DEALLOCATED_AT: call->old.pointer = &counting->deallocated; return 0;
    case THREAD_PEAK_READ: call->old.u64 = counting_peak(counting); return 0;
    default: counting_forget_peak(counting); return 0;
    }
}

/* What jemalloc takes: ASCII that can be seen, blanks and tabs. */
static bool is_printable(const char *name)
{
    for (; *name != '\0'; name++)
        if (*name != '\t' && ((unsigned char)*name < ' ' || (unsigned char)*name >= 127))
            return false;
    return true;
}

/* Reads or writes, but not both at once. */
static int serve_thread_name(struct control_call *call)
{
    bool reads = call->old_buffer != NULL && call->old_length != NULL;

    if (!profile_is_on()) return ENOENT;
    if (reads && (call->writes || call->new_length != 0)) return EPERM;
    call->old.text = profile_thread_name();
    if (!call->writes) return 0;
    if (call->new_value.text == NULL || !is_printable(call->new_value.text)) return EINVAL;
    return profile_set_thread_name(call->new_value.text) ? 0 : EAGAIN;
}

static int serve_sampling(struct control_call *call)
{
    call->old.flag = profile_is_on() && profile_thread_active();
    if (!call->writes) return 0;
    if (!profile_is_on()) return ENOENT;
    return profile_set_thread_active(call->new_value.flag) ? 0 : EAGAIN;
}

static int serve_thread(struct control_call *call)
{
    switch (call->row->leaf) {
    case THREAD_PROF_NAME: return serve_thread_name(call);
    case THREAD_PROF_ACTIVE: return serve_sampling(call);
    default: return serve_total(call);
    }
}

const struct control_table control_thread = { thread_rows, ARRAY_COUNT(thread_rows), NULL,
                                              serve_thread };
