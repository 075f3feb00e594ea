/* netbsd.c - what NetBSD (10 and later) has of its own.
 * SPDX-License-Identifier: MIT
 */
#include "os.h"

#include "../base/port.h"

#include <errno.h>
#include <sys/types.h>
#include <sys/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

bool os_keep_from_child(struct os_range range, bool kept)
{
    int saved_errno = errno;
    bool done = minherit(range.base, range.bytes, kept ? MAP_INHERIT_ZERO : MAP_INHERIT_COPY) == 0;

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

/* Nobody tells; threads spread by their marks. */
unsigned os_core_current(void) { return (unsigned)(port_thread_mark() >> 12); }

static void wait_on(const uint32_t *word, uint32_t expected, const struct timespec *most)
{
    int saved_errno = errno;

    (void)syscall(SYS___futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, expected, most, NULL, 0, 0);
    errno = saved_errno;
}

void port_wait(const uint32_t *word, uint32_t expected) { wait_on(word, expected, NULL); }

void port_wake(uint32_t *word, int count)
{
    int saved_errno = errno;

    (void)syscall(SYS___futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, NULL, NULL, 0, 0);
    errno = saved_errno;
}

void os_sleep(const uint32_t *word, uint32_t expected, uint64_t duration_ms)
{
    struct timespec span = { .tv_sec = (time_t)(duration_ms / 1000),
                             .tv_nsec = (long)(duration_ms % 1000) * 1000000 };

    wait_on(word, expected, &span);
}
