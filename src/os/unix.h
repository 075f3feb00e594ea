/* unix.h - what differs among the kernels that unix.c speaks to; the file of each defines it.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_OS_UNIX_H
#define PRAIRIE_OS_UNIX_H

#include "os.h"

#include <sys/mman.h>

/* For memory without a file, which is promised beyond what there is where the kernel lets us. */
#define UNIX_MAPPING (MAP_PRIVATE | MAP_ANON)
/* In the place of a file: none, or the tag by which the kernel's tools show the memory. */
extern const int unix_map_file;
/* Said with the protection: what it may become later, where the kernel can be set up to hold the
 * first one for that. */
extern const int unix_map_rights;
/* Leaves a mapping out of core files; 0: nothing does. */
extern const int unix_map_undumped;

char **unix_environment(void);

/* Nobody needs what is in these pages any more, and their mapping goes next. Keeps errno. */
void unix_discard(struct os_range range);
/* It did not go: they are in use again, whatever they hold. Keeps errno. */
void unix_keep(struct os_range range);

/* The last of count + 1 goes to its place in the order of addresses that the others are in. */
void unix_sort_last_in(struct os_code *code, size_t count);

#endif
