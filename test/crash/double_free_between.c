/* expect: abort "prairie: double free" flavours: checking arguments: 16 200 14336 */
/* double_free_between.c - another block is freed between the two frees of one. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    void *block = malloc(bytes);
    void *other = malloc(bytes);
    free(block);
    free(other);
    free(hidden(block));
    missed();
}
