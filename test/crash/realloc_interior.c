/* expect: abort "prairie: realloc of an interior pointer" arguments: 8 16 63 */
/* realloc_interior.c - the inside of a small block is given to realloc. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    char *block = malloc(64);
    void *moved = realloc(hidden(block + number_argument(argc, argv)), 1000);
    must(moved != NULL);
    missed();
}
