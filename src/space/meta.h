/* meta.h - memory for prairie's own records.
 *
 * Owns the metadata zone: one stretch of address space, away from the blocks that programs write
 * to. It grows downward, so that its open part touches the open part of the page map and both are
 * one kernel mapping:
 *
 *      zone.base                              zone end == page map
 *      | reserved .............| open records | open map |............ reserved |
 *
 * Records are whole 64-byte units and never move; a record's number counts units back from the end
 * of the zone, fits 32 bits and is never 0. One that was given back is reused for records of the
 * same size only. Those of one page may be purged meanwhile. Its lock is the innermost one.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_SPACE_META_H
#define PRAIRIE_SPACE_META_H

#include "../base/lock.h"
#include "../base/units.h"
#include "../os/os.h"

#define META_UNIT_BYTES ((size_t)64)
#define META_RECORD_BYTES_MAX ((size_t)8192)

/* A page of records that was given back, and names others that were purged. */
struct purged_pages {
    struct purged_pages *next;
    size_t count;
    uint32_t number[];
};

struct meta {
    struct lock lock;
    char *zone_base; /* constant after meta_start */
    char *zone_end;  /* constant after meta_start */
    char *open_base; /* under lock */
    char *next;      /* under lock: records lie at and above it */
    /* Under lock: those that were given back, lists by units. */
    void *unused[META_RECORD_BYTES_MAX / META_UNIT_BYTES + 1];
    struct purged_pages *purged; /* under lock: of one page each, beside `unused` */
    size_t held_back_bytes;      /* under lock: open, and kept for when no more can be opened */
};

/* Room for small records of one owner, which takes the lock once for many of them. Under a lock of
 * the owner's; zero at first. */
struct meta_row {
    char *base;     /* of what is left */
    uint32_t bytes; /* so many are */
};

extern PRIVATE struct meta meta;

void meta_start(struct os_range zone);
/* A zeroed record of at least `bytes` (at most META_RECORD_BYTES_MAX), at a multiple of 64 bytes,
 * or of a page when `bytes` is a multiple of the page size. NULL: no memory. */
void *meta_take(size_t bytes);
/* The same, whatever the hard limit says: of the few records without which nobody could ask how
 * much is used when it is reached. They count as used. */
void *meta_take_past_limit(size_t bytes);
/* The same as meta_take, out of the owner's row, unless one of that size was given back. What is in
 * the row counts as used. */
void *meta_take_from_row(struct meta_row *row, size_t bytes);
/* Gives back what is left of it. */
void meta_end_row(struct meta_row *row);
void meta_give(void *record, size_t bytes);
/* Gives the pages of records of one page that are unused to the kernel. Called without a lock. */
void meta_purge_pages(void);
/* Opens the zone to at least `bytes`, used or not, so that records can still be had when memory for
 * blocks has run out. False: no memory. */
bool meta_open_ahead(size_t bytes);
/* Keeps so many open bytes out of use from now on, real ones, for when no more can be opened; 0
 * lets go of them. False: no memory, as before. */
bool meta_hold_back(size_t bytes);

INLINE uint32_t meta_number(const void *record)
{
    return (uint32_t)((size_t)(meta.zone_end - (const char *)record) / META_UNIT_BYTES);
}

INLINE void *meta_record(uint32_t number)
{
    return meta.zone_end - (size_t)number * META_UNIT_BYTES;
}

#endif
