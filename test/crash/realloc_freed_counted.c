/* expect: abort "prairie: realloc of a freed pointer"
 * arguments: 24 1000 14336 */
/* realloc_freed_counted.c - a thread that asked for its totals resizes a small block after it was
 * freed, and six more after it. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <prairie/prairie.h>

extern __typeof__(prairie_thread_totals) prairie_thread_totals __attribute__((weak));

int main(int argc, char **argv)
{
    require_prairie();
    must(prairie_thread_totals() != NULL);
    resize_freed(number_argument(argc, argv));
    missed();
}
