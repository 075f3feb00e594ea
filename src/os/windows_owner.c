/* windows_owner.c - whose a block is that is not prairie's: a heap's of Windows.
 *
 * Both C libraries of Windows take each block from a heap of the kernel's library, one to one, so
 * the heap that says it has the block is all that must be known to give it back. Asked are the heap
 * of the process and those of the C libraries. The process' other heaps are private: one may be
 * destroyed while it is asked, or its owner may use it without its lock.
 * SPDX-License-Identifier: MIT
 */
#include "windows.h"

#include "os.h"

enum { HEAPS_MAX = 4, SEARCHED_HEAPS_MAX = 128 };

static void *(*heap_of_library[HEAPS_MAX])(void); /* atomic; NULL: none */

void windows_heap_add(void *(*heap)(void))
{
    for (unsigned i = 0; i < HEAPS_MAX; i++) {
        if (RELAXED_LOAD(heap_of_library[i]) == heap) return;
        if (RELAXED_LOAD(heap_of_library[i]) != NULL) continue;
        __atomic_store_n(&heap_of_library[i], heap, __ATOMIC_RELEASE);
        return;
    }
}

/* A heap looks at the words before a block. */
static bool is_readable(const void *block)
{
    MEMORY_BASIC_INFORMATION info;
    const char *before = (const char *)block - 16;
    const DWORD writable = PAGE_READWRITE | PAGE_EXECUTE_READWRITE;

    return ((uintptr_t)block & 15) == 0 && VirtualQuery(before, &info, sizeof info) != 0
        && info.State == MEM_COMMIT && info.Type == MEM_PRIVATE && (info.Protect & writable) != 0;
}

/* NULL: nobody's. */
static HANDLE heap_of(const void *block)
{
    if (!is_readable(block)) return NULL;
    if (HeapValidate(GetProcessHeap(), 0, block)) return GetProcessHeap();
    for (unsigned i = 0; i < HEAPS_MAX; i++) {
        void *(*library)(void) = __atomic_load_n(&heap_of_library[i], __ATOMIC_ACQUIRE);
        HANDLE heap = library != NULL ? library() : NULL;

        if (heap != NULL && heap != GetProcessHeap() && HeapValidate(heap, 0, block)) return heap;
    }
    return NULL;
}

void *windows_heap_search(const void *block)
{
    HANDLE heaps[SEARCHED_HEAPS_MAX];
    DWORD count;

    if (!is_readable(block)) return NULL;
    count = GetProcessHeaps(SEARCHED_HEAPS_MAX, heaps);
    for (DWORD i = 0; i < count && i < SEARCHED_HEAPS_MAX; i++)
        if (HeapValidate(heaps[i], 0, block)) return heaps[i];
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
