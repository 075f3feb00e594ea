/* netbsd.c - what NetBSD (10 and later) has of its own.
 * SPDX-License-Identifier: MIT
 */
#include "bsd.h"
#include "os.h"
#include "unix.h"

#include "../base/port.h"

#include <errno.h>
#include <sys/types.h>
#include <sys/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

const int bsd_inherit_zero = MAP_INHERIT_ZERO, bsd_inherit_copy = MAP_INHERIT_COPY;
const int unix_map_rights = 0, unix_map_undumped = 0;

unsigned bsd_allowed_cores(void) { return 0; }

/* Nobody tells; threads spread by their marks. */
unsigned os_core_current(void) { return (unsigned)(port_thread_mark() >> 12); }

void bsd_wait_on(const uint32_t *word, uint32_t expected, struct timespec *most)
{
    int saved_errno = errno;

    (void)syscall(SYS___futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, expected, most, NULL, 0, 0);
    errno = saved_errno;
}

void port_wake(uint32_t *word, int count)
{
    int saved_errno = errno;

    (void)syscall(SYS___futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, NULL, NULL, 0, 0);
    errno = saved_errno;
}
