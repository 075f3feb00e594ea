/* expect: abort "prairie: double free" flavours: plain check check-tiny
 * arguments: 24 64 1000 14336 */
/* double_free_far_apart.c - a crowd of frees lies before the second free, and another after it. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    static void *earlier[CROWD_COUNT];
    size_t bytes = number_argument(argc, argv);
    for (int i = 0; i < CROWD_COUNT; i++) earlier[i] = malloc(bytes);
    void *block = malloc(bytes);
    crowd_take(bytes);
    free(block);
    for (int i = 0; i < CROWD_COUNT; i++) free(earlier[i]);
    free(hidden(block));
    crowd_drain();
    missed();
}
