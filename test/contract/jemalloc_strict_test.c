/* jemalloc_strict_test.c - the header declares what jemalloc's does, also in a strict mode of C, in
 * which the C library hides some of it: undeclared, a pointer would come back as an int. */
/* SPDX-License-Identifier: MIT */
#include <jemalloc/jemalloc.h>

int main(void)
{
    void *block[4] = { aligned_alloc(64, 128), NULL, memalign(64, 100), valloc(1) };
    bool refused = posix_memalign(&block[1], 64, 100) != 0;

    for (unsigned i = 0; i < 4; i++) {
        refused |= block[i] == NULL || malloc_usable_size(block[i]) == 0;
        free(block[i]);
    }
    return refused;
}
