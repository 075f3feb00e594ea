/* foreign.h - page numbers for memory that somebody else reserved.
 *
 * Foreign extents has numbers from the end of the sequence downward. The page heap knows nothing of
 * it: who adds it cuts it up.
 *
 * A place is a stretch of numbers and its record. It stays when its memory goes, and serves the
 * next piece of memory of about that length. The first number is an unused one, as is the one after
 * the last page.
 *
 *      address -> order, sorted by address -> place        a search that halves; thousands cost
 * what ten do number  -> record of the number rounded down to FOREIGN_UNIT -> place
 *
 * P1  `order` holds the places in use, sorted by address, and no two of them overlap
 * P2  a place in use has its number in the record of each FOREIGN_UNIT that its numbers begin in
 * P3  a place in use shares no byte of the class map with a region, so that its bytes say 0
 * Written under the page heap's lock. Looked up without it: a version counts changes of `order` and
 * of places in it, and is odd during one.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGES_FOREIGN_H
#define PRAIRIE_PAGES_FOREIGN_H

#include "page_map.h"

/* Numbers are given by so many. */
#define FOREIGN_UNIT 32u

/* The first number of `pages` pages at `base`, which is a multiple of a page; their records are
 * zero. 0: no numbers or no memory for records are left, or the memory is beyond the class map,
 * where it would be taken for some of a region (P3). Under the page heap's lock. */
uint32_t foreign_add(char *base, size_t pages);
/* The same with two numbers, one for the first page and one for all others; any number of pages. */
uint32_t foreign_add_whole(char *base, size_t pages);
/* The numbers are nobody's again. Under the page heap's lock. */
void foreign_remove(uint32_t first);

/* Of what was added as a whole: more or fewer pages, and around a move of the memory: at no
 * address, and at its new one. Under the page heap's lock. */
void foreign_resize(uint32_t first, size_t pages);
void foreign_hide(uint32_t first);
void foreign_show(uint32_t first, char *base, size_t pages);
/* Calls `visit` for each vast block (vast.h), as PAGE_LARGE. Under the page heap's lock. */
void foreign_visit_whole(void (*visit)(enum page_state state, size_t pages, void *context),
                         void *context);
/* Bytes of the piece that the page is of. */
size_t foreign_bytes(uint32_t page);
/* Does memory of the address space's own, foreign extents included, lie in there? Under the page
 * heap's lock. */
bool space_overlaps(const char *base, size_t bytes);

/* Does foreign extents share bytes of the class map with the range? Under the page heap's lock. */
bool foreign_shares_slots(struct os_range range);

/* The number of the page that holds the address; 0: it is in no foreign extent. */
uint32_t foreign_page_at(const void *address);
/* The address of an foreign page. */
char *foreign_page_address(uint32_t page);
/* Under the page heap's lock: aborts on a broken invariant. */
void foreign_check(void);

#endif
