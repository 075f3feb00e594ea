/* first_touch.c - a fresh page costs a hardened process one fault, as it does any other.
 *
 * A block is looked at before it is written. A page that is read first is a page of zeros, and a
 * second fault makes it one of the program's own. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/blackbox.h"

#include <sys/resource.h>

enum { BLOCKS = 2000, PAGE = 4096 };

static long faults(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_minflt : 0;
}

int main(void)
{
    const size_t sizes[] = { 40, 2000, 4000, 8000, 12000 };
    int failed = 0;

    require_prairie();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        long before = faults(), took, pages;

        for (size_t block = 0; block < BLOCKS; block++) {
            char *bytes = malloc(sizes[i]);
            if (bytes == NULL) return 1;
            bytes[0] = 1;
        }
        took = faults() - before;
        /* Classes are an eighth longer, at most; and some are what prairie needs for itself. */
        pages = BLOCKS * (long)(sizes[i] + sizes[i] / 8 + 16) / PAGE;
        if (took <= pages + pages / 20 + 40) continue;
        fprintf(stderr, "first_touch: %ld faults for %ld pages of blocks of %zu bytes\n", took,
                pages, sizes[i]);
        failed = 1;
    }
    return failed;
}
