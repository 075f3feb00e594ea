/* region.h - the plain itself: address space that opens as a growing prefix, and the numbers of its pages.
 *
 * Pages of all regions are numbered in one sequence of 32-bit numbers. Each region takes a stretch of
 * it, with one unused number before the first region and after each, so that "the page before" and
 * "the page after" may always be asked for. 0 means no page. Adopted memory (adopt.h) takes its numbers
 * from the other end of the sequence; both ends are moved in region.c alone, and never meet.
 *
 *      first region                                second region (only when the first is full)
 *      |0|1 ... open ...|... reserved ...|unused|  first_page ...  next_number -> ... <- adopted_from |
 *
 * With unlimited address space the first region has 1 TiB, and when it is full there are more, up to the 16 TiB
 * that 32 bits can number. Under a limit the regions are small and come one after another.
 *
 * Region and page map are written under the lock of pages/run; a region's constants may be read by all.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGES_REGION_H
#define PRAIRIE_PAGES_REGION_H

#include "../base/limits.h"
#include "../os/os.h"

struct region {
    char *base;          /* constant once counted */
    size_t bytes;        /* constant once counted: reserved */
    uint32_t first_page; /* constant once counted */
    uint32_t open_pages; /* under the run lock */
};

struct plain {
    uint32_t page_shift;     /* constant after plain_start */
    uint32_t region_count;   /* grows under the run lock; published with release */
    uint32_t number_max;     /* constant after plain_start: the last number the map has room for */
    uint32_t page_count_max; /* constant after plain_start: no run can have more */
    /* Atomic: the same, or 0 while clean pages are not leased without asking (pages/run.h). */
    uint32_t lease_pages_max;
    size_t region_bytes_next; /* under the run lock */
    size_t reserved_bytes;    /* under the run lock: address space taken, all kinds */
    size_t open_bytes;        /* under the run lock: of all regions */
    uint32_t next_number;     /* under the run lock: no region has this number or a later one */
    size_t vast_bytes;        /* atomic, under the run lock: of vast blocks (vast.h) */
    size_t vast_count;        /* under the run lock */
    size_t vast_coming;       /* atomic, under the run lock: V2 */
    size_t space_bytes;       /* constant after plain_start: what addresses can tell apart */
    uint32_t adopted_from;    /* sinks under the run lock: adopted memory has those from here on */
    struct region region[REGION_COUNT_MAX];
};

extern PRIVATE struct plain plain;

/* Takes the refusal of huge pages for prairie's own records back. After plain_start. */
void plain_want_huge_records(void);
/* Reserves metadata zone, page map and first region. False: no memory, the next call may try again. */
bool plain_start(void);

struct page_span {
    uint32_t first, count;
}; /* count == 0: no memory */
/* Opens at least `pages` more pages, in one piece. Under the run lock. */
struct page_span plain_grow(size_t pages);
/* The first of `count` numbers that nobody had, for adopted memory, whose records can be used; a multiple of
 * ADOPT_UNIT, like `count`. 0: none are left, or no memory for records. Under the run lock. */
uint32_t plain_number_adopted(uint32_t count);

INLINE size_t page_bytes(void) { return (size_t)1 << plain.page_shift; }
INLINE size_t pages_for(size_t bytes) { return (bytes + page_bytes() - 1) >> plain.page_shift; }

INLINE bool plain_newest_is_open(void)
{
    return plain.region[plain.region_count - 1].open_pages != 0;
}

/* Could a region of so many bytes have numbers? As of a moment ago. */
bool plain_has_numbers(size_t bytes);
/* Does no region share bytes of the class map with the range? Under the run lock. */
bool plain_has_own_slots(struct os_range range);

/* Gives the last open pages of the newest region back, with the right to use them. Returns bytes; 0: the
 * kernel would not. Under the run lock; the pages are nobody's. */
size_t plain_close_tail(uint32_t first, size_t pages);

/* The page after the last open one of the newest region. Under the run lock. */
INLINE uint32_t plain_open_end(void)
{
    const struct region *newest = &plain.region[plain.region_count - 1];

    return newest->first_page + newest->open_pages;
}

/* The same as page_at, when it is not in the first region. */
uint32_t page_at_beyond_first(const void *address);

/* The number of the page that holds the address; 0 when no region does. */
INLINE uint32_t page_at(const void *address)
{
    size_t bytes = __atomic_load_n(&plain.region[0].bytes, __ATOMIC_ACQUIRE);
    size_t offset = (uintptr_t)address - (uintptr_t)plain.region[0].base;

    if (likely(offset < bytes)) return 1 + (uint32_t)(offset >> plain.page_shift);
    return page_at_beyond_first(address);
}

/* The same for addresses in open pages, whose records can be read; 0 for all others. */
uint32_t open_page_at_beyond_first(const void *address);

INLINE uint32_t open_page_at(const void *address)
{
    size_t open_pages = __atomic_load_n(&plain.region[0].open_pages, __ATOMIC_ACQUIRE);
    size_t offset = (uintptr_t)address - (uintptr_t)plain.region[0].base;

    if (likely(offset >> plain.page_shift < open_pages))
        return 1 + (uint32_t)(offset >> plain.page_shift);
    return open_page_at_beyond_first(address);
}

/* Does the address begin a page? Of an address in a page, this says whether it is that page's. */
INLINE bool is_page_start(const void *address)
{
    return ((uintptr_t)address & (page_bytes() - 1)) == 0;
}

/* The same as page_address, when it is not in the first region. */
char *page_address_beyond_first(uint32_t page);

/* `page` is a page of some region, or of adopted memory. */
INLINE char *page_address(uint32_t page)
{
    const struct region *first = &plain.region[0];

    if (unlikely(page - 1 >= first->bytes >> plain.page_shift))
        return page_address_beyond_first(page);
    return first->base + ((size_t)(page - 1) << plain.page_shift);
}

#endif
