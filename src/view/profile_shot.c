/* profile_shot.c - copying the samples, and finding what code lies where.
 * SPDX-License-Identifier: MIT
 */
#include "profile_shot.h"

#include "../cache/meter.h"
#include "../guard/sample.h"

/* Sites that may be added while the memory is got. */
enum { SITES_SPARE = 256 };

static void copy_site(const struct site *site, void *context)
{
    struct shot *shot = context;
    uintptr_t *address = shot->address + shot->address_count;

    if (site->taken == 0 || shot->site_count == shot->site_room
        || shot->address_room - shot->address_count < site->depth)
        return;
    __builtin_memcpy(address, site->return_address, site->depth * sizeof *address);
    shot->address_count += site->depth;
    shot->site[shot->site_count++] = (struct shot_site){
        site->live, site->taken, site->bytes, address, site->depth, site->name,
    };
}

/* ---- mappings ---- */

size_t shot_mapping_of(const struct shot *shot, uintptr_t address)
{
    size_t low = 0, high = shot->mapping_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (address >= shot->mapping[middle].limit) low = middle + 1;
        else high = middle;
    }
    if (low < shot->mapping_count && address >= shot->mapping[low].start) return low;
    return shot->mapping_count;
}

/* Garbage at the end of a stack, where code without frame pointers misled the walk, points to no code. */
static void cut_stacks(struct shot *shot)
{
    if (shot->mapping_count == 0 || shot->mapping_count == SHOT_MAPPINGS_MAX) return;
    for (size_t i = 0; i < shot->site_count; i++) {
        struct shot_site *site = &shot->site[i];
        uint32_t depth = 0;

        while (depth < site->depth
               && shot_mapping_of(shot, site->return_address[depth] - 1) < shot->mapping_count)
            depth++;
        site->depth = depth;
    }
}

/* ---- the whole ---- */

static bool get_memory(struct shot *shot)
{
    struct sample_totals totals = samples_totals();
    size_t bytes;

    shot->site_room = totals.sites + SITES_SPARE;
    shot->address_room = totals.addresses + (size_t)SITES_SPARE * UNWIND_DEPTH_MAX;
    bytes = shot->site_room * sizeof *shot->site + shot->address_room * sizeof *shot->address
          + SHOT_MAPPINGS_MAX * sizeof *shot->mapping + sizeof *shot->out + SHOT_PATHS_BYTES;
    shot->memory = os_reserve(round_up(bytes, os_page_bytes()), os_page_bytes());
    if (shot->memory.base == NULL) return false;
    if (!os_commit(shot->memory)) {
        os_release(shot->memory);
        return false;
    }
    shot->site = (struct shot_site *)shot->memory.base;
    shot->address = (uintptr_t *)(shot->site + shot->site_room);
    shot->mapping = (struct os_code *)(shot->address + shot->address_room);
    shot->out = (struct profile_out *)(shot->mapping + SHOT_MAPPINGS_MAX);
    shot->paths = (char *)(shot->out + 1);
    return true;
}

bool shot_take(struct shot *shot)
{
    *shot = (struct shot){ .period = meter_period() };
    if (!get_memory(shot)) return false;
    if (!samples_visit(copy_site, shot)) {
        shot_give(shot);
        return false;
    }
    shot->mapping_count =
        os_code_read(shot->mapping, SHOT_MAPPINGS_MAX, shot->paths, SHOT_PATHS_BYTES);
    cut_stacks(shot);
    return true;
}

void shot_give(struct shot *shot) { os_release(shot->memory); }

double shot_weight(size_t bytes) { return 1 / meter_probability(bytes); }
