/* foreign.h - page numbers for memory that somebody else reserved.
 *
 * A foreign extent is a record with a stretch of numbers, from the end of the sequence downward.
 * Who adds memory has its pages cut up by a page heap (page_heap/supplied.h), or keeps it whole
 * (heap/vast.h). The foreign extent stays when its memory goes, and serves the next memory of about
 * that length. Its first number is an unused one, as is the one after the last page.
 *
 *      address -> order, sorted by address        -> foreign extent     a search that halves
 *      number  -> units, by FOREIGN_UNIT numbers  -> foreign extent
 *
 * P1  `order` holds the foreign extents in use, sorted by address, and no two of them overlap
 * P2  `units` names the foreign extent of each FOREIGN_UNIT numbers that were ever given
 * P3  a foreign extent in use shares no byte of the class map with a region: its bytes say 0
 * Written under the lock of the address space. Looked up without it: a version counts changes of
 * `order` and of foreign extents in it, and is odd during one.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_SPACE_FOREIGN_H
#define PRAIRIE_SPACE_FOREIGN_H

#include "page_map.h"

/* Numbers are given by so many. */
#define FOREIGN_UNIT 32u

struct foreign_extent {
    char *base;       /* under the lock */
    size_t pages;     /* under the lock; 0: not in use */
    size_t last;      /* under the lock: this page and those after it have one number */
    uint32_t before;  /* constant: the unused number before its first page */
    uint32_t numbers; /* constant: multiple of FOREIGN_UNIT */
    uint32_t next;    /* under the lock: an unused one of that length, by its record's number */
};

/* Of the pointer to `order` and of its count, for readers of another process. */
const void *foreign_order_address(void);
const void *foreign_count_address(void);

/* The first number of `pages` pages at `base`, which is a multiple of a page; their records are
 * zero. 0: no numbers or no memory for records are left, or the memory is beyond the class map,
 * where it would be taken for some of a region (P3), or memory with numbers is there. */
uint32_t foreign_add(char *base, size_t pages);
/* The same as a whole: two numbers, one for the first page and one for all others; any number of
 * pages. */
uint32_t foreign_add_whole(char *base, size_t pages);
/* The numbers are nobody's again. */
void foreign_remove(uint32_t page);

/* Of what was added as a whole, around a change of its length or place: at no address, and where it
 * is then. */
void foreign_hide(uint32_t page);
void foreign_show(uint32_t page, char *base, size_t pages);
/* Calls `visit` for each vast block (vast.h), as PAGE_LARGE. */
void foreign_visit_whole(void (*visit)(enum page_state state, size_t pages, void *context),
                         void *context);
/* Bytes of the foreign extent that the page is of. */
size_t foreign_bytes(uint32_t page);

/* Below, the caller holds the lock of the address space. */

/* Does memory with numbers lie in there? */
bool foreign_overlaps(const char *base, size_t bytes);
/* Does a foreign extent share bytes of the class map with the range? */
bool foreign_shares_slots(struct os_range range);
/* Aborts on a broken invariant. */
void foreign_check(void);

/* Below, without a lock. */

/* The number of the page that holds the address; 0: it is in no foreign extent. */
uint32_t foreign_page_at(const void *address);
/* The address of a foreign page. */
char *foreign_page_address(uint32_t page);

#endif
