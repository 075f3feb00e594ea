/* expect: abort "prairie: realloc of an interior pointer" arguments: 16 4096 99999 */
/* realloc_interior_large.c - the inside of a large block is given to realloc. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    char *block = malloc(100000);
    void *moved = realloc(hidden(block + number_argument(argc, argv)), 1000);
    must(moved != NULL);
    missed();
}
