/* expect: abort "prairie: double free" arguments: 0 8 24 64 1000 4096 14336 */
/* double_free_later.c - a small block is freed twice, and many others of its size after it. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    crowd_take(bytes);
    void *block = malloc(bytes);
    free(block);
    free(hidden(block));
    crowd_free();
    missed();
}
