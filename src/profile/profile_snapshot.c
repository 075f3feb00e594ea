/* profile_snapshot.c - copying the samples, and finding what code lies where.
 * SPDX-License-Identifier: MIT
 */
#include "profile_snapshot.h"

#include "../cache/sampler.h"
#include "../sample/sample.h"

/* Sites that may be added while the memory is got. */
enum { SITES_SPARE = 256 };

static void copy_site(const struct site *site, void *context)
{
    struct profile_snapshot *snapshot = context;
    uintptr_t *address = snapshot->address + snapshot->address_count;

    if (snapshot->site_count == snapshot->site_room
        || snapshot->address_room - snapshot->address_count < site->depth)
        return;
    __builtin_memcpy(address, site->return_address, site->depth * sizeof *address);
    snapshot->address_count += site->depth;
    snapshot->site[snapshot->site_count++] = (struct profile_snapshot_site){
        site->live, site->taken, site->bytes, address, site->depth, site->name,
    };
}

/* ---- mappings ---- */

size_t profile_snapshot_mapping_of(const struct profile_snapshot *snapshot, uintptr_t address)
{
    size_t low = 0, high = snapshot->mapping_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (address >= snapshot->mapping[middle].limit) low = middle + 1;
        else high = middle;
    }
    if (low < snapshot->mapping_count && address >= snapshot->mapping[low].start) return low;
    return snapshot->mapping_count;
}

/* Garbage at the end of a stack, where code without frame pointers misled the walk, points to no
 * code. */
static void cut_stacks(struct profile_snapshot *snapshot)
{
    if (snapshot->mapping_count == 0 || snapshot->mapping_count == PROFILE_MAPPINGS_MAX) return;
    for (size_t i = 0; i < snapshot->site_count; i++) {
        struct profile_snapshot_site *site = &snapshot->site[i];
        uint32_t depth = 0;

        while (depth < site->depth
               && profile_snapshot_mapping_of(snapshot, site->return_address[depth] - 1)
                      < snapshot->mapping_count)
            depth++;
        site->depth = depth;
    }
}

/* ---- in order, each once ---- */

/* Comb sort: swaps over a gap that shrinks, until nothing is left to swap. */
static void sort_words(uintptr_t *word, size_t count)
{
    bool swapped = true;

    for (size_t gap = count; gap > 1 || swapped;) {
        gap = gap > 1 ? gap * 10 / 13 : 1;
        swapped = false;
        for (size_t at = 0; at + gap < count; at++) {
            uintptr_t larger = word[at];

            if (larger <= word[at + gap]) continue;
            word[at] = word[at + gap];
            word[at + gap] = larger;
            swapped = true;
        }
    }
}

size_t profile_snapshot_sort(uintptr_t *word, size_t count)
{
    size_t unique = 0;

    sort_words(word, count);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || word[i] != word[unique - 1]) word[unique++] = word[i];
    return unique;
}

/* ---- the whole ---- */

static bool get_memory(struct profile_snapshot *snapshot)
{
    struct sample_totals totals = samples_totals();
    size_t bytes;

    snapshot->site_room = totals.sites + SITES_SPARE;
    snapshot->address_room = totals.addresses + (size_t)SITES_SPARE * UNWIND_DEPTH_MAX;
    bytes = snapshot->site_room * sizeof *snapshot->site
          + snapshot->address_room * 2 * sizeof *snapshot->address
          + PROFILE_MAPPINGS_MAX * sizeof *snapshot->mapping + sizeof *snapshot->out
          + PROFILE_PATHS_BYTES;
    snapshot->memory = os_reserve(round_up(bytes, os_page_bytes()), os_page_bytes());
    if (snapshot->memory.base == NULL) return false;
    if (!os_commit(snapshot->memory)) {
        os_release(snapshot->memory);
        return false;
    }
    snapshot->site = (struct profile_snapshot_site *)snapshot->memory.base;
    snapshot->address = (uintptr_t *)(snapshot->site + snapshot->site_room);
    snapshot->sorted = snapshot->address + snapshot->address_room;
    snapshot->mapping = (struct os_code *)(snapshot->sorted + snapshot->address_room);
    snapshot->out = (struct profile_out *)(snapshot->mapping + PROFILE_MAPPINGS_MAX);
    snapshot->paths = (char *)(snapshot->out + 1);
    return true;
}

bool profile_snapshot_take(struct profile_snapshot *snapshot)
{
    *snapshot = (struct profile_snapshot){ .site_count = 0 };
    if (!get_memory(snapshot)) return false;
    snapshot->period = sampler_period(); /* before the samples: see profile_reset */
    if (!samples_visit(copy_site, snapshot)) {
        os_release(snapshot->memory);
        return false;
    }
    snapshot->mapping_count =
        os_code_read(snapshot->mapping, PROFILE_MAPPINGS_MAX, snapshot->paths, PROFILE_PATHS_BYTES);
    cut_stacks(snapshot);
    return true;
}
