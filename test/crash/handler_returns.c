/* expect: abort "prairie: free of a foreign pointer" */
/* handler_returns.c - a SIGABRT handler that returns does not save the program. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

static void handler(int signal) { (void)signal; }

int main(void)
{
    require_prairie();
    signal(SIGABRT, handler);
    free(hidden("literal"));
    missed();
}
