/* linux_guard.c - pages that nobody may touch.
 * SPDX-License-Identifier: MIT
 */
#include "linux.h"
#include "os.h"

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

static bool install(struct os_range range)
{
    return !says_yes_to_all(range) && linux_advise(range, MADV_GUARD_INSTALL);
}

/* Guards leave the mapping in one piece. A kernel that does not know them (before 6.13) closes
 * pages instead, each of which may be another two mappings; a process may have some 65,000 of
 * those. */
enum { GUARDS_UNKNOWN, GUARDS_OF_KERNEL, GUARDS_CLOSE };
static uint32_t guards; /* atomic; riscv64 exchanges no byte */

enum { CLOSED_PAGES_MAX = 512 };                   /* they still count as committed */
static size_t closed_pages_max = CLOSED_PAGES_MAX; /* atomic */
static size_t closed_pages;                        /* atomic; at most that, but for other threads */

static size_t pages_of(struct os_range range) { return range.bytes / os_page_bytes(); }

static bool protect(struct os_range range, int protection)
{
    return !failed(kernel(SYS_mprotect, (long)range.base, (long)range.bytes, protection));
}

/* The first one that learns it decides. */
static void decide_guards(uint32_t how)
{
    uint32_t unknown = GUARDS_UNKNOWN;

    (void)__atomic_compare_exchange_n(&guards, &unknown, how, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED);
}

/* After a refusal, which may have been for the mapping: a locked one takes none, and has its pages
 * kept. False: there are none, and pages are to be closed. */
static COLD bool kernel_has_guards(void)
{
    long base = kernel_map(NULL, os_page_bytes(), PROT_READ | PROT_WRITE, 0);
    struct os_range page = { (void *)base, os_page_bytes() };

    if (failed(base)) return true;
    if (install(page)) decide_guards(GUARDS_OF_KERNEL);
    else if (!says_yes_to_all(page) && linux_advise(page, MADV_DONTNEED))
        decide_guards(GUARDS_CLOSE);
    os_release(page);
    return RELAXED_LOAD(guards) != GUARDS_CLOSE;
}

/* When there is no mapping left for it, there is to be room for the program's own. */
static COLD bool close_pages(struct os_range range)
{
    size_t pages = pages_of(range);

    if (RELAXED_LOAD(closed_pages) + pages > RELAXED_LOAD(closed_pages_max)) return false;
    if (!protect(range, PROT_NONE)) {
        (void)protect(range, PROT_READ | PROT_WRITE); /* the part before it may be closed */
        RELAXED_STORE(closed_pages_max, RELAXED_LOAD(closed_pages) / 2);
        return false;
    }
    if (!linux_advise(range, MADV_DONTNEED)) { /* locked: the old contents are still there */
        (void)protect(range, PROT_READ | PROT_WRITE);
        return false;
    }
    (void)__atomic_fetch_add(&closed_pages, pages, __ATOMIC_RELAXED);
    return true;
}

bool os_fence(struct os_range range)
{
    if (install(range)) {
        if (unlikely(RELAXED_LOAD(guards) == GUARDS_UNKNOWN)) decide_guards(GUARDS_OF_KERNEL);
        return true;
    }
    (void)linux_advise(range, MADV_GUARD_REMOVE); /* the part before it may have got some */
    return false;
}

bool os_guard(struct os_range range)
{
    if (RELAXED_LOAD(guards) != GUARDS_CLOSE) {
        bool is_guarded = os_fence(range);

        if (likely(RELAXED_LOAD(guards) == GUARDS_OF_KERNEL)) return is_guarded;
        if (is_guarded) (void)os_unfence(range); /* another thread has begun to close pages */
        else if (kernel_has_guards()) return false;
    }
    return close_pages(range);
}

/* Fresh pages have no guards either. */
bool os_unfence(struct os_range range)
{
    return linux_advise(range, MADV_GUARD_REMOVE)
        || !failed(kernel_map(range.base, range.bytes, PROT_READ | PROT_WRITE, MAP_FIXED));
}

bool os_unguard(struct os_range range)
{
    if (likely(RELAXED_LOAD(guards) != GUARDS_CLOSE)) return os_unfence(range);
    if (!protect(range, PROT_READ | PROT_WRITE)) return false;
    (void)__atomic_fetch_sub(&closed_pages, pages_of(range), __ATOMIC_RELAXED);
    return true;
}
