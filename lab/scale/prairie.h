/* prairie.h - prairie under the loads: the whole library, a kernel with as many cores as wanted,
 * and what an address of the library's is.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_LAB_SCALE_PRAIRIE_H
#define PRAIRIE_LAB_SCALE_PRAIRIE_H

#include "prairie.c"

static void scale_begin(void) {}
static void *scale_take(size_t bytes) { return prairie_malloc(bytes); }
static void scale_give(void *block) { prairie_free(block); }

/* ---- the kernel, as far as it is not the real one ---- */

unsigned __wrap_os_core_count(void);
unsigned __wrap_os_core_count(void) { return cores; }
unsigned __wrap_os_core_current(void);
unsigned __wrap_os_core_current(void) { return core_here(); }
#ifdef MODELLED
/* Time is the model's, of three cycles a nanosecond, and nothing is left to chance. */
uint64_t __wrap_os_now_ms(void);
uint64_t __wrap_os_now_ms(void) { return 1 + model_cycles() / 3000000; }
uint64_t __wrap_port_now_ns(void);
uint64_t __wrap_port_now_ns(void) { return model_cycles() / 3; }
uint32_t __wrap_port_step(void);
uint32_t __wrap_port_step(void) { return (uint32_t)(__wrap_port_now_ns() / 100000); }
uint64_t __wrap_os_random(void);
uint64_t __wrap_os_random(void) { return 88172645463325252u; }
#endif
bool __wrap_os_thread_start(void *(*body)(void *));
bool __wrap_os_thread_start(void *(*body)(void *))
{
    (void)body;
    return true;
}

#ifdef MODELLED
/* ---- what an address is ---- */

static bool is_within(uintptr_t address, const void *base, size_t bytes)
{
    return address - (uintptr_t)base < bytes;
}

#define IS_IN(address, object) is_within(address, &(object), sizeof(object))

static const char *scale_place(uintptr_t address)
{
    if (IS_IN(address, page_heap)) return "page heap";
    for (uint32_t i = 0; i < space.region_count; i++)
        if (is_within(address, space.region[i].base, space.region[i].bytes)) return "blocks";
    if (is_within(address, page_map, (size_t)space_open_end() * sizeof *page_map))
        return "page map";
    if (is_within(address, class_map.bytes, class_map_reserved_bytes())) return "class map";
    EACH_ARENA (arena)
        if (IS_IN(address, *arena)) return "arena";
    for (const struct cache *cache = first_cache; cache != NULL; cache = cache->next)
        if (IS_IN(address, *cache)) return "cache";
    if (is_within(address, meta.zone_base, (size_t)((const char *)page_map - meta.zone_base)))
        return "slab records, magazines";
    return "other";
}

static const char *scale_lock(const uint32_t *word)
{
    static const struct {
        const struct lock *lock;
        const char *name;
    } single[] = { { &space.lock, "address space" }, { &meta.lock, "records" },
                   { &decay_lock, "decay" },         { &threads_lock, "threads" },
                   { &making_lock, "arenas made" },  { &limits.lock, "limits" },
                   { &reserve.lock, "reserve" },     { &guarded_lock, "guarded blocks" } };

    for (unsigned i = 0; i < page_heap_count(); i++)
        if (word == &page_heap[i].lock.state) return "page heap";
    EACH_ARENA (arena)
        if (word == &arena->lock.state) return "arena";
    for (size_t i = 0; i < sizeof single / sizeof single[0]; i++)
        if (word == &single[i].lock->state) return single[i].name;
    return NULL;
}
#endif

#endif
