/* profile_snapshot.h - all samples and all mappings, copied out at one moment.
 *
 * A dump takes a while, and samples go on meanwhile; so it works on a copy, in memory of its own
 * straight from the kernel. Taking one waits for nothing that a signal may have interrupted
 * (sample/sample.h).
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PROFILE_SNAPSHOT_H
#define PRAIRIE_PROFILE_SNAPSHOT_H

#include "../os/os.h"
#include "profile_out.h"

struct profile_snapshot_site {
    uint64_t live, taken; /* samples */
    size_t bytes;         /* of each block */
    const uintptr_t *return_address;
    uint32_t depth;
    uint32_t name;
};

enum { PROFILE_MAPPINGS_MAX = 2048, PROFILE_PATHS_BYTES = 128 * 1024 };

struct profile_snapshot {
    struct os_range memory;
    struct profile_snapshot_site *site;
    size_t site_count, site_room;
    uintptr_t *address; /* of all sites */
    size_t address_count, address_room;
    uintptr_t *sorted; /* room for as many again, for who sorts something */
    struct os_code *mapping;
    size_t mapping_count;
    char *paths;
    struct profile_out *out; /* room for one */
    uint64_t period;         /* that the samples were taken with */
};

/* False: no memory, or the samples are locked by whom a signal interrupted. Its memory is the
 * caller's to release. */
bool profile_snapshot_take(struct profile_snapshot *snapshot);
/* The mapping of an address, by number; mapping_count: none. */
size_t profile_snapshot_mapping_of(const struct profile_snapshot *snapshot, uintptr_t address);
/* Puts words in order, each once. Returns how many are left. */
size_t profile_snapshot_sort(uintptr_t *word, size_t count);

#endif
