/* jemalloc_mangle_test.c - JEMALLOC_MANGLE: the standard's names mean the library with the prefix,
 * in C and in C++, and the C library's own stay where they are. Built as both. */
/* SPDX-License-Identifier: MIT */
#define JEMALLOC_MANGLE
#include "../blackbox/blackbox.h"

#include <jemalloc/jemalloc.h>

#ifndef JEMALLOC_NO_DEMANGLE
#error "names with je_ are to be understood, too"
#endif
#if LG_SIZEOF_PTR != (UINTPTR_MAX > 0xffffffff ? 3 : 2)
#error "a pointer has 8 bytes, or 4"
#endif

/* With the attributes of the header. */
JEMALLOC_NOINLINE JEMALLOC_COLD JEMALLOC_FORMAT_PRINTF(2, 3) static void say(char *into,
                                                                             const char *format,
                                                                             ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(into, 40, format, list);
    va_end(list);
}

JEMALLOC_ATTR(unused) static int of_no_use;

int main(void)
{
    size_t (*usable)(void *) = malloc_usable_size;
    void *(*theirs)(size_t) = NULL, *block = malloc(24);
    unsigned count = 0;
    size_t length = sizeof count;
    char name[40];

    must(malloc == je_malloc && free == je_free && mallctl == je_mallctl
         && usable == je_malloc_usable_size);
    *(void **)&theirs = dlsym(RTLD_DEFAULT, "malloc");
    must(theirs != NULL && theirs != malloc);
    must(malloc_usable_size(block) == 24); /* the size classes of a quantum of 8 */
    block = realloc(block, 40);
    must(malloc_usable_size(block) == 40);
    sdallocx(block, 40, 0);
    block = mallocx(100, MALLOCX_ZERO);
    free_sized(block, 100);
    free(calloc(3, 3));
    must(posix_memalign(&block, 64, 10) == 0);
    dallocx(block, 0);
    say(name, "opt.%s", "narenas");
    must(mallctl(name, &count, &length, NULL, 0) == 0 && count == 3);
    must(je_get_defrag_hint(name) == 0);
    return 0;
}
