/* expect: abort "prairie: wrong size in sized delete"
 * arguments: 64:4096 64:1 4096:64 24:100000 100000:24 */
/* delete_wrong_size.cpp - sized delete is told another size than the block has, as after a
 * wrong cast. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <new>

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 2);
    char *colon = argv[1];
    size_t bytes = strtoull(argv[1], &colon, 10);
    must(*colon == ':');
    operator delete(operator new(bytes), strtoull(colon + 1, nullptr, 10));
    missed();
}
