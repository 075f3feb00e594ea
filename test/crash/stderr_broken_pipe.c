/* expect: abort silent */
/* stderr_broken_pipe.c - nobody reads the other end of stderr, and SIGPIPE is ignored. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(void)
{
    require_prairie();
    int ends[2];
    must(pipe(ends) == 0);
    close(ends[0]);
    dup2(ends[1], 2);
    signal(SIGPIPE, SIG_IGN);
    free(hidden("literal"));
    missed();
}
