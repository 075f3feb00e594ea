// blocks.c - 4096 blocks of 16 KiB at 16 KiB alignment: what they cost beyond their 64 MiB.
// SPDX-License-Identifier: MIT
//
// JavaScriptCore's collector asks for its memory like this. Every page of the blocks is written; the figure is
// how much resident memory grew, in KB.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCKS = 4096, SIZE = 16384, PAGE = 4096, KB = 1024 };

static long resident_kb(void)
{
    static char text[100];
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;
    // A buffer of its own: the allocator's is not to be asked for one while it is looked at.
    if (!file || setvbuf(file, text, _IOFBF, sizeof text) || fscanf(file, "%*d %ld", &pages) != 1)
        exit(1);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / KB);
}

int main(void)
{
    static char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) blocks[i] = NULL;
    long before = resident_kb();
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = aligned_alloc(SIZE, SIZE);
        if (!blocks[i]) return 1;
        for (int j = 0; j < SIZE; j += PAGE) blocks[i][j] = 1;
    }
    long grown = resident_kb() - before;
    const char *path = getenv("PRAIRIE_FIGURES");
    FILE *file = path ? fopen(path, "a") : stdout;
    if (!file) return 1;
    fprintf(file, "grown %ld KB\n", grown);
    fclose(file);
    return 0;
}
