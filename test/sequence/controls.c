/* controls.c - steps through the control tree: arenas, their hooks, caches, and threads.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "controls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { KB = 1024, MB = 1024 * 1024 };

/* ---- reading and writing ---- */

int number_of(const char *name, size_t bytes, void *value)
{
    size_t length = bytes;
    return mallctl(name, value, &length, NULL, 0);
}

int write_number(const char *name, size_t bytes, const void *value)
{
    return mallctl(name, NULL, NULL, (void *)(uintptr_t)value, bytes);
}

int act(const char *name) { return mallctl(name, NULL, NULL, NULL, 0); }

size_t size_of(const char *name)
{
    size_t value = 0;
    int error = number_of(name, sizeof value, &value);
    if (error != 0) violation("%s cannot be read: error %d", name, error);
    return value;
}

const char *of_arena(const char *start, unsigned index, const char *leaf)
{
    static _Thread_local char name[80];
    snprintf(name, sizeof name, "%s.%u.%s", start, index, leaf);
    return name;
}

unsigned arena_at_address(const void *address)
{
    unsigned index = 0;
    size_t length = sizeof index;
    int error = mallctl("arenas.lookup", &index, &length, (void *)&address, sizeof address);
    if (error != 0) violation("arenas.lookup of %p: error %d", address, error);
    return index;
}

struct own_arena *own_of(int arena)
{
    for (unsigned i = 0; i < ARENAS_OWN; i++)
        if (me->arena[i].is_made && (int)me->arena[i].index == arena) return &me->arena[i];
    return NULL;
}

bool is_own(int arena) { return arena >= 0 && own_of(arena) != NULL; }

bool has_reason_to_refuse(uint64_t refused_before)
{
    return world.may_refuse || world.has_space_limit || me->refused_by_hooks != refused_before;
}

/* ---- arenas ---- */

static bool takes_back(const struct host *host)
{
    const extent_hooks_t *hooks = host_hooks((struct host *)(uintptr_t)host);
    return hooks->dalloc != NULL || hooks->destroy != NULL;
}

static void step_create(struct own_arena *arena)
{
    struct host *host = chance(70) ? host_make() : NULL;
    extent_hooks_t *hooks = host != NULL ? host_hooks(host) : NULL;
    uint64_t refused = me->refused_by_hooks;
    unsigned index = 0;
    size_t length = sizeof index;

    add("arenas.create %s", host_words(host));
    int error = mallctl("arenas.create", &index, &length, host != NULL ? &hooks : NULL,
                        host != NULL ? sizeof hooks : 0);
    add(": %u, error %d", index, error);
    if (error != 0) {
        host_drop(host);
        if (error == EAGAIN && has_reason_to_refuse(refused)) return;
        violation("arenas.create: error %d", error);
    }
    if (index < world.automatic_arenas || is_own((int)index))
        violation("arenas.create gives arena %u, which there is", index);
    *arena = (struct own_arena){ .is_made = true,
                                 .index = index,
                                 .host = host,
                                 .loses_extents = host != NULL && !takes_back(host),
                                 .always_hooked = host != NULL };
}

void flush_tcaches(bool all, int arena)
{
    for (unsigned i = 0; i < TCACHES_OWN; i++) {
        struct own_tcache *tcache = &me->tcache[i];
        if (!tcache->is_made) continue;
        if (!all && tcache->arena != arena && tcache->arena != ARENA_ANY) continue;
        int error = write_number("tcache.flush", sizeof tcache->index, &tcache->index);
        if (error != 0) violation("tcache.flush of %u: error %d", tcache->index, error);
    }
}

static void step_set_hooks(struct own_arena *arena)
{
    struct host *host, *before = arena->host;
    extent_hooks_t *hooks;

    if (arena->is_shared) return;
    host = host_make();
    if (host == NULL) return;
    hooks = host_hooks(host);
    add("arena.%u.extent_hooks=%s", arena->index, host_words(host));
    extent_hooks_t *old = NULL;
    size_t length = sizeof old;
    int error = mallctl(of_arena("arena", arena->index, "extent_hooks"), &old, &length, &hooks,
                        sizeof hooks);
    if (error != 0) {
        host_drop(host);
        if (error == EAGAIN && has_reason_to_refuse(0)) return;
        violation("arena.%u.extent_hooks: error %d", arena->index, error);
    }
    if (before != NULL && old != host_hooks(before))
        violation("arena.%u.extent_hooks were %p, not %p", arena->index, (void *)old,
                  (void *)host_hooks(before));
    arena->host = host;
    arena->loses_extents |= !takes_back(host);
    host_drop(before);
}

static void step_reset(struct own_arena *arena)
{
    if (arena->is_shared) return;
    add("arena.%u.reset", arena->index);
    flush_tcaches(false, (int)arena->index); /* whose hooks may take blocks of the arena */
    slots_forget(arena->index);
    int error = act(of_arena("arena", arena->index, "reset"));
    if (error != 0) violation("arena.%u.reset: error %d", arena->index, error);
}

static void step_destroy(struct own_arena *arena)
{
    const char *name = of_arena("arena", arena->index, "destroy");

    if (arena->is_shared) return;
    add("arena.%u.destroy", arena->index);
    if (me->bound == (int)arena->index) {
        int error = act(name);
        if (error != EFAULT)
            violation("arena.%u.destroy of the thread's own arena: error %d", arena->index, error);
        return;
    }
    flush_tcaches(false, (int)arena->index);
    slots_forget(arena->index);
    int error = act(name);
    if (error != 0) violation("arena.%u.destroy: error %d", arena->index, error);
    arena->is_made = false;
    for (unsigned i = 0; i < TCACHES_OWN; i++)
        if (me->tcache[i].arena == (int)arena->index) me->tcache[i].arena = ARENA_AUTOMATIC;
    uint64_t taken = 0;
    size_t used = used_now();
    error = number_of("stats.arenas.4097.small.nmalloc", sizeof taken, &taken);
    allow_figures(used);
    if (error != 0 && !(error == EAGAIN && has_reason_to_refuse(0)))
        violation("stats.arenas.4097 after an arena was destroyed: error %d", error);
    books_close(arena->index, !arena->loses_extents);
    host_drop(arena->host);
}

static unsigned any_arena_number(void)
{
    const struct own_arena *arena = &me->arena[below(ARENAS_OWN)];
    if (chance(10) && world.players == 1) return MALLCTL_ARENAS_ALL;
    if (chance(20) || !arena->is_made) return below(world.automatic_arenas);
    return arena->index;
}

static void step_purge(void)
{
    unsigned index = any_arena_number();
    const char *leaf = chance(60) ? "purge" : "decay";

    add("arena.%u.%s", index, leaf);
    int error = act(of_arena("arena", index, leaf));
    if (error != 0) violation("arena.%u.%s: error %d", index, leaf, error);
}

static void step_tune(void)
{
    static const ssize_t delays[] = { -1, 0, 0, 100, 10000 };
    ssize_t delay = delays[below(5)];
    size_t bytes = chance(50) ? 0 : log_uniform(4 * KB, 4 * MB);
    struct own_arena *arena = &me->arena[below(ARENAS_OWN)];
    int error = 0;

    if (arena->is_made && chance(30)) {
        add("arena.%u.retain_grow_limit=%zu", arena->index, bytes | 4096);
        bytes |= 4096;
        error = write_number(of_arena("arena", arena->index, "retain_grow_limit"), sizeof bytes,
                             &bytes);
    } else if (chance(60)) {
        add("dirty_decay_ms=%zd", delay);
        error = write_number("arena.0.dirty_decay_ms", sizeof delay, &delay);
    } else {
        add("oversize_threshold=%zu", bytes);
        error = write_number("arena.0.oversize_threshold", sizeof bytes, &bytes);
    }
    if (error != 0) violation("an arena cannot be tuned: error %d", error);
}

static void step_arenas(void)
{
    struct own_arena *arena = &me->arena[below(ARENAS_OWN)];
    unsigned kind = below(100);

    if (!arena->is_made) step_create(arena);
    else if (kind < 18) step_destroy(arena);
    else if (kind < 36) step_reset(arena);
    else if (kind < 50) step_set_hooks(arena);
    else if (kind < 80) step_purge();
    else step_tune();
}

/* ---- caches and threads ---- */

static void step_tcache(void)
{
    struct own_tcache *tcache = &me->tcache[below(TCACHES_OWN)];
    int error;

    if (!tcache->is_made) {
        add("tcache.create");
        error = number_of("tcache.create", sizeof tcache->index, &tcache->index);
        if (error == EFAULT && has_reason_to_refuse(0)) return;
        if (error != 0) violation("tcache.create: error %d", error);
        tcache->is_made = true;
        tcache->arena = ARENA_AUTOMATIC;
        add(" %u", tcache->index);
    } else if (chance(60)) {
        add("tcache.flush %u", tcache->index);
        flush_tcaches(true, 0);
    } else {
        add("tcache.destroy %u", tcache->index);
        error = write_number("tcache.destroy", sizeof tcache->index, &tcache->index);
        if (error != 0) violation("tcache.destroy of %u: error %d", tcache->index, error);
        tcache->is_made = false;
    }
}

static void step_bind(void)
{
    const struct own_arena *arena = &me->arena[below(ARENAS_OWN)];
    unsigned index = arena->is_made && chance(60) ? arena->index : below(world.automatic_arenas);
    unsigned now = 0;
    int before = me->bound;

    add("thread.arena=%u", index);
    /* Hooks of the arena before may be asked, and take blocks, once the thread is bound. */
    me->bound = index < world.automatic_arenas ? ARENA_AUTOMATIC : (int)index;
    int error = write_number("thread.arena", sizeof index, &index);
    if (error == EAGAIN && has_reason_to_refuse(0)) {
        me->bound = before;
        return;
    }
    if (error != 0) violation("thread.arena=%u: error %d", index, error);
    error = number_of("thread.arena", sizeof now, &now);
    if (error != 0 || now != index)
        violation("thread.arena is %u after %u was set: error %d", now, index, error);
}

static void step_enable(void)
{
    bool on = me->has_no_cache;

    add("thread.tcache.enabled=%d", on);
    int error = write_number("thread.tcache.enabled", sizeof on, &on);
    if (error == EAGAIN && has_reason_to_refuse(0)) return;
    if (error == EFAULT && (world.clears || world.junks)) return; /* what is cached is not filled */
    if (error != 0) violation("thread.tcache.enabled=%d: error %d", on, error);
    me->has_no_cache = !on;
}

static void step_count(void)
{
    uint64_t *allocated = NULL, *deallocated = NULL;

    add("thread.allocatedp");
    int error = number_of("thread.allocatedp", sizeof allocated, &allocated);
    if (error == 0) error = number_of("thread.deallocatedp", sizeof deallocated, &deallocated);
    if (error == EAGAIN && has_reason_to_refuse(0)) return;
    if (error != 0) violation("thread.allocatedp: error %d", error);
    if (me->allocated != NULL && allocated != me->allocated)
        violation("thread.allocatedp was %p and is %p", (const void *)me->allocated,
                  (void *)allocated);
    if (me->allocated != NULL) return;
    me->allocated = allocated;
    me->deallocated = deallocated;
    me->counted = 0;
    me->counted_base = (int64_t)(*allocated - *deallocated);
}

static void step_thread(void)
{
    unsigned kind = below(100);

    if (kind < 35) step_bind();
    else if (kind < 50 || (me->has_no_cache && kind < 75)) step_enable();
    else if (kind < 75) {
        add("thread.tcache.flush");
        int error = act(chance(70) ? "thread.tcache.flush" : "thread.idle");
        if (error != 0) violation("thread.tcache.flush: error %d", error);
    } else step_count();
}

void step_controls(void)
{
    unsigned kind = below(100);

    if (kind < 38) step_arenas();
    else if (kind < 53) step_tcache();
    else if (kind < 70) step_thread();
    else if (kind < 85) step_limits();
    else step_look();
    check_hard();
}

/* Nothing is left of what the player made. */
void leave_everything(void)
{
    bool on = true;
    unsigned automatic = 0;

    hosts_consent();
    check_all_blocks();
    if (me->index == 0) lift_limits();
    for (unsigned i = 0; i < SLOTS; i++)
        if (me->slot[i].block.base != NULL) slot_free(&me->slot[i]);
    (void)write_number("thread.tcache.enabled", sizeof on, &on);
    me->has_no_cache = false;
    if (write_number("thread.arena", sizeof automatic, &automatic) == 0)
        me->bound = ARENA_AUTOMATIC;
    for (unsigned i = 0; i < ARENAS_OWN; i++)
        if (me->arena[i].is_made) step_destroy(&me->arena[i]);
    for (unsigned i = 0; i < TCACHES_OWN; i++) {
        if (me->tcache[i].is_made)
            (void)write_number("tcache.destroy", sizeof me->tcache[i].index, &me->tcache[i].index);
        me->tcache[i].is_made = false;
    }
    check_totals();
}
