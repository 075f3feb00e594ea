/* expect: abort "prairie: double free" arguments: 20000 2000000 */
/* double_free_after_realloc.c - realloc moved a large block, and the old address is freed. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    void *block = malloc(bytes);
    void *neighbour = malloc(bytes);
    void *old = hidden(block);
    block = realloc(block, 10 * bytes);
    must(block != NULL && neighbour != NULL);
    /* Where it grew in place the next line is the first free, and the one after it the second. */
    free(block);
    free(old);
    missed();
}
