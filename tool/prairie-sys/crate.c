/* crate.c - what build.rs compiles: the library in one file, with names that clash with nobody's.
 * SPDX-License-Identifier: MIT
 */
#include "names.h"

#include "prairie/src/prairie.c"

#if !defined(PRAIRIE_OWN_NAMES) || PRAIRIE_OWN_NAMES >= 2

/* Of the control tree, under names of our own: there may be a jemalloc in the same program. */
int prairie_mallctl(const char *name, void *old_value, size_t *old_bytes, void *new_value,
                    size_t new_bytes);

int prairie_mallctl(const char *name, void *old_value, size_t *old_bytes, void *new_value,
                    size_t new_bytes)
{
    return control_by_name(name, old_value, old_bytes, new_value, new_bytes);
}

#endif
