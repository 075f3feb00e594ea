/* expect: ok */
/* ok_free_in_child.c - a forked child frees what its parent took, and the parent frees it too. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <sys/wait.h>

int main(void)
{
    require_prairie();
    void *large = malloc(3000000);
    crowd_take(100);
    pid_t child = fork();
    crowd_free();
    free(large);
    crowd_take(5000);
    crowd_free();
    if (child == 0) _exit(0);
    int status = 1;
    must(waitpid(child, &status, 0) == child);
    return status;
}
