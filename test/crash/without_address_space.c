/* expect: abort "prairie: double free" */
/* without_address_space.c - the line is written although no memory at all is left. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <sys/resource.h>

int main(void)
{
    require_prairie();
    void *block = malloc(50000);
    struct rlimit none = { 0, 0 };
    must(setrlimit(RLIMIT_AS, &none) == 0);
    while (malloc(100000) != NULL) {}
    while (malloc(100) != NULL) {}
    free(block);
    free(hidden(block));
    missed();
}
