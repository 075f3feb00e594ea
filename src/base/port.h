/* port.h - what the ground floor needs from a kernel; os/ provides it.
 *
 * A lock must sleep and a fatal message must reach somebody, and both live below os/.
 * These few calls are all that goes that way; none allocates, none takes a lock.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_BASE_PORT_H
#define PRAIRIE_BASE_PORT_H

#include "attrs.h"

/* Sleeps while *word == expected; may return early. Partner of port_wake. */
void port_wait(const uint32_t *word, uint32_t expected);
/* Wakes up to `count` sleepers on word. */
void port_wake(uint32_t *word, int count);
/* What no other living thread has, and what a forking thread keeps in the child; not 0. */
uintptr_t port_thread_mark(void);
/* A clock that never goes back. */
uint64_t port_now_ns(void);
/* A clock for who asks often, in steps of 60 to 300 microseconds: it may differ by a step between
 * cores. */
uint32_t port_step(void);
/* Writes to the standard error; keeps errno, ignores failure. */
void port_write_error(const char *text, size_t length_bytes);
/* Ends the process with SIGABRT. */
NORETURN void port_abort(void);

#endif
