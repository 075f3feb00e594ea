/* expect: abort "prairie: free of an interior pointer" arguments: 16 4096 1048576 67108863 */
/* free_interior_huge.c - the inside of a block of 64 MiB is freed. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    char *block = malloc((size_t)64 << 20);
    free(hidden(block + number_argument(argc, argv)));
    missed();
}
