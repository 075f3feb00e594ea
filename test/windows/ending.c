/* ending.c - a process ends in every way there is, while others are in the middle of calls. */
/* SPDX-License-Identifier: MIT */
#include "windows_test.h"

#include <process.h>

static void *kept;

static void free_kept(void)
{
    free(kept);
    free(malloc(1000));
}

__attribute__((destructor)) static void at_the_very_end(void) { free(malloc(100)); }

static volatile LONG begun;

static unsigned __stdcall never_rest(void *argument)
{
    void *block[100] = { NULL };

    (void)argument;
    for (unsigned i = 0;; i++) {
        free(block[i % 100]);
        block[i % 100] = malloc(i % 2000 * (i % 7 + 1));
        if (i == 1000) InterlockedIncrement(&begun);
    }
    return 0;
}

static void start_others(void)
{
    for (int i = 0; i < 4; i++) must(_beginthreadex(NULL, 0, never_rest, NULL, 0, NULL) != 0);
    while (begun < 4) Sleep(1);
}

/* A library is told of the end, and frees then. */
static int end_by(const char *way)
{
    must(is_served());
    must(LoadLibraryW(L"plugin.dll") != NULL);
    kept = malloc(5000);
    atexit(free_kept);
    if (strncmp(way, "busy-", 5) == 0) {
        start_others();
        way += 5;
    }
    if (strcmp(way, "exit") == 0) exit(42);
    if (strcmp(way, "_exit") == 0) _exit(42);
    if (strcmp(way, "process") == 0) ExitProcess(42);
    if (strcmp(way, "terminate") == 0) TerminateProcess(GetCurrentProcess(), 42);
    if (strcmp(way, "thread") == 0) {
        /* The last thread to end ends the process. */
        ExitThread(42);
    }
    return 42;
}

int main(int argc, char **argv)
{
    static const char *const ways[] = { "return",       "exit",          "_exit",       "process",
                                        "terminate",    "thread",        "busy-return", "busy-exit",
                                        "busy-process", "busy-terminate" };
    char said[1000];

    if (argc > 1) return end_by(argv[1]);
    for (unsigned i = 0; i < sizeof ways / sizeof ways[0]; i++)
        for (int round = 0; round < (strncmp(ways[i], "busy-", 5) == 0 ? 3 : 1); round++) {
            DWORD code = run_again(ways[i], said, sizeof said);

            if (code != 42 || said[0] != '\0') {
                printf("%s: ended with %lu (%lx) and said \"%s\"\n", ways[i], code, code, said);
                return 1;
            }
        }
    return 0;
}
