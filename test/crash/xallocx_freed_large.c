/* expect: abort "prairie: realloc of a freed pointer" flavours: plain check audit-tiny hardened
 * arguments: 20000 300000 */
/* xallocx_freed_large.c - a large block is to grow where it is after it was freed. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <jemalloc/jemalloc.h>

extern __typeof__(xallocx) xallocx __attribute__((weak));

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    void *block = malloc(bytes);
    free(block);
    if (xallocx(hidden(block), bytes, bytes, 0) > 0) missed();
    missed();
}
