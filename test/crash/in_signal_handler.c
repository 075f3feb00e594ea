/* expect: abort "prairie: free of a foreign pointer" */
/* in_signal_handler.c - the misuse happens inside a signal handler. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

static void handler(int signal)
{
    (void)signal;
    free(hidden("literal"));
}

int main(void)
{
    require_prairie();
    free(malloc(10));
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    missed();
}
