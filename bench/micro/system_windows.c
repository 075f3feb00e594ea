/* system_windows.c - what the measuring program asks Windows.
 * SPDX-License-Identifier: MIT */
#define _WIN32_WINNT 0x0A00
#define WIN32_LEAN_AND_MEAN
#include "system.h"

#include <windows.h>

#include <psapi.h>

void *system_memory(size_t bytes)
{
    return VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

static uint64_t hundreds_of_ns(FILETIME time)
{
    return (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;
}

struct moment system_now(void)
{
    FILETIME made, ended, kernel, user;
    LARGE_INTEGER ticks, ticks_per_second;
    GetProcessTimes(GetCurrentProcess(), &made, &ended, &kernel, &user);
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&ticks_per_second);
    return (struct moment){
        .cpu_ns = (hundreds_of_ns(kernel) + hundreds_of_ns(user)) * 100,
        .wall_ns = (uint64_t)((double)ticks.QuadPart / (double)ticks_per_second.QuadPart * 1e9),
    };
}

static PROCESS_MEMORY_COUNTERS counters(void)
{
    PROCESS_MEMORY_COUNTERS now = { .cb = sizeof now };
    K32GetProcessMemoryInfo(GetCurrentProcess(), &now, sizeof now);
    return now;
}

long system_faults(void) { return (long)counters().PageFaultCount; }

/* wine tells VmHWM of the process here. */
long system_peak_kb(void) { return (long)(counters().PeakWorkingSetSize / 1024); }

/* The entry of the program's import table, which leads to whoever answers malloc. */
extern void *(*const __imp_malloc)(size_t bytes);

const char *system_malloc_owner(void)
{
    static char path[MAX_PATH];
    HMODULE module = NULL;
    const DWORD by_address =
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    if (!GetModuleHandleExA(by_address, (const char *)(uintptr_t)__imp_malloc, &module)
        || GetModuleFileNameA(module, path, sizeof path) == 0)
        return "?";
    for (char *at = path; *at != '\0'; at++)
        if (*at == '\\') *at = '/';
    return path;
}
