/* freebsd.c - what FreeBSD has of its own.
 * SPDX-License-Identifier: MIT
 */
#include "os.h"

#include "../base/port.h"

#include <errno.h>
#include <sched.h>
#include <sys/types.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/umtx.h>
#include <time.h>

bool os_keep_from_child(struct os_range range, bool kept)
{
    int saved_errno = errno;
    bool done = minherit(range.base, range.bytes, kept ? INHERIT_ZERO : INHERIT_COPY) == 0;

    errno = saved_errno;
    return done;
}

size_t os_address_space_limit(void)
{
    struct rlimit limit = { 0, 0 };
    int saved_errno = errno;
    bool known = getrlimit(RLIMIT_AS, &limit) == 0;

    errno = saved_errno;
    return !known || limit.rlim_cur == RLIM_INFINITY ? SIZE_MAX : (size_t)limit.rlim_cur;
}

unsigned os_core_current(void)
{
    int core = sched_getcpu();

    return core < 0 ? 0 : (unsigned)core;
}

static void wait_on(const uint32_t *word, uint32_t expected, struct timespec *most)
{
    int saved_errno = errno;

    (void)_umtx_op((void *)(uintptr_t)word, UMTX_OP_WAIT_UINT_PRIVATE, expected,
                   most != NULL ? (void *)sizeof *most : NULL, most);
    errno = saved_errno;
}

void port_wait(const uint32_t *word, uint32_t expected) { wait_on(word, expected, NULL); }

void port_wake(uint32_t *word, int count)
{
    int saved_errno = errno;

    (void)_umtx_op(word, UMTX_OP_WAKE_PRIVATE, (unsigned long)count, NULL, NULL);
    errno = saved_errno;
}

void os_sleep(const uint32_t *word, uint32_t expected, uint64_t duration_ms)
{
    struct timespec span = { .tv_sec = (time_t)(duration_ms / 1000),
                             .tv_nsec = (long)(duration_ms % 1000) * 1000000 };

    wait_on(word, expected, &span);
}
