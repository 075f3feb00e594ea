/* space.h - the address space that opens as a growing prefix, and the numbers of its pages.
 *
 * Pages of all regions are numbered in one sequence of 32-bit numbers. Each region takes a stretch
 * of it, with one unused number before the first region and after each, so that "the page before"
 * and "the page after" may always be asked for. 0 means no page. Foreign extents (foreign.h) take
 * their numbers from the other end of the sequence; the two ends never meet.
 *
 *      first region                                 second region, when the first is full
 *      |0|1 ... open ...|... reserved ...|unused|   first_page ...
 *      the rest of the numbers:  next_number -> ...................... <- foreign_from
 *
 * With unlimited address space the first region has 1 TiB, and when it is full there are more, up
 * to the 16 TiB that 32 bits can number. Under a limit the regions are small and come one after
 * another.
 *
 * Its lock, which comes after that of a page heap, guards regions, the open parts of both maps,
 * numbers, foreign extents and the wish for huge pages. A region's constants may be read by all.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_SPACE_SPACE_H
#define PRAIRIE_SPACE_SPACE_H

#include "../base/constants.h"
#include "../base/lock.h"
#include "../os/os.h"

struct region {
    char *base;          /* constant once counted */
    size_t bytes;        /* constant once counted: reserved */
    uint32_t first_page; /* constant once counted */
    uint32_t open_pages; /* under the lock of the address space */
};

struct space {
    uint32_t page_shift;      /* constant after space_start */
    uint32_t region_count;    /* grows under lock; published with release */
    uint32_t number_max;      /* constant after space_start: the last number the map has room for */
    uint32_t page_count_max;  /* constant after space_start: no run can have more */
    size_t region_bytes_next; /* under lock */
    size_t reserved_bytes;    /* under lock: address space taken, all kinds */
    size_t open_bytes;        /* under lock: of all regions */
    uint32_t next_number;     /* under lock: no region has this number or a later one */
    uint32_t foreign_from;    /* falls under lock: foreign extents have those from here on */
    size_t block_bytes_max;   /* constant after space_start: no block has more */
    struct lock lock;
    struct region region[REGION_COUNT_MAX];
};

extern PRIVATE struct space space;

/* Wishes for huge pages for prairie's own records, which are refused them otherwise. After
 * space_start. */
void space_want_huge_records(void);
/* Reserves metadata zone, page map and first region. False: no memory, the next call may try
 * again. */
bool space_start(void);

struct page_span {
    uint32_t first, count;
}; /* count == 0: no memory */
/* How many pages an opening of so many takes as a rule: ahead of need. */
size_t space_opening_step(size_t pages);
/* Opens at least `pages` more pages, side by side; up to a multiple of unit_pages, and no more than
 * room_bytes. Under the lock. */
struct page_span space_grow(size_t pages, size_t unit_pages, size_t room_bytes);
/* The record of page 0, which is no page's, can be read from now on; without this, from the first
 * opening on. False: no memory. Under the lock. */
bool space_open_record_0(void);
/* How many pages more the newest region could have. Takes the lock. */
size_t space_room_at_end(void);

INLINE size_t page_bytes(void) { return (size_t)1 << space.page_shift; }
INLINE size_t pages_for(size_t bytes) { return (bytes + page_bytes() - 1) >> space.page_shift; }

/* Could a region of so many bytes have numbers? As of a moment ago. */
bool space_has_numbers(size_t bytes);

/* Gives the last open pages of the newest region back, with the right to use them. False: the
 * kernel would not. Under the lock; the pages are nobody's. */
bool space_close_tail(uint32_t first, size_t pages);

/* The page after the last open one of the newest region; 0: none is open. As of a moment ago, when
 * another page heap may open some. */
INLINE uint32_t space_open_end(void)
{
    uint32_t count = __atomic_load_n(&space.region_count, __ATOMIC_ACQUIRE);
    uint32_t open_pages = RELAXED_LOAD(space.region[count - 1].open_pages);

    return open_pages != 0 ? space.region[count - 1].first_page + open_pages : 0;
}

/* The same as page_at, when it is in no open page of the first region. */
uint32_t page_at_beyond_first(const void *address);

/* Does an open page of the first region hold the address? *index then counts from its first
 * page. */
INLINE bool is_in_first(const void *address, size_t *index)
{
    size_t open_pages = __atomic_load_n(&space.region[0].open_pages, __ATOMIC_ACQUIRE);
    size_t offset = (uintptr_t)address - (uintptr_t)space.region[0].base;

    *index = offset >> space.page_shift;
    return *index < open_pages;
}

/* Does the first region hold the address? */
INLINE bool is_in_first_region(const void *address)
{
    return (uintptr_t)address - (uintptr_t)space.region[0].base < space.region[0].bytes;
}
/* The page that holds it then. */
INLINE uint32_t page_of_first(const void *address)
{
    size_t offset = (uintptr_t)address - (uintptr_t)space.region[0].base;

    return 1 + (uint32_t)(offset >> space.page_shift);
}

/* The number of the open page of the first region that holds the address; 0: none does. */
INLINE uint32_t page_in_first(const void *address)
{
    size_t index;

    return likely(is_in_first(address, &index)) ? 1 + (uint32_t)index : 0;
}

/* The number of the open page that holds the address, whose record can be read; 0: none does. */
INLINE uint32_t page_at(const void *address)
{
    size_t index;

    return likely(is_in_first(address, &index)) ? 1 + (uint32_t)index
                                                : page_at_beyond_first(address);
}

INLINE size_t offset_in_page(const void *address)
{
    return (uintptr_t)address & (page_bytes() - 1);
}

/* Does the address begin a page? Of an address in a page, this says whether it is that page's. */
INLINE bool is_page_start(const void *address) { return offset_in_page(address) == 0; }

/* The same as page_address, when it is not in the first region. */
char *page_address_beyond_first(uint32_t page);

/* `page` is a page of some region, or of foreign extents. */
INLINE char *page_address(uint32_t page)
{
    const struct region *first = &space.region[0];

    if (unlikely(page - 1 >= first->bytes >> space.page_shift))
        return page_address_beyond_first(page);
    return first->base + ((size_t)(page - 1) << space.page_shift);
}

INLINE struct os_range page_range(uint32_t page, size_t pages)
{
    return (struct os_range){ page_address(page), pages << space.page_shift };
}

/* How many pages lie between it and the next aligned address. */
INLINE size_t pages_to_alignment(uint32_t page, size_t align_pages)
{
    size_t at = (uintptr_t)page_address(page) >> space.page_shift;

    return (0 - at) & (align_pages - 1);
}

#endif
