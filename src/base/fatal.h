/* fatal.h - the last words of a process: one line on stderr, then abort.
 *
 * Owns no state, takes no lock, allocates nothing: it is called when anything may be broken.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_BASE_FATAL_H
#define PRAIRIE_BASE_FATAL_H

#include "attrs.h"

/* Prints "prairie: WHAT: 0xADDRESS" and aborts. The wording of WHAT is listed in docs/errors.md. */
NORETURN COLD void fatal_address(const char *what, const void *address);
/* Prints "prairie: WHAT" and aborts. */
NORETURN COLD void fatal(const char *what);

#endif
