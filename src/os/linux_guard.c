/* linux_guard.c - pages that nobody may touch, and numbers that nobody can know.
 * SPDX-License-Identifier: MIT
 */
#include "linux.h"
#include "os.h"

#include <sys/auxv.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif

/* Guards leave the mapping in one piece. A kernel that does not know them (before 6.13) gets another
 * mapping, of which a process may have some ten thousands. */
static bool guards_are_unknown; /* atomic */

static bool advise_guard(struct os_range range, int advice)
{
    return !failed(kernel(SYS_madvise, (long)range.base, (long)range.bytes, advice, 0, 0, 0));
}

bool os_guard(struct os_range range)
{
    if (!RELAXED_LOAD(guards_are_unknown)) {
        if (advise_guard(range, MADV_GUARD_INSTALL)) return true;
        /* A locked mapping takes no guard, on any kernel. */
        if (advise_guard((struct os_range){ range.base, 0 }, MADV_GUARD_INSTALL)) return false;
        RELAXED_STORE(guards_are_unknown, true);
    }
    return os_close(range);
}

bool os_unguard(struct os_range range)
{
    return RELAXED_LOAD(guards_are_unknown) ? os_commit(range)
                                            : advise_guard(range, MADV_GUARD_REMOVE);
}

/* Early in a boot the kernel has none; what the loader was given serves then. */
uint64_t os_random(void)
{
    const uint64_t *given = (const uint64_t *)getauxval(AT_RANDOM);
    uint64_t number = 0;
    const long nonblocking = 1;

    if (!failed(kernel(SYS_getrandom, (long)&number, sizeof number, nonblocking, 0, 0, 0))
        && number != 0)
        return number;
    if (given != NULL) __builtin_memcpy(&number, given + 1, sizeof number);
    return number ^ (os_now_ms() << 32) ^ (uintptr_t)&number;
}
