/* sawtooth.c - a load that swings between a tenth and seven tenths of what there is. */
/* SPDX-License-Identifier: MIT */
/* usage: sawtooth MIB SECONDS: of a limit that stands around the process; who exceeds it is
 * killed. */
#include "../blackbox/use.h"

enum { MIB = 1 << 20, BLOCKS_MAX = 1 << 18, TEETH_LEAST = 5 };

static char *block[BLOCKS_MAX];
static unsigned bytes_of[BLOCKS_MAX];
static size_t count, live_bytes;

static bool take(uint64_t *random)
{
    size_t bytes = (size_t)1 << random_between(random, 4, 18);

    bytes += random_between(random, 0, bytes - 1);
    if (count == BLOCKS_MAX) return false;
    block[count] = malloc(bytes);
    must(block[count] != NULL);
    stamp(block[count], bytes, count);
    bytes_of[count++] = (unsigned)bytes;
    live_bytes += bytes;
    return true;
}

/* Any of them; the last one takes its place. */
static void give(uint64_t *random)
{
    size_t at = random_between(random, 0, count - 1);

    live_bytes -= bytes_of[at];
    free(block[at]);
    block[at] = block[--count];
    bytes_of[at] = bytes_of[count];
}

int main(int argc, char **argv)
{
    must(argc == 3);
    require_prairie();
    size_t limit_bytes = strtoul(argv[1], NULL, 10) * MIB;
    uint64_t random = seed_of_run();
    double end_ms = now_ms() + 1000 * strtod(argv[2], NULL);
    unsigned teeth = 0;

    for (; teeth < TEETH_LEAST || now_ms() < end_ms; teeth++) {
        while (live_bytes < limit_bytes / 10 * 7 && take(&random)) {}
        while (live_bytes > limit_bytes / 10) give(&random);
    }
    printf("sawtooth: %u teeth between %zu and %zu MiB, %ld KiB there\n", teeth,
           limit_bytes / 10 / MIB, limit_bytes / 10 * 7 / MIB, resident_kb());
    walk_heap();
    return 0;
}
