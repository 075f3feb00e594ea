/* meta.c - cuts records from the zone, and reuses those that were given back.
 * SPDX-License-Identifier: MIT
 */
#include "meta.h"

#include "../base/constants.h"
#include "commit.h"

struct meta meta;

void meta_start(struct os_range zone)
{
    lock_init(&meta.lock, LOCK_META);
    meta.zone_base = zone.base;
    meta.zone_end = zone.base + zone.bytes;
    meta.open_base = meta.zone_end;
    meta.next = meta.zone_end;
}

static bool open_down_to(char *wanted)
{
    size_t missing = (size_t)(meta.open_base - wanted);
    size_t step = max_size(META_OPEN_BYTES, (size_t)(meta.zone_end - meta.open_base) / 8);
    size_t bytes = round_up(max_size(missing, step), os_page_bytes());
    size_t room = (size_t)(meta.open_base - meta.zone_base);

    if (missing > room || !commit_allows(round_up(missing, os_page_bytes()))) return false;
    bytes = commit_allows(bytes) ? min_size(bytes, room) : round_up(missing, os_page_bytes());
    if (!os_commit((struct os_range){ meta.open_base - bytes, bytes })) {
        bytes = round_up(missing, os_page_bytes());
        if (!os_commit((struct os_range){ meta.open_base - bytes, bytes })) return false;
    }
    meta.open_base -= bytes;
    return true;
}

bool meta_open_ahead(size_t bytes)
{
    char *wanted =
        meta.zone_end
        - min_size(round_up(bytes, os_page_bytes()), (size_t)(meta.zone_end - meta.zone_base));
    bool open;

    lock_take(&meta.lock);
    open = wanted >= meta.open_base || open_down_to(wanted);
    lock_give(&meta.lock);
    return open;
}

static void *cut_record(size_t bytes)
{
    char *record = meta.next - bytes;

    if (is_aligned(bytes, os_page_bytes()))
        record = (char *)round_down((uintptr_t)record, os_page_bytes());
    if ((size_t)(record - meta.zone_base) < meta.held_back_bytes || !commit_allows(bytes))
        return NULL;
    if (record - meta.held_back_bytes < meta.open_base
        && !open_down_to(record - meta.held_back_bytes))
        return NULL;
    meta.next = record;
    return record;
}

bool meta_hold_back(size_t bytes)
{
    char *wanted;
    bool open;

    lock_take(&meta.lock);
    open = bytes <= (size_t)(meta.next - meta.zone_base);
    wanted = (char *)round_down((uintptr_t)meta.next - (open ? bytes : 0), os_page_bytes());
    if (open) open = wanted >= meta.open_base || open_down_to(wanted);
    if (open && bytes != 0)
        open = os_touch((struct os_range){
            wanted,
            (size_t)(round_up((uintptr_t)meta.next, os_page_bytes()) - (uintptr_t)wanted) });
    if (open) meta.held_back_bytes = bytes;
    lock_give(&meta.lock);
    return open;
}

/* A list of given records runs through their first words. */
static void *reuse_record(size_t units)
{
    void *record = meta.given[units];

    if (record == NULL) return NULL;
    meta.given[units] = *(void **)record;
    __builtin_memset(record, 0, units * META_UNIT_BYTES);
    return record;
}

void *meta_take(size_t bytes)
{
    size_t units = round_up(bytes, META_UNIT_BYTES) / META_UNIT_BYTES;
    void *record;

    check(bytes > 0 && bytes <= META_RECORD_BYTES_MAX);
    lock_take(&meta.lock);
    record = reuse_record(units);
    if (record == NULL) record = cut_record(units * META_UNIT_BYTES);
    if (record != NULL)
        RELAXED_STORE(commit.record_bytes, commit.record_bytes + units * META_UNIT_BYTES);
    lock_give(&meta.lock);
    return record;
}

void meta_give(void *record, size_t bytes)
{
    size_t units = round_up(bytes, META_UNIT_BYTES) / META_UNIT_BYTES;

    lock_take(&meta.lock);
    *(void **)record = meta.given[units];
    meta.given[units] = record;
    RELAXED_STORE(commit.record_bytes, commit.record_bytes - units * META_UNIT_BYTES);
    lock_give(&meta.lock);
}
