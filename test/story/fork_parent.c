/* fork_parent.c - a parent with threads goes on for a million operations after each of its
 * forks. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { THREADS = 2, SLOTS = 500 };

static pthread_barrier_t round_begins, round_ends;
static long operations_each;

static void operate(uint64_t *state, unsigned char **block, size_t *bytes)
{
    for (long i = 0; i < operations_each; i++) {
        size_t slot = random_between(state, 0, SLOTS - 1);
        if (block[slot] != NULL)
            must(stamp_holds(block[slot], bytes[slot] < 64 ? bytes[slot] : 64, slot));
        free(block[slot]);
        bytes[slot] = random_between(state, 0, i % 200 == 0 ? 60000 : 800);
        block[slot] = malloc(bytes[slot]);
        must(block[slot] != NULL);
        stamp(block[slot], bytes[slot] < 64 ? bytes[slot] : 64, slot);
    }
}

enum { ROUNDS = 5 };

static void *run(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    unsigned char *block[SLOTS] = { NULL };
    size_t bytes[SLOTS] = { 0 };
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&round_begins);
        operate(&state, block, bytes);
        pthread_barrier_wait(&round_ends);
    }
    for (int i = 0; i < SLOTS; i++) free(block[i]);
    return NULL;
}

int main(void)
{
    require_prairie();
    pthread_t thread[THREADS];
    uint64_t seed = seed_of_run();
    operations_each = scaled(1000000) / (THREADS + 1);
    pthread_barrier_init(&round_begins, NULL, THREADS + 1);
    pthread_barrier_init(&round_ends, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&thread[i], NULL, run, (void *)(uintptr_t)(seed + (uint64_t)i)) == 0);
    unsigned char *block[SLOTS] = { NULL };
    size_t bytes[SLOTS] = { 0 };
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&round_begins);
        pid_t pid = fork();
        if (pid == 0) {
            /* The child outlives the round: both heaps change at the same time, each for itself. */
            alarm(patience(60));
            operations_each /= 4;
            operate(&seed, block, bytes);
            walk_heap();
            _exit(0);
        }
        must(pid > 0);
        operate(&seed, block, bytes);
        int status = 1;
        must(waitpid(pid, &status, 0) == pid);
        if (status != 0) give_up("child of round %d ended with status %#x", round, status);
        pthread_barrier_wait(&round_ends);
    }
    for (int i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
    for (int i = 0; i < SLOTS; i++) free(block[i]);
    walk_heap();
    printf("fork_parent: %d forks, %ld operations after each\n", ROUNDS,
           operations_each * (THREADS + 1));
    return 0;
}
