/* expect: abort "prairie: double free" arguments: 24 1000 14336 */
/* double_free_after_small_realloc.c - realloc moved a small block, and the old address is freed. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    crowd_take(bytes);
    void *block = malloc(bytes);
    void *old = hidden(block);
    block = realloc(block, 3 * bytes);
    must(block != old);
    free(old);
    crowd_drain();
    missed();
}
