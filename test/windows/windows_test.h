/* windows_test.h - what the programs of this folder share. */
/* SPDX-License-Identifier: MIT */
/*
 * Each is run by prairie-run.exe, or loads prairie.dll or contains prairie itself, and ends with 0
 * when all is as it should be. 77: this system cannot do what is tested.
 */
#ifndef PRAIRIE_TEST_WINDOWS_H
#define PRAIRIE_TEST_WINDOWS_H

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "../blackbox/hidden.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARED static __attribute__((unused))

enum { SKIPPED = 77 };

#define must(condition)                                                                        \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, "%s:%d: not so: %s (error %lu)\n", __FILE__, __LINE__, #condition, \
                    GetLastError());                                                           \
            fflush(stderr);                                                                    \
            TerminateProcess(GetCurrentProcess(), 1);                                          \
        }                                                                                      \
    } while (0)

SHARED bool is_zero(const void *base, size_t bytes)
{
    const char *at = (const char *)base;

    return bytes == 0 || (at[0] == 0 && memcmp(at, at + 1, bytes - 1) == 0);
}

/* A function of prairie.dll; NULL: it is not in the process. */
SHARED FARPROC prairie_function(const char *name)
{
    HMODULE library = GetModuleHandleW(L"prairie.dll");

    return library != NULL ? GetProcAddress(library, name) : NULL;
}

/* A size between two classes: Windows' heaps say 100 of it, prairie 112. */
SHARED bool is_served(void)
{
    void *block = hidden(malloc(100));
    bool served = block != NULL && _msize(block) == 112;

    free(block);
    return served;
}

SHARED uint64_t random_word(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Runs this very program with another argument, under whatever serves it. Returns its exit code;
 * what it wrote to the standard error is in `said`. */
SHARED DWORD run_again(const char *argument, char *said, DWORD room)
{
    char path[MAX_PATH], command[2 * MAX_PATH];
    SECURITY_ATTRIBUTES inherited = { sizeof inherited, NULL, TRUE };
    STARTUPINFOA start;
    PROCESS_INFORMATION made;
    HANDLE read_end, write_end;
    DWORD code = 0, used = 0, got = 0;
    enum { IS_INHERITED = 1 };

    must(GetModuleFileNameA(NULL, path, sizeof path) != 0);
    snprintf(command, sizeof command, "%s\"%s\" %s",
             GetModuleHandleW(L"prairie.dll") != NULL ? "prairie-run.exe " : "", path, argument);
    must(CreatePipe(&read_end, &write_end, &inherited, 0));
    must(SetHandleInformation(read_end, IS_INHERITED, 0));
    memset(&start, 0, sizeof start);
    start.cb = sizeof start;
    start.dwFlags = STARTF_USESTDHANDLES;
    start.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
    start.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
    start.hStdError = write_end;
    must(CreateProcessA(NULL, command, NULL, NULL, TRUE, 0, NULL, NULL, &start, &made));
    CloseHandle(write_end);
    while (used + 1 < room && ReadFile(read_end, said + used, room - 1 - used, &got, NULL)
           && got != 0)
        used += got;
    said[used] = '\0';
    must(WaitForSingleObject(made.hProcess, 60000) == WAIT_OBJECT_0);
    must(GetExitCodeProcess(made.hProcess, &code));
    CloseHandle(read_end);
    CloseHandle(made.hProcess);
    CloseHandle(made.hThread);
    return code;
}

#endif
