/* expect: abort "prairie: realloc of a freed pointer"
 * arguments: 24 1000 14336 */
/* realloc_freed.c - a small block is resized after it was freed, and six more after it. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    resize_freed(number_argument(argc, argv));
    missed();
}
