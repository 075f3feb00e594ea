/* expect: abort "prairie: free of a foreign pointer" flavours: plain */
/* free_sized_foreign_later.c - free_sized gets a pointer to the stack, and what was freed as that
 * size is drained. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <malloc.h>

int main(void)
{
    require_prairie();
    char stack[64] __attribute__((aligned(64)));
    void (*sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    must(sized != NULL);
    sized(hidden(stack), 64);
    malloc_trim(0);
    missed();
}
