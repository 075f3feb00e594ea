/* main.c - a program that is linked with prairie: it gets its memory there. */
/* SPDX-License-Identifier: MIT */
#include <prairie/inline.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    void *block = malloc(1 << 20), *small = prairie_inline_malloc(48);

    if (block == NULL || small == NULL || !prairie_stats_read(&stats)) return 1;
    memset(block, 1, 1 << 20);
    free(block);
    prairie_inline_free(small, 48);
    return stats.allocated >= 1 << 20 ? 0 : 1;
}
