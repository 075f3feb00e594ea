/* expect: abort "prairie: realloc of a freed pointer" flavours: plain check audit-tiny hardened
 * arguments: 20000 300000 */
/* rallocx_freed_large.c - a large block is resized by rallocx after it was freed. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <jemalloc/jemalloc.h>

extern __typeof__(rallocx) rallocx __attribute__((weak));

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    void *block = malloc(bytes);
    free(block);
    if (rallocx(hidden(block), 2 * bytes, 0) != NULL) missed();
    missed();
}
