/* served.c - fails unless every door to the heap is answered by the library that it is told. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Resolved as a caller's symbols are: the first object in search order that has the name. */
static int is_served(const char *name, const char *library)
{
    Dl_info info;
    char path[PATH_MAX];
    void *symbol = dlsym(RTLD_DEFAULT, name);

    if (symbol == NULL || dladdr(symbol, &info) == 0 || realpath(info.dli_fname, path) == NULL) {
        printf("%s: not found\n", name);
        return 0;
    }
    if (strcmp(path, library) != 0) {
        printf("%s: answered by %s, not by %s\n", name, path, library);
        return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {
        "malloc",
        "calloc",
        "realloc",
        "free",
        "aligned_alloc",
        "posix_memalign",
        "memalign",
        "valloc",
        "pvalloc",
        "malloc_usable_size",
        sizeof(size_t) > 4 ? "_Znwm" : "_Znwj",
        "_ZdlPv",
        "prairie_version",
    };
    char library[PATH_MAX];
    int served = 0;
    int count = (int)(sizeof names / sizeof *names);

    if (argc != 2 || realpath(argv[1], library) == NULL) {
        printf("usage: served LIBRARY (got %s)\n", argc == 2 ? argv[1] : "no path");
        return 2;
    }
    for (int i = 0; i < count; i++) served += is_served(names[i], library);
    printf("%d of %d names answered by %s\n", served, count, library);
    return served == count ? 0 : 1;
}
