/* adopt.h - page numbers for memory that somebody else reserved.
 *
 * Adopted memory has numbers from the end of the sequence downward. The keeper of runs knows nothing of it: who
 * adopts cuts it up.
 *
 * A place is a stretch of numbers and its record. It stays when its memory goes, and serves the next piece of
 * memory of about that length. The first number is an unused one, as is the one after the last page.
 *
 *      address -> order, sorted by address -> place        a search that halves; thousands cost what ten do
 *      number  -> record of the number rounded down to ADOPT_UNIT -> place
 *
 * P1  `order` holds the places in use, sorted by address, and no two of them overlap
 * P2  a place in use has its number in the record of each ADOPT_UNIT that its numbers begin in
 * P3  a place in use shares no byte of the class map with a region, so that its bytes say 0
 * Written under the run lock. Looked up without it: a version counts changes of `order` and of places in it, and
 * is odd during one.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGES_ADOPT_H
#define PRAIRIE_PAGES_ADOPT_H

#include "page_map.h"

/* Numbers are given by so many. */
#define ADOPT_UNIT 32u

/* The first number of `pages` pages at `base`, which is a multiple of a page; their records are zero. 0: no numbers
 * or no memory for records are left, or the memory is beyond the class map, where it would be taken for some of
 * a region (P3). Under the run lock. */
uint32_t plain_adopt(char *base, size_t pages);
/* The same with two numbers, one for the first page and one for all others; any number of pages. */
uint32_t plain_adopt_whole(char *base, size_t pages);
/* The numbers are nobody's again. Under the run lock. */
void plain_disown(uint32_t first);

/* Of what was adopted as a whole: more or fewer pages, and around a move of the memory: at no address, and at its
 * new one. Under the run lock. */
void adopted_resize(uint32_t first, size_t pages);
void adopted_hide(uint32_t first);
void adopted_show(uint32_t first, char *base, size_t pages);
/* Calls `visit` for each vast block (vast.h), as PAGE_LARGE. Under the run lock. */
void adopted_visit_whole(void (*visit)(enum page_state state, size_t pages, void *context),
                         void *context);
/* Bytes of the piece that the page is of. */
size_t adopted_bytes(uint32_t page);
/* Does memory of the plain's own, adopted memory included, lie in there? Under the run lock. */
bool plain_overlaps(const char *base, size_t bytes);

/* Does adopted memory share bytes of the class map with the range? Under the run lock. */
bool adopted_shares_slots(struct os_range range);

/* The number of the page that holds the address; 0: it is not adopted. */
uint32_t adopted_page_at(const void *address);
/* The address of an adopted page. */
char *adopted_page_address(uint32_t page);
/* Under the run lock: aborts on a broken invariant. */
void adopted_check(void);

#endif
