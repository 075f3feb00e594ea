/* freebsd.c - what FreeBSD has of its own.
 * SPDX-License-Identifier: MIT
 */
#include "bsd.h"
#include "os.h"

#include "../base/port.h"

#include <errno.h>
#include <sched.h>
#include <sys/types.h>
#include <sys/mman.h>
#include <sys/umtx.h>
#include <time.h>

const int bsd_inherit_zero = INHERIT_ZERO, bsd_inherit_copy = INHERIT_COPY;

unsigned os_core_current(void)
{
    int core = sched_getcpu();

    return core < 0 ? 0 : (unsigned)core;
}

void bsd_wait_on(const uint32_t *word, uint32_t expected, struct timespec *most)
{
    int saved_errno = errno;

    (void)_umtx_op((void *)(uintptr_t)word, UMTX_OP_WAIT_UINT_PRIVATE, expected,
                   most != NULL ? (void *)sizeof *most : NULL, most);
    errno = saved_errno;
}

void port_wake(uint32_t *word, int count)
{
    int saved_errno = errno;

    (void)_umtx_op(word, UMTX_OP_WAKE_PRIVATE, (unsigned long)count, NULL, NULL);
    errno = saved_errno;
}
