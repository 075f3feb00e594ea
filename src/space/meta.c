/* meta.c - cuts records from the zone, and reuses those that were given back.
 * SPDX-License-Identifier: MIT
 */
#include "meta.h"

#include "../base/constants.h"
#include "commit.h"

struct meta meta;

/* So many pages that were purged are named in one page. */
#define PURGED_PER_PAGE ((os_page_bytes() - sizeof(struct purged_pages)) / sizeof(uint32_t))

void meta_start(struct os_range zone)
{
    lock_init(&meta.lock, LOCK_META);
    meta.zone_base = zone.base;
    meta.zone_end = zone.base + zone.bytes;
    meta.open_base = meta.zone_end;
    meta.next = meta.zone_end;
}

/* Opens the zone down to there, and ahead of need when that is possible. Not `may_pass`: only as
 * far as the hard limit allows. False: no memory. Under the lock. */
static bool open_down_to(char *wanted, bool may_pass)
{
    size_t room = (size_t)(meta.open_base - meta.zone_base), least, bytes;

    if (wanted >= meta.open_base) return true;
    least = round_up((size_t)(meta.open_base - wanted), os_page_bytes());
    if (least > room || (!may_pass && !commit_allows(least))) return false;
    bytes = max_size(META_OPEN_BYTES, (size_t)(meta.zone_end - meta.open_base) / 8);
    bytes = min_size(max_size(least, round_up(bytes, os_page_bytes())), room);
    if (!commit_allows(bytes)) bytes = least;
    if (!os_commit((struct os_range){ meta.open_base - bytes, bytes })) {
        bytes = least;
        if (!os_commit((struct os_range){ meta.open_base - bytes, bytes })) return false;
    }
    meta.open_base -= bytes;
    return true;
}

/* Whatever the hard limit says: it counts records once they are used, and not what is open. */
bool meta_open_ahead(size_t bytes)
{
    size_t wanted =
        min_size(round_up(bytes, os_page_bytes()), (size_t)(meta.zone_end - meta.zone_base));
    bool open;

    lock_take(&meta.lock);
    open = open_down_to(meta.zone_end - wanted, true);
    lock_give(&meta.lock);
    return open;
}

bool meta_hold_back(size_t bytes)
{
    uintptr_t base, end;
    bool held;

    lock_take(&meta.lock);
    base = round_down((uintptr_t)meta.next - bytes, os_page_bytes());
    end = round_up((uintptr_t)meta.next, os_page_bytes());
    held = bytes <= (size_t)(meta.next - meta.zone_base) && open_down_to((char *)base, false)
        && (bytes == 0 || os_touch((struct os_range){ (char *)base, end - base }));
    if (held) meta.held_back_bytes = bytes;
    lock_give(&meta.lock);
    return held;
}

/* What is held back lies below the next record, wherever that is: its last pages are made real as
 * it moves. */
static bool hold_below(char *record)
{
    uintptr_t base = round_down((uintptr_t)record - meta.held_back_bytes, os_page_bytes());
    uintptr_t end = round_down((uintptr_t)meta.next - meta.held_back_bytes, os_page_bytes());

    return meta.held_back_bytes == 0 || base == end
        || os_touch((struct os_range){ (char *)base, end - base });
}

/* NULL: no memory. Under the lock. */
static char *cut_record(size_t bytes, bool may_pass)
{
    char *record = meta.next - bytes;

    if (is_aligned(bytes, os_page_bytes()))
        record = (char *)round_down((uintptr_t)record, os_page_bytes());
    if ((size_t)(record - meta.zone_base) < meta.held_back_bytes
        || !open_down_to(record - meta.held_back_bytes, may_pass) || !hold_below(record))
        return NULL;
    meta.next = record;
    return record;
}

/* ---- unused records ---- */

/* NULL: there is none, or it cannot be opened again. Under the lock. */
static char *take_purged(void)
{
    struct purged_pages *purged = meta.purged;
    char *page;

    if (purged == NULL) return NULL;
    if (purged->count == 0) {
        meta.purged = purged->next;
        return (char *)purged;
    }
    page = meta_record(purged->number[purged->count - 1]);
    if (OS_PURGE_CLOSES && !os_commit((struct os_range){ page, os_page_bytes() })) return NULL;
    purged->count--;
    return page;
}

/* NULL: there is none. Under the lock. */
static char *take_unused_record(size_t bytes)
{
    void **list = &meta.unused[bytes / META_UNIT_BYTES];
    char *record = *list;

    if (record == NULL) return bytes == os_page_bytes() ? take_purged() : NULL;
    RELAXED_STORE(*list, *(void **)record);
    return record;
}

/* A list of unused records runs through their first words. One that is taken again counts again, so
 * that it asks as new ones do. */
static void *take_meta_record(size_t bytes, bool may_pass)
{
    char *record = NULL;
    bool is_used = false;

    check(bytes > 0 && bytes <= META_RECORD_BYTES_MAX);
    bytes = round_up(bytes, META_UNIT_BYTES);
    lock_take(&meta.lock);
    if (may_pass || commit_allows(bytes)) {
        record = take_unused_record(bytes);
        is_used = record != NULL;
        if (!is_used) record = cut_record(bytes, may_pass);
    }
    if (record != NULL) RELAXED_STORE(commit.record_bytes, commit.record_bytes + bytes);
    lock_give(&meta.lock);
    if (is_used) __builtin_memset(record, 0, bytes);
    return record;
}

void *meta_take(size_t bytes) { return take_meta_record(bytes, false); }

void *meta_take_past_limit(size_t bytes) { return take_meta_record(bytes, true); }

/* So long are rows; longer records than a quarter are taken by themselves. */
#define META_ROW_BYTES ((size_t)2048)

void meta_end_row(struct meta_row *row)
{
    if (row->bytes != 0) meta_give(row->base, row->bytes);
    row->bytes = 0;
}

static bool begin_row(struct meta_row *row)
{
    char *base = meta_take(META_ROW_BYTES);

    if (base == NULL) return false;
    meta_end_row(row);
    *row = (struct meta_row){ base, META_ROW_BYTES };
    return true;
}

void *meta_take_from_row(struct meta_row *row, size_t bytes)
{
    bytes = round_up(bytes, META_UNIT_BYTES);
    if (bytes > META_ROW_BYTES / 4 || RELAXED_LOAD(meta.unused[bytes / META_UNIT_BYTES]) != NULL
        || (bytes > row->bytes && !begin_row(row)))
        return meta_take(bytes);
    row->bytes -= (uint32_t)bytes;
    return row->base + row->bytes;
}

void meta_give(void *record, size_t bytes)
{
    bytes = round_up(bytes, META_UNIT_BYTES);
    lock_take(&meta.lock);
    *(void **)record = meta.unused[bytes / META_UNIT_BYTES];
    RELAXED_STORE(meta.unused[bytes / META_UNIT_BYTES], record);
    RELAXED_STORE(commit.record_bytes, commit.record_bytes - bytes);
    lock_give(&meta.lock);
}

/* The first of many names the others. False: there is none to purge, or the kernel refuses. Under
 * the lock. */
static bool purge_page(void)
{
    void **list = &meta.unused[os_page_bytes() / META_UNIT_BYTES], *page = *list, *next;

    if (page == NULL) return false;
    next = *(void **)page;
    if (meta.purged == NULL || meta.purged->count == PURGED_PER_PAGE) {
        struct purged_pages *names = page;

        *names = (struct purged_pages){ .next = meta.purged };
        meta.purged = names;
    } else if (os_purge((struct os_range){ page, os_page_bytes() })) {
        meta.purged->number[meta.purged->count++] = meta_number(page);
    } else {
        *(void **)page = next;
        return false;
    }
    RELAXED_STORE(*list, next);
    return true;
}

/* The lock is held for one page at a time. */
void meta_purge_pages(void)
{
    bool purged = os_page_bytes() <= META_RECORD_BYTES_MAX;

    while (purged) {
        lock_take(&meta.lock);
        purged = purge_page();
        lock_give(&meta.lock);
    }
}
