/* exit_storm.c - processes call exit while eight of their threads are in the heap. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <sys/wait.h>

enum { THREADS = 8 };

static void *allocate(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    void *block[100] = { NULL };
    for (;;) {
        size_t slot = random_between(&state, 0, 99);
        free(block[slot]);
        block[slot] = malloc(random_between(&state, 0, slot == 0 ? 300000 : 3000));
        must(block[slot] != NULL);
    }
    return NULL;
}

static void in_exit(void)
{
    for (size_t bytes = 1; bytes < 1 << 20; bytes *= 3) free(malloc(bytes));
}

int main(void)
{
    require_prairie();
    uint64_t seed = seed_of_run();
    long processes = scaled(500);
    double longest_ms = 0;
    for (long p = 0; p < processes; p++) {
        long delay_us = (long)random_between(&seed, 0, 2000);
        double start_ms = now_ms();
        pid_t pid = fork();
        if (pid == 0) {
            pthread_t thread;
            alarm(patience(20));
            must(atexit(in_exit) == 0);
            for (size_t i = 0; i < THREADS; i++)
                must(pthread_create(&thread, NULL, allocate, (void *)(p * 10 + i)) == 0);
            usleep((useconds_t)delay_us);
            exit(0);
        }
        int status = 1;
        must(pid > 0 && waitpid(pid, &status, 0) == pid);
        if (status != 0) give_up("process %ld ended with status %#x", p, status);
        if (now_ms() - start_ms > longest_ms) longest_ms = now_ms() - start_ms;
    }
    printf("exit_storm: %ld processes, the longest took %.1f ms\n", processes, longest_ms);
    return 0;
}
