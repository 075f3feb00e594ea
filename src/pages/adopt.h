/* adopt.h - page numbers for memory that somebody else reserved.
 *
 * Adopted memory is a region that is wholly open, beyond those of the plain's own in the array of regions. Its
 * numbers are taken from the end of the sequence downward, in whole pages of the page map, so that they never
 * meet the plain's own. The keeper of runs knows nothing of it: who adopts cuts it up.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGES_ADOPT_H
#define PRAIRIE_PAGES_ADOPT_H

#include "page_map.h"

/* The first number of `pages` pages at `base`, which is a multiple of a page; their records are zero. 0: no numbers
 * or no memory for records are left. Under the run lock. */
uint32_t plain_adopt(char *base, size_t pages);
/* The numbers are nobody's again. Under the run lock. */
void plain_disown(uint32_t first);
/* Does memory of the plain's own, adopted memory included, lie in there? Under the run lock. */
bool plain_overlaps(const char *base, size_t bytes);

#endif
