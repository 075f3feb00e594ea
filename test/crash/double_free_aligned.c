/* expect: abort "prairie: double free" arguments: 32 256 4096 65536 4194304 */
/* double_free_aligned.c - a block with an alignment of its own is freed twice. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    size_t align = number_argument(argc, argv);
    for (int i = 0; i < CROWD_COUNT; i++)
        crowd_block[i] = align <= 4096 ? aligned_alloc(align, align) : NULL;
    void *block = aligned_alloc(align, align);
    free(block);
    free(hidden(block));
    crowd_drain();
    missed();
}
