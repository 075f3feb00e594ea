/* check.h - statements that must be true.
 *
 * check(x)    compiled in the check and audit flavours only; free of side effects.
 * require(x)  always compiled; used by the walkers, which run only when somebody asks.
 * CHECKED     true in the flavours that check, for code that only they run.
 * AUDITED     true in the audit flavour: walk everything every so many slow entries.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_BASE_CHECK_H
#define PRAIRIE_BASE_CHECK_H

#include "fatal.h"

#define CHECK_TEXT_OF(x) #x
#define CHECK_TEXT(x) CHECK_TEXT_OF(x)
#define require(condition)                                                                   \
    do {                                                                                     \
        if (unlikely(!(condition)))                                                          \
            fatal("broken invariant: " #condition " at " __FILE__ ":" CHECK_TEXT(__LINE__)); \
    } while (0)

#if defined(PRAIRIE_CHECK) && PRAIRIE_CHECK >= 1
#define CHECKED true
#define check(condition) require(condition)
#else
#define CHECKED false
#define check(condition) ((void)sizeof(condition))
#endif

#if defined(PRAIRIE_CHECK) && PRAIRIE_CHECK >= 2
#define AUDITED true
#else
#define AUDITED false
#endif

#endif
