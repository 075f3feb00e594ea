/* expect: abort "prairie: free of a foreign pointer" */
/* free_thread_stack.c - a thread frees an address on its own stack. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

static void *free_own(void *unused)
{
    char local[64];
    memset(local, 1, sizeof local);
    free(hidden(local));
    return unused;
}

int main(void)
{
    require_prairie();
    pthread_t thread;
    must(pthread_create(&thread, NULL, free_own, NULL) == 0);
    must(pthread_join(thread, NULL) == 0);
    missed();
}
