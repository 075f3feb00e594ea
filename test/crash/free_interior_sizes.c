/* expect: abort "prairie: free of an interior pointer"
 * arguments: 32 48 112 320 1000 4096 12288 14336 */
/* free_interior_sizes.c - sixteen bytes into a small block of each kind of size. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    crowd_take(bytes);
    char *block = malloc(bytes);
    free(hidden(block + 16));
    crowd_drain();
    missed();
}
