/* library.c - the whole library with its zone, beside the C library's own malloc, which plays the
 * system's zone.
 * SPDX-License-Identifier: MIT
 */
/* The kernel's port says whose other blocks are; here that is macOS's, which asks all zones. */
#pragma weak os_other_free
#pragma weak os_other_bytes

#include "prairie.c"

#include "darwin/zone.c"
#include "darwin/zone_tasks.c"
