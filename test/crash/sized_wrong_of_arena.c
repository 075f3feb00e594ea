/* expect: abort "prairie: wrong size in sized delete" flavours: plain check audit-tiny hardened
 * arguments: 100000:200000 100000:5000000 20000:40000 */
/* sized_wrong_of_arena.c - a sized free of a large block of an arena that the program made, which has
 * no mark in a hardened process either, is told a wrong size. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <jemalloc/jemalloc.h>

static void (*give_sized)(void *, size_t);

int main(int argc, char **argv)
{
    unsigned arena;
    size_t bytes = sizeof arena;

    require_prairie();
    must(argc == 2);
    char *colon = strchr(argv[1], ':');
    must(colon != NULL);
    int (*ask)(const char *, void *, size_t *, void *, size_t) =
        (int (*)(const char *, void *, size_t *, void *, size_t))dlsym(RTLD_DEFAULT, "mallctl");
    void *(*take)(size_t, int) = (void *(*)(size_t, int))dlsym(RTLD_DEFAULT, "mallocx");
    give_sized = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    must(ask != NULL && take != NULL && give_sized != NULL);
    must(ask("arenas.create", &arena, &bytes, NULL, 0) == 0);
    char *block = take(strtoull(argv[1], NULL, 10), (int)MALLOCX_ARENA(arena));
    must(block != NULL);
    give_sized(hidden(block), strtoull(colon + 1, NULL, 10));
    missed();
}
