/* expect: abort "prairie: wrong size in sized delete" flavours: check audit-tiny hardened
 * arguments: 64:640 640:64 64:4096 4000:2000 65536:640 100000:50000 */
/* delete_wrong_size_aligned.cpp - aligned sized delete is told another size than the block has. */
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
    std::align_val_t align{ 64 };
    operator delete(operator new(bytes, align), strtoull(colon + 1, nullptr, 10), align);
    missed();
}
