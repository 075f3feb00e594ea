/* expect: abort "prairie: double free" arguments: closed replaced */
/* stderr_copy_closed.c - a program that closes all descriptors but the first three, and opens files
 * of its own, hears of its mistake on its standard error, and finds nothing in its files. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "crash.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { FIRST = 3, LAST = 300, COPY = 200 };

const char *malloc_conf = "stats_print:true,prof:true,prof_leak:true"; /* one copy for both */

static void free_twice(void)
{
    void *block = malloc(100000);
    free(block);
    free(hidden(block));
    missed();
}

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 2 && fcntl(COPY, F_GETFD) >= 0 && fcntl(COPY + 1, F_GETFD) < 0);
    for (int file = FIRST; file <= LAST; file++) close(file);
    if (strcmp(argv[1], "closed") == 0) free_twice();
    for (int file = FIRST; file <= LAST; file++) must(memfd_create("of the program", 0) == file);

    pid_t child = fork();
    if (child == 0) free_twice();
    int status;
    must(waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGABRT);
    for (int file = FIRST; file <= LAST; file++) {
        struct stat facts;
        must(fstat(file, &facts) == 0 && facts.st_size == 0);
    }
    abort();
}
