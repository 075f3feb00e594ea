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

/* qemu's user emulation says yes to whatever is advised, and does nothing: then the pages that
 * should be closed would be read and written as before. What says yes to nonsense has no guards. */
static bool says_yes_to_all(struct os_range range)
{
    enum { UNKNOWN, NO, YES, NONSENSE = 0x7fffffff };
    static unsigned answer; /* atomic */

    if (unlikely(RELAXED_LOAD(answer) == UNKNOWN))
        RELAXED_STORE(answer, linux_advise(range, NONSENSE) ? YES : NO);
    return RELAXED_LOAD(answer) == YES;
}

/* Guards leave the mapping in one piece. A kernel that does not know them (before 6.13) has none:
 * closed mappings instead would be thousands, and a process may have some 65,000. A locked mapping
 * takes none; the part before it may have got some. */
bool os_guard(struct os_range range)
{
    if (says_yes_to_all(range)) return false;
    if (linux_advise(range, MADV_GUARD_INSTALL)) return true;
    (void)linux_advise(range, MADV_GUARD_REMOVE);
    return false;
}

/* Fresh pages have no guards either. */
bool os_unguard(struct os_range range)
{
    return linux_advise(range, MADV_GUARD_REMOVE)
        || !failed(kernel_map(range.base, range.bytes, PROT_READ | PROT_WRITE, MAP_FIXED));
}
bool os_fence(struct os_range range) { return os_guard(range); }
bool os_unfence(struct os_range range) { return os_unguard(range); }

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
