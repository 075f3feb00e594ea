/* windows_owner.c - whose a block is that is not prairie's: a heap's of Windows.
 *
 * Both C libraries of Windows take each block from a heap of the kernel's library, one to one, so
 * the heap that says it has the block is all that must be known to give it back.
 * SPDX-License-Identifier: MIT
 */
#include "windows.h"

#include "os.h"

enum { HEAPS_MAX = 128 };

/* A heap looks at the words before a block. */
static bool is_readable(const void *block)
{
    MEMORY_BASIC_INFORMATION info;
    const char *before = (const char *)block - 16;
    const DWORD writable = PAGE_READWRITE | PAGE_EXECUTE_READWRITE;

    return ((uintptr_t)block & 15) == 0 && VirtualQuery(before, &info, sizeof info) != 0
        && info.State == MEM_COMMIT && info.Type == MEM_PRIVATE && (info.Protect & writable) != 0;
}

/* NULL: nobody's. A heap that is destroyed meanwhile took the block along. */
static HANDLE heap_of(const void *block)
{
    HANDLE heaps[HEAPS_MAX];
    DWORD count;

    if (!is_readable(block)) return NULL;
    if (HeapValidate(GetProcessHeap(), 0, block)) return GetProcessHeap();
    count = GetProcessHeaps(HEAPS_MAX, heaps);
    for (DWORD i = 0; i < count && i < HEAPS_MAX; i++)
        if (heaps[i] != GetProcessHeap() && HeapValidate(heaps[i], 0, block)) return heaps[i];
    return NULL;
}

bool os_other_free(void *block)
{
    DWORD last_error = GetLastError();
    HANDLE heap = heap_of(block);

    if (heap != NULL) (void)HeapFree(heap, 0, block);
    SetLastError(last_error);
    return heap != NULL;
}

size_t os_other_bytes(const void *block)
{
    DWORD last_error = GetLastError();
    HANDLE heap = heap_of(block);
    size_t bytes = heap != NULL ? HeapSize(heap, 0, block) : SIZE_MAX;

    SetLastError(last_error);
    return bytes;
}
