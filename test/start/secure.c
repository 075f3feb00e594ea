/* secure.c - a program that may run set-user-ID: says whether it is, and uses the heap. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <sys/auxv.h>

int main(void)
{
    require_prairie();
    use_heap_once(1);
    printf("secure=%lu\n", getauxval(AT_SECURE));
    return 0;
}
