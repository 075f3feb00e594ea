/* windows_code.c - what code lies where in the address space, and which build of it.
 *
 * A module's pages of code are one mapping that is executable; the walk goes over the address space
 * as the kernel tells it, and takes no lock of the loader's.
 * SPDX-License-Identifier: MIT
 */
#include "windows.h"

#include "os.h"

#include <psapi.h>

static bool is_code(const MEMORY_BASIC_INFORMATION *info)
{
    const DWORD executable =
        PAGE_EXECUTE | PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY;

    return info->State == MEM_COMMIT && info->Type == MEM_IMAGE
        && (info->Protect & executable) != 0;
}

/* The name as the kernel has it, \Device\...; in the room there is. */
static const char *path_of(const void *address, char *paths, size_t paths_bytes, size_t *used)
{
    char *path = paths + *used;
    DWORD length = 0;

    if (paths_bytes - *used > 1)
        length = K32GetMappedFileNameA(GetCurrentProcess(), (void *)(uintptr_t)address, path,
                                       (DWORD)(paths_bytes - *used - 1));
    if (length == 0) return "";
    path[length] = '\0';
    *used += length + 1;
    return path;
}

size_t os_code_read(struct os_code *code, size_t most, char *paths, size_t paths_bytes)
{
    DWORD last_error = GetLastError();
    MEMORY_BASIC_INFORMATION info;
    size_t count = 0, used = 0;
    const char *at = NULL;

    while (count < most && VirtualQuery(at, &info, sizeof info) != 0) {
        uintptr_t start = (uintptr_t)info.BaseAddress;

        if (is_code(&info))
            code[count++] = (struct os_code){
                .start = start,
                .limit = start + info.RegionSize,
                .offset = start - (uintptr_t)info.AllocationBase,
                .path = path_of(info.BaseAddress, paths, paths_bytes, &used),
            };
        at = (const char *)info.BaseAddress + info.RegionSize;
    }
    SetLastError(last_error);
    return count;
}
