/* windows_map.c - a reservation that reads as zeros, which Windows has not got.
 *
 * Reserved memory cannot be read, and to commit 32 GiB would be charged. But hardly anybody reads
 * where nothing was committed: the class map is asked about addresses that are not prairie's only
 * for blocks of another heap. Such a read faults, and a handler commits that one page, which then
 * answers for 16 MiB of addresses for good. The page of NULL is there from the start.
 *
 * When there is no memory for that page either, the handler gives up one of a few pages that were
 * kept for it, which makes room for one, and tries again.
 *
 * Written under no lock: once, while the process starts, and read by the handler.
 * SPDX-License-Identifier: MIT
 */
#include "windows.h"

#include "../base/constants.h"
#include "os.h"

enum { SPARE_PAGES = 16 };

static struct {
    char *base;     /* atomic; NULL: none */
    size_t bytes;   /* before base */
    char *spare;    /* constant after start: pages of no use but to be given up */
    uint32_t spent; /* atomic: how many of them are gone */
    void *handler;  /* constant after start */
} map;

static bool commit_page(char *page)
{
    return VirtualAlloc(page, os_page_bytes(), MEM_COMMIT, PAGE_READWRITE) != NULL;
}

/* What a decommitted page was charged is free for anybody, and somebody else may be faster. */
static bool commit_page_at_any_price(char *page)
{
    while (!commit_page(page)) {
        uint32_t number = __atomic_fetch_add(&map.spent, 1, __ATOMIC_RELAXED);

        if (map.spare == NULL || number >= SPARE_PAGES) return false;
        (void)VirtualFree(map.spare + number * os_page_bytes(), os_page_bytes(), MEM_DECOMMIT);
    }
    return true;
}

static LONG CALLBACK page_is_missing(EXCEPTION_POINTERS *exception)
{
    const EXCEPTION_RECORD *record = exception->ExceptionRecord;
    char *base = __atomic_load_n(&map.base, __ATOMIC_ACQUIRE);
    enum { IS_READ = 0 };
    bool mended;

    if (record->ExceptionCode != EXCEPTION_ACCESS_VIOLATION || base == NULL
        || record->NumberParameters < 2 || record->ExceptionInformation[0] != IS_READ
        || record->ExceptionInformation[1] - (uintptr_t)base >= map.bytes)
        return EXCEPTION_CONTINUE_SEARCH;
    KEEP_LAST_ERROR(mended = commit_page_at_any_price(
                        (char *)round_down(record->ExceptionInformation[1], os_page_bytes())));
    return mended ? EXCEPTION_CONTINUE_EXECUTION : EXCEPTION_CONTINUE_SEARCH;
}

/* There is one such reservation in a process. */
bool windows_map_add(char *base, size_t bytes)
{
    DWORD last_error = GetLastError();

    if (map.handler == NULL) map.handler = AddVectoredExceptionHandler(TRUE, page_is_missing);
    if (map.handler != NULL) {
        if (map.spare == NULL)
            map.spare = VirtualAlloc(NULL, SPARE_PAGES * os_page_bytes(), MEM_RESERVE | MEM_COMMIT,
                                     PAGE_READWRITE);
        (void)commit_page(base); /* of NULL */
        map.bytes = bytes;
        __atomic_store_n(&map.base, base, __ATOMIC_RELEASE);
    }
    SetLastError(last_error);
    return map.handler != NULL;
}

void windows_map_remove(const char *base)
{
    if (RELAXED_LOAD(map.base) == base) RELAXED_STORE(map.base, (char *)NULL);
}
