/* port_facts.h - what differs between kernels and must be known when the code above is compiled.
 *
 * OS_PURGE_CLOSES  pages that were purged must be committed before they are used again: the right
 *                  to use them, which a kernel that charges for it takes back, may be refused then.
 *                  So pages that open are committed by the lease that takes them, too.
 *                  A test on the fake kernel defines it by itself.
 * OS_PURGES_IN_PLACE  purging costs no right to use the pages and makes no mapping of its own, so
 *                  that it is worth a few pages in the middle of others.
 * OS_HEEDS_HUGE_WISHES  the kernel takes wishes for huge pages, and against them; nothing is kept
 *                  whole for their sake elsewhere.
 * OS_TELLS_NAPS    it can be learnt that another thread sleeps, with nothing of ours on its stack.
 * OS_SIZE_TELLS_OWNER  the system asks for the bytes of a block to learn whose it is, and 0 means
 *                  another's: no block may have none.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_OS_PORT_FACTS_H
#define PRAIRIE_OS_PORT_FACTS_H

#include "../base/attrs.h"

#ifndef OS_PURGE_CLOSES
#if defined(_WIN32)
#define OS_PURGE_CLOSES true
#else
#define OS_PURGE_CLOSES false
#endif
#endif

#if defined(__linux__)
#define OS_PURGES_IN_PLACE (!OS_PURGE_CLOSES)
#define OS_HEEDS_HUGE_WISHES (!OS_PURGE_CLOSES)
#else
#define OS_PURGES_IN_PLACE false
#define OS_HEEDS_HUGE_WISHES false
#endif

#if defined(__linux__) && defined(__x86_64__) && defined(__LP64__)
#define OS_TELLS_NAPS true
#else
#define OS_TELLS_NAPS false
#endif

#if defined(__MACH__)
#define OS_SIZE_TELLS_OWNER true
#else
#define OS_SIZE_TELLS_OWNER false
#endif

#endif
