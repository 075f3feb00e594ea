/* expect: abort "prairie: free of an interior pointer" arguments: 1 8 16 32 63 */
/* free_interior_later.c - the inside of a small block is freed, and many others of its size
 * after it. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    crowd_take(64);
    char *block = malloc(64);
    free(hidden(block + number_argument(argc, argv)));
    crowd_drain();
    missed();
}
