/* misuse.c - what is nobody's block ends the process with one line. */
/* SPDX-License-Identifier: MIT */
#include "windows_test.h"

static char data[100];

static int misuse(const char *what)
{
    char *large = malloc(100000);

    must(is_served());
    if (strcmp(what, "static") == 0) free(hidden(data + 16));
    if (strcmp(what, "stack") == 0) free(hidden(&what));
    if (strcmp(what, "wild") == 0) free((void *)(uintptr_t)0x123456789000);
    if (strcmp(what, "code") == 0) free(hidden(misuse));
    if (strcmp(what, "interior") == 0) free(hidden(large + 5000));
    if (strcmp(what, "twice") == 0) {
        free(large);
        free(hidden(large));
        free(hidden(large));
    }
    if (strcmp(what, "realloc") == 0) large = realloc(hidden(data), 10);
    return 9;
}

int main(int argc, char **argv)
{
    static const char *const expected[][2] = {
        { "static", "prairie: free of a foreign pointer: 0x" },
        { "stack", "prairie: free of a foreign pointer: 0x" },
        { "wild", "prairie: free of a foreign pointer: 0x123456789000\n" },
        { "code", "prairie: free of a foreign pointer: 0x" },
        { "interior", "prairie: free of an interior pointer: 0x" },
        { "twice", "prairie: double free: 0x" },
        { "realloc", "prairie: realloc of a foreign pointer: 0x" },
    };
    char said[1000];

    if (argc > 1) return misuse(argv[1]);
    for (unsigned i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        DWORD code = run_again(expected[i][0], said, sizeof said);

        if (code != 0xC0000409 || strncmp(said, expected[i][1], strlen(expected[i][1])) != 0) {
            printf("%s: ended with %lx and said \"%s\"\n", expected[i][0], code, said);
            return 1;
        }
    }
    return 0;
}
