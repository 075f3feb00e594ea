/* expect: abort "prairie: double free" arguments: 24 1000 14336 20000 1000000 */
/* double_free_after_trim.c - malloc_trim sent the memory back between the two frees. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    void *block = malloc(bytes);
    free(block);
    malloc_trim(0);
    free(hidden(block));
    malloc_trim(0);
    missed();
}
