/* registry.c - a list of zones, and a system zone made of the C library's malloc.
 * SPDX-License-Identifier: MIT
 */
#include "registry.h"

#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ZONES_MAX = 16, LIVE_MAX = 1 << 16 };

static void fail(const char *what)
{
    fprintf(stderr, "registry: %s\n", what);
    abort();
}

/* ---- the system's zone: it knows its blocks, so that it can say which are not ---- */

static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static void *live[LIVE_MAX]; /* under live_lock: a hash table with open addresses */
static size_t live_count;    /* under live_lock */

static char gone; /* marks a place whose block is gone */

static size_t place_of(const void *block)
{
    return ((uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 48;
}

static void **find(const void *block)
{
    for (size_t i = 0, at = place_of(block); i < LIVE_MAX; i++, at = (at + 1) % LIVE_MAX) {
        if (live[at] == block) return &live[at];
        if (live[at] == NULL) return NULL;
    }
    return NULL;
}

static void *note(void *block)
{
    size_t at = place_of(block);

    if (block == NULL) return NULL;
    pthread_mutex_lock(&live_lock);
    while (live[at] != NULL && live[at] != &gone) at = (at + 1) % LIVE_MAX;
    live[at] = block;
    if (++live_count > LIVE_MAX / 2) fail("too many blocks in the system's zone");
    pthread_mutex_unlock(&live_lock);
    return block;
}

static void forget(void *block)
{
    void **at;

    pthread_mutex_lock(&live_lock);
    at = find(block);
    if (at == NULL) fail("a block that is not the system zone's");
    *at = &gone;
    live_count--;
    pthread_mutex_unlock(&live_lock);
}

size_t system_live(void) { return live_count; }

static size_t system_size(malloc_zone_t *zone, const void *block)
{
    bool found;

    (void)zone;
    pthread_mutex_lock(&live_lock);
    found = block != NULL && find(block) != NULL;
    pthread_mutex_unlock(&live_lock);
    return found ? malloc_usable_size((void *)(uintptr_t)block) : 0;
}

static void *system_malloc(malloc_zone_t *zone, size_t size)
{
    (void)zone;
    return note(malloc(size));
}

static void *system_calloc(malloc_zone_t *zone, size_t count, size_t size)
{
    (void)zone;
    return note(calloc(count, size));
}

static void system_free(malloc_zone_t *zone, void *block)
{
    (void)zone;
    if (block == NULL) return;
    forget(block);
    free(block);
}

static void *system_realloc(malloc_zone_t *zone, void *block, size_t size)
{
    void *moved = system_malloc(zone, size);
    size_t old = block != NULL ? malloc_usable_size(block) : 0;

    if (moved == NULL) return NULL;
    if (block != NULL) memcpy(moved, block, old < size ? old : size);
    system_free(zone, block);
    return moved;
}

static void system_lock(malloc_zone_t *zone)
{
    (void)zone;
    pthread_mutex_lock(&live_lock);
}

static void system_unlock(malloc_zone_t *zone)
{
    (void)zone;
    pthread_mutex_unlock(&live_lock);
}

static void nothing(malloc_zone_t *zone) { (void)zone; }

static malloc_introspection_t system_introspection = { .force_lock = system_lock,
                                                       .force_unlock = system_unlock },
                              purgeable_introspection = { .force_lock = nothing,
                                                          .force_unlock = nothing };

#define SYSTEM_FUNCTIONS                                                                        \
    .size = system_size, .malloc = system_malloc, .calloc = system_calloc, .free = system_free, \
    .realloc = system_realloc, .version = 4

malloc_zone_t system_zone = { SYSTEM_FUNCTIONS, .zone_name = "DefaultMallocZone",
                              .introspect = &system_introspection },
              purgeable_zone = { SYSTEM_FUNCTIONS, .zone_name = "DefaultPurgeableMallocZone",
                                 .introspect = &purgeable_introspection };

/* ---- the list ---- */

static malloc_zone_t *zones[ZONES_MAX] = { &system_zone };
static unsigned zone_count = 1;
static bool purgeable_made;

/* What a program gets for the default zone: one of its own, which hands on to the first. */
static malloc_zone_t default_zone = { .zone_name = "the default zone" };

malloc_zone_t *malloc_default_zone(void) { return &default_zone; }

malloc_zone_t *malloc_default_purgeable_zone(void)
{
    if (!purgeable_made) malloc_zone_register(&purgeable_zone);
    purgeable_made = true;
    return &purgeable_zone;
}

int registry_place(const malloc_zone_t *zone)
{
    for (unsigned i = 0; i < zone_count; i++)
        if (zones[i] == zone) return (int)i;
    return -1;
}

unsigned registry_count(void) { return zone_count; }

void malloc_zone_register(malloc_zone_t *zone)
{
    if (registry_place(zone) >= 0) fail("a zone is registered twice");
    if (zone_count == ZONES_MAX) fail("too many zones");
    zones[zone_count++] = zone;
}

/* The last one takes its place. */
void malloc_zone_unregister(malloc_zone_t *zone)
{
    int place = registry_place(zone);

    if (place < 0) fail("a zone is unregistered that is not registered");
    zones[place] = zones[--zone_count];
    zones[zone_count] = NULL;
}

kern_return_t malloc_get_all_zones(task_t task, memory_reader_t reader, vm_address_t **found,
                                   unsigned *count)
{
    (void)reader;
    if (task != mach_task_self()) return KERN_FAILURE;
    *found = (vm_address_t *)zones;
    *count = zone_count;
    return KERN_SUCCESS;
}

malloc_zone_t *malloc_zone_from_ptr(const void *block)
{
    for (unsigned i = 0; i < zone_count; i++)
        if (zones[i]->size(zones[i], block) != 0) return zones[i];
    return NULL;
}

size_t malloc_size(const void *block)
{
    malloc_zone_t *zone = malloc_zone_from_ptr(block);

    return zone != NULL ? zone->size(zone, block) : 0;
}

void malloc_zone_free(malloc_zone_t *zone, void *block) { zone->free(zone, block); }

void *malloc_zone_realloc(malloc_zone_t *zone, void *block, size_t size)
{
    return zone->realloc(zone, block, size);
}

size_t malloc_zone_pressure_relief(malloc_zone_t *zone, size_t goal)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < zone_count; i++)
        if ((zone == NULL || zone == zones[i]) && zones[i]->version >= 8
            && zones[i]->pressure_relief != NULL)
            bytes += zones[i]->pressure_relief(zones[i], goal);
    return bytes;
}

task_t mach_task_self(void) { return (task_t)getpid(); }

/* ---- a program ---- */

void *registry_malloc(size_t size) { return zones[0]->malloc(zones[0], size); }

void registry_free(void *block)
{
    malloc_zone_t *zone = malloc_zone_from_ptr(block);

    if (block == NULL) return;
    if (zone == NULL) fail("free of a block that is no zone's");
    zone->free(zone, block);
}

void *registry_realloc(void *block, size_t size)
{
    malloc_zone_t *zone = block != NULL ? malloc_zone_from_ptr(block) : zones[0];

    if (zone == NULL) fail("realloc of a block that is no zone's");
    return zone->realloc(zone, block, size);
}

pid_t registry_fork(void)
{
    pid_t child;

    for (unsigned i = 0; i < zone_count; i++) zones[i]->introspect->force_lock(zones[i]);
    child = fork();
    for (unsigned i = zone_count; i-- > 0;) {
        malloc_introspection_t *introspection = zones[i]->introspect;

        if (child == 0 && zones[i]->version >= 9) introspection->reinit_lock(zones[i]);
        else introspection->force_unlock(zones[i]);
    }
    return child;
}
