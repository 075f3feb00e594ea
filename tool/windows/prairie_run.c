/* prairie_run.c - prairie-run.exe PROGRAM [ARGUMENT...]: starts a program whose memory prairie
 * serves, and ends with its exit code.
 *
 * The program is made without running, is made to load the prairie.dll that lies beside this file,
 * and is let go. What loads the library is a second thread in it: Windows starts a process with
 * whatever thread runs first, so the libraries that the program is linked with have come then, and
 * its own first instruction has not.
 * SPDX-License-Identifier: MIT
 */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <psapi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

/* As env and its kind: it is the starting that failed, not the program. */
enum { CANNOT_START = 126, NO_SUCH_PROGRAM = 127 };

static void fail(int code, const wchar_t *what, const wchar_t *name)
{
    fwprintf(stderr, L"prairie-run: %ls: %ls (error %lu)\n", what, name, GetLastError());
    exit(code);
}

/* The command line behind our own name, as it was written: quotes and all. */
static wchar_t *rest_of_command_line(void)
{
    wchar_t *at = GetCommandLineW();
    BOOL quoted = FALSE;

    for (; *at != L'\0' && (quoted || (*at != L' ' && *at != L'\t')); at++)
        if (*at == L'"') quoted = !quoted;
    while (*at == L' ' || *at == L'\t') at++;
    return at;
}

static void find_library(wchar_t *path, DWORD room)
{
    DWORD length = GetModuleFileNameW(NULL, path, room);
    wchar_t *name = wcsrchr(path, L'\\');

    if (length == 0 || length == room || name == NULL || (name + 1 - path) + 12 > (long)room)
        fail(CANNOT_START, L"no path to", L"prairie.dll");
    wcscpy(name + 1, L"prairie.dll");
    if (GetFileAttributesW(path) == INVALID_FILE_ATTRIBUTES)
        fail(CANNOT_START, L"there is no", path);
}

static BOOL is_loaded(HANDLE process, const wchar_t *path)
{
    static wchar_t name[32768];
    HMODULE modules[1024];
    DWORD bytes = 0;
    BOOL found = FALSE;

    if (!K32EnumProcessModules(process, modules, sizeof modules, &bytes)) return FALSE;
    if (bytes > sizeof modules) bytes = sizeof modules;
    for (size_t i = 0; i < bytes / sizeof modules[0] && !found; i++)
        found =
            K32GetModuleFileNameExW(process, modules[i], name, sizeof name / sizeof name[0]) != 0
            && _wcsicmp(name, path) == 0;
    return found;
}

/* False: the program cannot be served, and must not run. An exit code is half of a module's
 * address: 0 may be one. */
static BOOL load_into(HANDLE process, const wchar_t *path)
{
    size_t bytes = (wcslen(path) + 1) * sizeof *path;
    void *there = VirtualAllocEx(process, NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    DWORD module = 0;
    HANDLE thread;

    if (there == NULL || !WriteProcessMemory(process, there, path, bytes, NULL)) return FALSE;
    /* kernel32.dll lies at one address in all processes of a kind. */
    thread = CreateRemoteThread(process, NULL, 0, (LPTHREAD_START_ROUTINE)(void *)LoadLibraryW,
                                there, 0, NULL);
    if (thread == NULL) return FALSE;
    WaitForSingleObject(thread, INFINITE);
    GetExitCodeThread(thread, &module);
    CloseHandle(thread);
    VirtualFreeEx(process, there, 0, MEM_RELEASE);
    return module != 0 || is_loaded(process, path);
}

/* Keys that interrupt are the program's. It would inherit from us that such keys are ignored, but
 * not a handler; and what has been made without running must not outlive us so. */
static BOOL WINAPI is_for_program(DWORD event)
{
    return event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT;
}

int main(void)
{
    static wchar_t library[32768];
    wchar_t *command = rest_of_command_line();
    STARTUPINFOW start;
    PROCESS_INFORMATION made;
    BOOL narrow = FALSE;
    DWORD code = CANNOT_START;

    if (*command == L'\0') {
        fputs("usage: prairie-run PROGRAM [ARGUMENT...]\n", stderr);
        return CANNOT_START;
    }
    find_library(library, sizeof library / sizeof library[0]);
    GetStartupInfoW(&start);
    SetConsoleCtrlHandler(is_for_program, TRUE);
    if (!CreateProcessW(NULL, command, NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL, &start,
                        &made)) {
        BOOL missing =
            GetLastError() == ERROR_FILE_NOT_FOUND || GetLastError() == ERROR_PATH_NOT_FOUND;

        fail(missing ? NO_SUCH_PROGRAM : CANNOT_START, L"cannot start", command);
    }
    if (IsWow64Process(made.hProcess, &narrow) && narrow) {
        TerminateProcess(made.hProcess, CANNOT_START);
        fail(CANNOT_START, L"a program of 32 bits is not served", command);
    }
    if (!load_into(made.hProcess, library)) {
        TerminateProcess(made.hProcess, CANNOT_START);
        fail(CANNOT_START, L"cannot be loaded into the program", library);
    }
    ResumeThread(made.hThread);
    WaitForSingleObject(made.hProcess, INFINITE);
    GetExitCodeProcess(made.hProcess, &code);
    return (int)code;
}
