/* page_map.h - two linear maps: what is at an address, and what each page belongs to.
 *
 * The class map has one byte for each 4 KiB of the whole address space, whatever the page size, and
 * is all that a usual free looks at. The byte is the magazine offset of the block's class
 * (slabs/size_class.h); 0 for everything that is not a slab: NULL, large blocks, memory that is not
 * prairie's.
 * When the address space is too narrow to reserve it, the mask is 0: every look-up then finds the
 * one byte that says 0, and the unlikely branch finds the class in the page map. Addresses
 * above the highest that the kernel gives unasked share bytes with lower ones; no region shares its
 * bytes with any other memory of ours.
 *
 * The page map has one record a page of the address space:
 *
 *      run of 4 pages     | FIRST  | inside | inside |  LAST  |
 *        state              x        INSIDE   INSIDE   x
 *        run_pages          4        -        -        4
 *        slab, class_at     in every page of a slab; 0 elsewhere
 *
 * R1  the first and last page of a run carry its length and state; every page between says INSIDE
 * R2  no two neighbours are free in the same state, but where two pieces touch
 *     (page_heap/supplied.h)
 * R3  slab and class_at are set in every page of a slab, and zero in all other pages, except slab
 *     in the first page of a sampled block, of one of a manual arena, of a vast one and of one in a
 *     large cache, and in the last page of a hardened one
 * Written under the page heap's lock, except slab and class_at (under the arena's lock, while the
 * run belongs to the arena), the marks in bin_index, and what a cached or a hardened run keeps in
 * its records (by who holds it).
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_SPACE_PAGE_MAP_H
#define PRAIRIE_SPACE_PAGE_MAP_H

#include "space.h"

#define CLASS_MAP_SHIFT 12u

enum page_state {
    PAGE_INSIDE,  /* not a boundary; also: never opened */
    PAGE_USED,    /* the first page of a slab, or of a run that will be one or was; the last page of
                    anything used */
    PAGE_LARGE,   /* the first page of a large block */
    PAGE_MANUAL,  /* the same of an arena that knows its large blocks (arenas/manual.h), sampled or
                  not */
    PAGE_SAMPLED, /* the same, of a sampled block of any size; `slab` is the number of its record */
    PAGE_VAST,    /* a large block that is a mapping of its own (heap/vast.h); `slab` is as in
                  PAGE_SAMPLED, or 0 */
    PAGE_DIRTY,   /* free, with stale contents; states of free pages are pairs of dirty and clean */
    PAGE_CLEAN,   /* free, reads as zero */
    PAGE_SUPPLIED_DIRTY, /* the same of a supplied page heap (page_heap/supplied.h) */
    PAGE_SUPPLIED_CLEAN,
};
/* The lowest bit of a free page's state says whether it is clean (page_heap/run_bins.h). */
_Static_assert(PAGE_DIRTY % 2 == 0 && PAGE_CLEAN == PAGE_DIRTY + 1
                   && PAGE_SUPPLIED_DIRTY == PAGE_DIRTY + 2
                   && PAGE_SUPPLIED_CLEAN == PAGE_SUPPLIED_DIRTY + 1,
               "free states are pairs of an even number and the next one");

/* Does a large block begin here that large_pages counts? */
INLINE bool is_large_state(uint8_t state) { return state == PAGE_LARGE || state == PAGE_SAMPLED; }
/* Does any large block begin here, a manual or a vast one too? */
INLINE bool is_block_state(uint8_t state)
{
    return is_large_state(state) || state == PAGE_MANUAL || state == PAGE_VAST;
}
/* Is it free, of a shared page heap; of a supplied one? */
INLINE bool is_free_state(uint8_t state) { return state == PAGE_DIRTY || state == PAGE_CLEAN; }
INLINE bool is_supplied_free_state(uint8_t state) { return state >= PAGE_SUPPLIED_DIRTY; }

struct page {
    uint32_t run_pages; /* R1 */
    uint8_t state;      /* R1: enum page_state */
    uint8_t class_at;   /* R3 */
    /* In the first page of a free run: the bin it is in; of a used one: the number of its page heap
     * when there are several, and its marks (below). */
    uint16_t bin_index;
    union {
        struct {
            uint32_t next, previous;
        } bin;             /* in the first page of a free run */
        char *cached_next; /* in the first page of a run in a large cache: the next block there */
        struct {
            uint32_t zero; /* `slab` */
            uint32_t end;  /* the page after those that its page heap opened before; 0: none */
        } seam;            /* in a seam (page_heap/page_heap.h) */
        uint32_t slab; /* R3: number of the slab's record; in state PAGE_MANUAL of a manual_large */
    };
};

/* In bin_index of a large run that the program gave back and that lies in a large cache
 * (cache/large_cache.h). Only the thread of that cache writes the mark. */
#define PAGE_CACHED ((uint16_t)0x8000)
/* In bin_index of a large run that is hardened (heap/hardened.h). Written by who holds the
 * block. */
#define PAGE_HARDENED ((uint16_t)0x4000)
/* In bin_index of a large run whose next page is a fence (page_heap/run_fence.h). Written by who
 * holds it. */
#define PAGE_FENCED ((uint16_t)0x2000)
/* In bin_index of a large run: its block is staggered (heap/large.c), and so many usable bytes
 * shorter than its pages; and how many lines behind the start of its first page it begins. Written
 * by who holds it. */
#define PAGE_STAGGERED ((uint16_t)0x200)
#define PAGE_LINES ((uint16_t)0x1c00)
#define PAGE_LINE ((uint16_t)0x400)
_Static_assert(PAGE_HEAPS < PAGE_STAGGERED, "numbers of page heaps lie below the marks");
_Static_assert(PAGE_LINES / PAGE_LINE * LINE_BYTES < PAGE_STAGGERED, "as many bytes are to spare");

/* Of the first page of a used run: the number of its page heap. */
INLINE uint16_t page_heap_number(const struct page *record)
{
    return PAGE_HEAPS == 1 ? 0 : RELAXED_LOAD(record->bin_index) % PAGE_STAGGERED % PAGE_HEAPS;
}
/* Of a large block that may be staggered, and stays so. */
INLINE void page_begin_cached(struct page *record)
{
    RELAXED_STORE(record->bin_index, (uint16_t)(record->bin_index | PAGE_CACHED));
}
INLINE void page_end_cached(struct page *record)
{
    RELAXED_STORE(record->bin_index, (uint16_t)(record->bin_index & ~(unsigned)PAGE_CACHED));
}
/* Of one that is not, or not any more. */
INLINE void page_mark_cached(struct page *record)
{
    RELAXED_STORE(record->bin_index, (uint16_t)(PAGE_CACHED + page_heap_number(record)));
}
INLINE void page_unmark_cached(struct page *record)
{
    RELAXED_STORE(record->bin_index, page_heap_number(record));
}
INLINE bool page_is_cached(const struct page *record)
{
    return record->state == PAGE_LARGE && RELAXED_LOAD(record->bin_index) >= PAGE_CACHED;
}
/* The first page of any large block that the program holds. */
INLINE bool page_is_held_block(const struct page *record)
{
    return is_block_state(record->state) && !page_is_cached(record);
}
/* That of one of a page heap's that is not hardened, not sampled, and has no fence. */
INLINE bool page_is_held_large(const struct page *record)
{
    return record->state == PAGE_LARGE && likely(RELAXED_LOAD(record->bin_index) < PAGE_FENCED);
}
/* That of one that has a fence. A sampled one may have one too, and no hardened one. */
INLINE bool page_is_fenced(const struct page *record)
{
    return is_large_state(record->state)
        && (RELAXED_LOAD(record->bin_index) & (PAGE_CACHED | PAGE_HARDENED | PAGE_FENCED))
               == PAGE_FENCED;
}
/* Of the first page of a block that the program holds, or of a cached one: is it staggered; by how
 * many bytes it is shorter than its pages; and how far behind the start of the page it begins. */
INLINE bool page_is_staggered(const struct page *record)
{
    return (RELAXED_LOAD(record->bin_index) & PAGE_STAGGERED) != 0;
}
INLINE size_t page_spare_bytes(const struct page *record)
{
    return RELAXED_LOAD(record->bin_index) & PAGE_STAGGERED;
}
INLINE size_t marked_begin_offset(uint16_t marks)
{
    return (size_t)(marks & PAGE_LINES) / (PAGE_LINE / LINE_BYTES);
}
INLINE size_t page_begin_offset(const struct page *record)
{
    return marked_begin_offset(RELAXED_LOAD(record->bin_index));
}
/* Is it page_is_held_large, and does the block begin so many bytes behind the start of the page? */
INLINE bool page_holds_large_at(const struct page *record, size_t offset)
{
    uint16_t marks = RELAXED_LOAD(record->bin_index);

    return record->state == PAGE_LARGE && likely(marks < PAGE_FENCED)
        && likely(marked_begin_offset(marks) == offset);
}
INLINE void page_mark_staggered(struct page *record, unsigned lines)
{
    RELAXED_STORE(record->bin_index,
                  (uint16_t)(record->bin_index + PAGE_STAGGERED + lines * PAGE_LINE));
}
INLINE void page_unmark_staggered(struct page *record)
{
    RELAXED_STORE(record->bin_index,
                  (uint16_t)(record->bin_index & ~(unsigned)(PAGE_STAGGERED | PAGE_LINES)));
}
INLINE void page_mark_hardened(struct page *record)
{
    RELAXED_STORE(record->bin_index, (uint16_t)(PAGE_HARDENED + page_heap_number(record)));
}
/* That of a hardened one. */
INLINE bool page_is_held_hardened(const struct page *record)
{
    return record->state == PAGE_LARGE && RELAXED_LOAD(record->bin_index) / PAGE_HARDENED == 1;
}

struct class_map {
    const uint8_t *bytes; /* constant after start */
    uintptr_t mask;       /* constant after start */
};

extern PRIVATE struct class_map class_map;
extern PRIVATE struct page *page_map; /* constant after start */
/* What is added to each offset in the class map: 0, unless frees have magazines of their own
 * (cache/counting.h). Constant once a second thread has a cache. */
extern PRIVATE uint8_t class_map_offset;

/* Where the byte for an address is in the map. */
INLINE uintptr_t class_map_slot(const void *address)
{
    return ((uintptr_t)address >> CLASS_MAP_SHIFT) & class_map.mask;
}

INLINE uint8_t class_map_at(const void *address)
{
    return class_map.bytes[class_map_slot(address)];
}

INLINE struct page *page_record(uint32_t page) { return &page_map[page]; }
/* What pages that are taken count for: themselves, and their records. */
INLINE size_t bytes_with_records(size_t pages)
{
    return pages * (page_bytes() + sizeof(struct page));
}

/* Where the block begins whose first page this is. */
INLINE char *large_begin(uint32_t page)
{
    return page_address(page) + page_begin_offset(page_record(page));
}

/* R1. The first page is written last: in a run of one page its state is the one that stays. */
INLINE void tag_run(struct page *record, size_t pages, enum page_state first, enum page_state last)
{
    struct page *end = record + pages - 1;

    end->run_pages = (uint32_t)pages;
    end->state = (uint8_t)last;
    record->run_pages = (uint32_t)pages;
    record->state = (uint8_t)first;
}

/* Reserves the class map. */
void class_map_start(void);
/* Do two ranges of addresses share bytes of the class map? Those that wrap around its end do with
 * all. */
bool class_map_shares(struct os_range one, struct os_range other);
/* Does a region share bytes of the class map with the range? */
bool regions_share_slots(struct os_range range);
/* Makes the class map writable for an open part of the address space. False: no memory. */
bool class_map_open(const char *base, size_t bytes);
/* Writes the byte for every 4 KiB of a run. */
INLINE void class_map_set(const char *base, size_t bytes, uint8_t class_at)
{
    uint8_t *map = (uint8_t *)(uintptr_t)class_map.bytes;

    if (class_map.mask == 0) return;
    if (class_at != 0) class_at = (uint8_t)(class_at + class_map_offset);
    __builtin_memset(map + class_map_slot(base), class_at, bytes >> CLASS_MAP_SHIFT);
}
/* Bytes of address space that the class map takes. */
size_t class_map_reserved_bytes(void);
/* Bytes of both maps for so much of the address space. */
size_t maps_bytes_for(size_t space_bytes);

#endif
