/* expect: abort "prairie: free of a foreign pointer" arguments: block ignore */
/* signal_blocked.c - SIGABRT is blocked or ignored, and the program dies of it all the same. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 2);
    if (strcmp(argv[1], "block") == 0) {
        sigset_t set;
        sigfillset(&set);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
    } else {
        signal(SIGABRT, SIG_IGN);
    }
    free(hidden("literal"));
    missed();
}
