/* library.c - the whole library with its zone, beside the C library's own malloc, which plays the
 * system's zone.
 * SPDX-License-Identifier: MIT
 */
#include "prairie.c"

#include "darwin/zone.c"
#include "darwin/zone_tasks.c"
