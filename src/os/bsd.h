/* bsd.h - what differs among the BSDs; the file of each defines it.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_OS_BSD_H
#define PRAIRIE_OS_BSD_H

#include "../base/attrs.h"

#include <time.h>

/* What minherit calls pages that read as zero in a child, and pages that are copied. */
extern const int bsd_inherit_zero, bsd_inherit_copy;

/* That this process may run on, where that may be fewer than there are; 0: nobody tells. Keeps
 * errno. */
unsigned bsd_allowed_cores(void);

/* Sleeps while *word == expected, at most so long; NULL: as long as nobody wakes. Keeps errno. */
void bsd_wait_on(const uint32_t *word, uint32_t expected, struct timespec *most);

#endif
