/* expect: abort "prairie: free of a foreign pointer"
 * arguments: 0x1 0x8 0x10 0xfff 0x1000 0x10000 0xdeadbeef 0x100000000 0x7ffffffff000
 * 0x7fffffffffff 0x800000000000 0x4141414141414141 0x7fffffffffffffff 0x8000000000000000
 * 0xffff800000000000 0xffff888000000010 0xfffffffffffff000 0xfffffffffffffff0 0xffffffffffffffff
 */
/* free_wild.c - addresses that nothing can have are freed: low, non-canonical, in the kernel
 * half. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    free((void *)number_argument(argc, argv));
    missed();
}
