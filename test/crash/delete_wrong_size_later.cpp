/* expect: abort "prairie: double free or wrong size in sized delete" flavours: plain
 * arguments: 64:1000 1000:64 100000:64 */
/* delete_wrong_size_later.cpp - sized delete is told another size than the block has, and what was freed as
 * that size is drained. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <malloc.h>
#include <new>

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 2);
    char *colon = argv[1];
    size_t bytes = strtoull(argv[1], &colon, 10);
    must(*colon == ':');
    size_t told = strtoull(colon + 1, nullptr, 10);
    /* Only a class whose magazine has room believes it. */
    operator delete(hidden(operator new(told)), told);
    (void)hidden(operator new(told));
    operator delete(operator new(bytes), told);
    malloc_trim(0);
    missed();
}
