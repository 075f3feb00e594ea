/* expect: abort "prairie: free of a foreign pointer" */
/* free_thread_local.c - the address of a thread-local variable is freed. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

static _Thread_local char variable[64];

int main(void)
{
    require_prairie();
    free(hidden(variable));
    missed();
}
