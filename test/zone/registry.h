/* registry.h - plays the part of the library that keeps the zones on macOS, as documented there:
 * who is registered, whose a block is, what a fork and memory pressure call.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_TEST_ZONE_REGISTRY_H
#define PRAIRIE_TEST_ZONE_REGISTRY_H

#include <malloc/malloc.h>

#include <stdbool.h>
#include <sys/types.h>

/* The zone that was there first, and how many of its blocks live. */
extern malloc_zone_t system_zone, purgeable_zone;
size_t system_live(void);

/* What malloc and its kin do in a program: the first zone is asked for memory, the owner gets it
 * back. */
void *registry_malloc(size_t size);
void *registry_realloc(void *block, size_t size);
void registry_free(void *block);

/* fork, with the locks of all zones around it. Zones of a version before 9 are unlocked in the
 * child instead of made anew. */
pid_t registry_fork(void);

/* The place of a zone in the list; -1: it is not registered. */
int registry_place(const malloc_zone_t *zone);
unsigned registry_count(void);

#endif
