/* expect: ok */
/* ok_exit_in_handler.c - a signal comes at any moment of a busy heap, and its handler ends the
 * process. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <sys/time.h>
#include <sys/wait.h>

enum { CHILDREN = 200, HELD = 3000 };

static void end(int number)
{
    (void)number;
    exit(0);
}

static void be_busy(int seed)
{
    struct itimerval soon = { .it_value = { .tv_usec = 300 + seed * 7 } };
    static void *block[HELD];

    must(signal(SIGALRM, end) != SIG_ERR);
    must(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    for (size_t step = 0;; step++) {
        size_t bytes = step / HELD % 2 == 0 ? 24 : 1000;

        for (int i = 0; i < HELD; i++) {
            block[i] = malloc(bytes);
            must(block[i] != NULL);
        }
        for (int i = 0; i < HELD; i++) free(block[i]);
    }
}

int main(void)
{
    require_prairie();
    for (int i = 0; i < CHILDREN; i++) {
        int status = -1;
        pid_t child = fork();

        must(child >= 0);
        if (child == 0) be_busy(i);
        must(waitpid(child, &status, 0) == child);
        must(status == 0);
    }
    return 0;
}
