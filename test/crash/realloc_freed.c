/* expect: abort "prairie: realloc of a freed pointer"
 * arguments: 24 1000 14336 */
/* realloc_freed.c - a small block is resized after it was freed, and six more after it. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    void *block = malloc(bytes), *later[6];
    for (int i = 0; i < 6; i++) later[i] = malloc(bytes);
    free(block);
    for (int i = 0; i < 6; i++) free(later[i]);
    void *moved = realloc(hidden(block), 2 * bytes);
    must(moved != NULL);
    missed();
}
