/* freebsd.c - what FreeBSD has of its own.
 * SPDX-License-Identifier: MIT
 */
#include "bsd.h"
#include "os.h"
#include "unix.h"

#include "../base/port.h"

#include <errno.h>
#include <sched.h>
#include <sys/param.h>
#include <sys/cpuset.h>
#include <sys/types.h>
#include <sys/mman.h>
#include <sys/umtx.h>
#include <time.h>

const int bsd_inherit_zero = INHERIT_ZERO, bsd_inherit_copy = INHERIT_COPY;

/* With vm.imply_prot_max, or proccontrol -m protmax, what was mapped to be read could never be
 * written, as the class map is. */
const int unix_map_rights = PROT_MAX(PROT_READ | PROT_WRITE);
const int unix_map_undumped = MAP_NOCORE;

/* In a jail there may be fewer. */
unsigned bsd_allowed_cores(void)
{
    int saved_errno = errno;
    cpuset_t cores;
    int count = 0;

    if (cpuset_getaffinity(CPU_LEVEL_WHICH, CPU_WHICH_PID, -1, sizeof cores, &cores) == 0)
        count = CPU_COUNT(&cores);
    errno = saved_errno;
    return count > 0 ? (unsigned)count : 0;
}

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
