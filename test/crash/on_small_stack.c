/* expect: abort "prairie: free of a foreign pointer" */
/* on_small_stack.c - the misuse happens on the smallest stack that a thread can have. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <limits.h>

static void *misuse(void *unused)
{
    free(hidden("literal"));
    return unused;
}

int main(void)
{
    require_prairie();
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    must(pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN) == 0);
    must(pthread_create(&thread, &attributes, misuse, NULL) == 0);
    must(pthread_join(thread, NULL) == 0);
    missed();
}
