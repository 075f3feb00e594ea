/* narrow.c - with addresses of 32 bits: little is reserved before there is need, a heap grows to
 * most of what addresses can tell apart, and beyond that malloc says no and goes on serving. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

enum { MIB = 1 << 20, PIECES_MAX = 4096, KEPT_MAX = 1 << 16 };

/* Not as status has it: an emulator's has all addresses of 32 bits in it, taken or not. */
static size_t mapped_mib(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    unsigned long start, end;
    size_t kib = 0;

    must(file != NULL);
    while (fscanf(file, "%lx-%lx%*[^\n]", &start, &end) == 2) kib += (end - start) / 1024;
    fclose(file);
    return kib / 1024;
}

/* Blocks of one size until malloc says no; none of them is touched but for its ends. */
static size_t fill_up(char **block, size_t bytes, size_t most)
{
    size_t count = 0;

    while (count < most && (block[count] = malloc(bytes)) != NULL) {
        block[count][0] = (char)count;
        block[count][bytes - 1] = (char)count;
        count++;
    }
    for (size_t i = 0; i < count; i++)
        must(block[i][0] == (char)i && block[i][bytes - 1] == (char)i);
    return count;
}

static void give_back(char **block, size_t count)
{
    for (size_t i = 0; i < count; i++) free(block[i]);
}

int main(void)
{
    static char *block[PIECES_MAX];
    static const size_t sizes[] = { MIB, 100 * 1000, 3 * MIB + 1, 80 * MIB };

    require_prairie();
    must(sizeof(void *) == 4);
    free(malloc(1));
    must(mapped_mib() < 512);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t count = fill_up(block, sizes[i], PIECES_MAX), mib = count * (sizes[i] / 1024) / 1024;

        must(malloc((size_t)1 << 31) == NULL && malloc(SIZE_MAX / 4 * 3) == NULL);
        printf("%zu blocks of %zu bytes: %zu MiB\n", count, sizes[i], mib);
        /* What was reserved for others is in pieces, of which each has room for few of the
         * largest. */
        if (count < PIECES_MAX) must(mib >= (sizes[i] < 64 * MIB ? 3000 : 1000));
        give_back(block, count);
    }
    use_heap_in_threads(4, 3);
    walk_heap();
    return 0;
}
