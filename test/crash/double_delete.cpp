/* expect: abort "prairie: double free" arguments: 24 1000 50000 */
/* double_delete.cpp - operator delete gives the same block back twice. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <new>

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    if (bytes < 10000) crowd_take(bytes);
    void *block = operator new(bytes);
    operator delete(block);
    operator delete(hidden(block));
    crowd_drain();
    missed();
}
