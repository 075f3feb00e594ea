/* faults.c - how many page faults more a process takes with prairie than with the C library's own
 * malloc. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* A preloaded library with nothing in it takes 5 to 7 where code and constants are segments of
 * their own, as they are in ours. Where code lies to the kernel's 64 KiB around a fault is chance,
 * so the least of some runs counts. */
enum { RUNS = 40, FAULTS_IDLE_MAX = 15, FAULTS_BLOCK_MAX = 20 };

static void must(int held, const char *what)
{
    if (held) return;
    fprintf(stderr, "faults: %s\n", what);
    exit(1);
}

static long faults_of_one(char *const environment[], const char *work)
{
    struct rusage used;
    int status = 0;
    pid_t child = fork();

    must(child >= 0, "no child");
    if (child == 0) {
        execle("/proc/self/exe", "start_faults", work, (char *)NULL, environment);
        _exit(127);
    }
    must(wait4(child, &status, 0, &used) == child && status == 0, "the child failed");
    return used.ru_minflt;
}

static long least_faults(char *const environment[], const char *work)
{
    long least = faults_of_one(environment, work);

    for (int run = 1; run < RUNS; run++) {
        long faults = faults_of_one(environment, work);
        if (faults < least) least = faults;
    }
    return least;
}

static void compare(char *preload, const char *work, long most)
{
    char *const none[] = { NULL }, *const preloaded[] = { preload, NULL };
    long without = least_faults(none, work), with = least_faults(preloaded, work);

    printf("faults: %s: %ld, with prairie %ld\n", work, without, with);
    must(with - without <= most, "more page faults at start than there were");
}

int main(int argc, char **argv)
{
    const char *library = getenv("PRAIRIE_LIBRARY");
    char preload[4096];

    if (argc > 1) {
        if (strcmp(argv[1], "block") == 0) must(malloc(40) != NULL, "no block");
        return 0;
    }
    must(library != NULL, "PRAIRIE_LIBRARY is not set");
    must(snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library) < (int)sizeof preload, "path");
    compare(preload, "idle", FAULTS_IDLE_MAX);
    compare(preload, "block", FAULTS_BLOCK_MAX);
    return 0;
}
