/* control_prof.c - profiles, functions of the program that see samples, and the calling thread's
 * name and switch.
 *
 * Without prof:true the names are there, as in a jemalloc that was built to profile: what is asked
 * is answered with "off", and what would need samples is refused with ENOENT.
 * SPDX-License-Identifier: MIT
 */
#include "../heap/heap.h"
#include "../profile/profile.h"
#include "../sample/sampling.h"
#include "../space/sealed.h"
#include "control_tree.h"

#include <errno.h>

int serve_switch(struct control_call *call, bool is_on, void (*set)(bool))
{
    call->old.flag = profile.on && is_on;
    if (!call->writes) return 0;
    if (!profile.on) return call->new_value.flag ? ENOENT : 0;
    set(call->new_value.flag);
    return 0;
}

/* The caller's argument, which may be left out. Else an error number. */
static int argument_of(const struct control_call *call, void *argument, size_t bytes)
{
    if (!profile.on) return ENOENT;
    if (call->old_buffer != NULL || call->old_length != NULL) return EPERM;
    if (call->new_buffer == NULL) return 0;
    if (call->new_length != bytes) return EINVAL;
    __builtin_memcpy(argument, call->new_buffer, bytes);
    return 0;
}

int serve_dump(struct control_call *call)
{
    const char *name = NULL;
    int error = argument_of(call, &name, sizeof name);

    if (error != 0) return error;
    return profile_dump(name) ? 0 : EFAULT;
}

int serve_profile_reset(struct control_call *call)
{
    size_t lg_sample = RELAXED_LOAD(profile.lg_sample);
    int error = argument_of(call, &lg_sample, sizeof lg_sample);

    if (error != 0) return error;
    profile_reset(lg_sample < 63 ? (unsigned)lg_sample : 63);
    return 0;
}

/* ---- functions of the program ---- */

/* Whoever sets one learns which was before it, and none is lost: programs chain them. */
int serve_prof_hook(struct control_call *call, enum sampling_hook_kind kind)
{
    union sampling_hook standard = { .walk = kind == HOOK_WALK ? sampling_walk : NULL };
    void *wanted = call->new_value.pointer, *hook;
    bool may_write;

    if (call->old_buffer == NULL && !call->writes) return EINVAL;
    if (call->writes && !profile.on) return ENOENT;
    if (call->writes && wanted == NULL && kind == HOOK_WALK) return EINVAL;
    lock_take(&control_lock);
    hook = RELAXED_LOAD(sampling_hooks[kind].pointer);
    may_write = call->writes && sealed_open();
    if (may_write) {
        RELAXED_STORE(sampling_hooks[kind].pointer, wanted != standard.pointer ? wanted : NULL);
        sealed_close();
    }
    lock_give(&control_lock);
    call->old.pointer = hook != NULL ? hook : standard.pointer;
    return may_write == call->writes ? 0 : EAGAIN;
}

int serve_prefix(struct control_call *call)
{
    if (!profile.on) return ENOENT;
    if (!call->writes || call->new_value.text == NULL) return EINVAL;
    switch (profile_set_prefix(call->new_value.text)) {
    case PREFIX_SET: return 0;
    case PREFIX_IN_USE: return EAGAIN;
    default: return EINVAL;
    }
}

/* ---- the calling thread ---- */

static struct sampler *my_sampler(void)
{
    return profile.on && heap_attach() != NULL ? sampler_here() : NULL;
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
int serve_thread_name(struct control_call *call)
{
    bool reads = control_is_read(call);
    struct sampler *sampler = my_sampler();
    unsigned name;

    if (!profile.on) return ENOENT;
    if (reads && (call->writes || call->new_length != 0)) return EPERM;
    call->old.text = sampler != NULL ? sample_name_text(sampler->name) : "";
    if (!call->writes) return 0;
    if (call->new_value.text == NULL || !is_printable(call->new_value.text)) return EINVAL;
    if (sampler == NULL) return EAGAIN;
    name = sample_name(call->new_value.text);
    if (name == 0 && call->new_value.text[0] != '\0') return EAGAIN;
    sampler->name = name;
    return 0;
}

int serve_thread_sampling(struct control_call *call)
{
    struct sampler *sampler = my_sampler();

    call->old.flag = sampler != NULL && !sampler->is_off;
    if (!call->writes) return 0;
    if (!profile.on) return ENOENT;
    if (sampler == NULL) return EAGAIN;
    sampler->is_off = !call->new_value.flag;
    return 0;
}
