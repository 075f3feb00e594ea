/* again.c - starts a program a number of times: again TIMES PERCENT PROGRAM ARGUMENTS...
 * SPDX-License-Identifier: MIT
 *
 * PERCENT of TIMES, but once at least. Allocates nothing itself, so that what is measured are the
 * starts. Of what the program says only the first time is shown. Ends with the exit code of the
 * first start that fails. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int run_once(char **command)
{
    int status;
    pid_t child;

    if (posix_spawnp(&child, command[0], NULL, NULL, command, environ) != 0) return 127;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 126;
    return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    long times = argc > 3 ? strtol(argv[1], NULL, 10) : 0;
    long percent = argc > 3 ? strtol(argv[2], NULL, 10) : 0;

    if (times <= 0 || percent <= 0) return 2;
    times = times * percent / 100;
    for (long i = 0; i == 0 || i < times; i++) {
        int code = run_once(argv + 3);
        int nowhere;

        if (code != 0) return code;
        if (i > 0) continue;
        nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0) return 125;
    }
    return 0;
}
