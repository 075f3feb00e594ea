/* expect: abort "prairie: double free" */
/* double_free_in_child.c - a forked child frees a large block twice; the parent dies in its
 * manner. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <sys/wait.h>

int main(void)
{
    require_prairie();
    int status = 0;
    void *block = malloc(100000);
    pid_t child = fork();
    if (child == 0) {
        free(block);
        free(hidden(block));
        missed();
    }
    must(waitpid(child, &status, 0) == child);
    if (!WIFSIGNALED(status)) missed();
    free(block);
    raise(WTERMSIG(status));
    missed();
}
