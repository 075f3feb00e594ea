/* late_limit.c - a limit that is set while the program runs: refused near it, and what is freed
 * serves again. */
/* SPDX-License-Identifier: MIT */
/* usage: late_limit as|data MIB */
#include "limits.h"

/* So much may be open, and so much be taken up by other things, before the limit is set. */
enum { MIB = 1 << 20, OPEN_BYTES = 32 * MIB, SMALL_LIMIT = 128 * MIB };

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 3);
    size_t limit_bytes = strtoul(argv[2], NULL, 10) * MIB;
    use_heap_once(1);
    use_heap_in_threads(2, 2);
    printf("mapped before the limit: %ld MiB\n", status_kb("VmSize:") / 1024);
    limit(strcmp(argv[1], "as") == 0 ? RLIMIT_AS : RLIMIT_DATA, limit_bytes);
    fill_and_refill(limit_bytes / (limit_bytes < SMALL_LIMIT ? 4 : 2),
                    limit_bytes + limit_bytes / 8 + OPEN_BYTES);
    use_heap_once(2);

    /* Without the limit the heap grows again. */
    limit(strcmp(argv[1], "as") == 0 ? RLIMIT_AS : RLIMIT_DATA, RLIM_INFINITY);
    char *large = malloc(limit_bytes * 2);
    must(large != NULL);
    large[limit_bytes * 2 - 1] = 1;
    free(large);
    use_heap_in_threads(4, 3);
    walk_heap();
    return 0;
}
