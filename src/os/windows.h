/* windows.h - what the files of this floor that speak to Windows share.
 *
 * Only functions of kernel32.dll and ntdll.dll are called: both are in every process before any
 * other library, and none of those used here takes memory from a C library. What may fail sets the
 * thread's last error, which a program may want to read after free(): KEEP_LAST_ERROR around it.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_OS_WINDOWS_H
#define PRAIRIE_OS_WINDOWS_H

#include "../base/attrs.h"

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef _WIN32_WINNT
#define _WIN32_WINNT 0x0A00
#endif
#include <windows.h>
#undef small /* words that it takes from everybody */
#undef near
#undef far
#undef interface

#define KEEP_LAST_ERROR(statement)         \
    do {                                   \
        DWORD last_error = GetLastError(); \
        statement;                         \
        SetLastError(last_error);          \
    } while (0)

/* A function of ntdll.dll, by which a name leads to code without a cast that compilers warn of. */
typedef void (*windows_function)(void);
windows_function windows_ntdll(const char *name);

/* Is this wine? */
bool windows_is_wine(void);

/* Reads of the reservations of os_reserve_readable (windows_map.c). False: nobody could answer
 * them. */
bool windows_map_add(char *base, size_t bytes);
void windows_map_remove(const char *base);

/* A function of a C library that says which heap it takes blocks from; NULL: none yet. It is asked
 * when a foreign block comes, and must stay callable. By one thread at a time, a few times. */
void windows_heap_add(void *(*heap)(void));
/* The heap that has this block, of all heaps of the process. For a block whose heap is neither
 * destroyed nor used by others meanwhile; NULL: nobody's. */
void *windows_heap_search(const void *block);

/* What the process will end with, which nobody can ask for when it is too late. */
void windows_note_exit_code(uint32_t code);

#endif
