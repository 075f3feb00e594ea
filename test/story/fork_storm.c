/* fork_storm.c - forks while four threads allocate; each child allocates, frees its parent's
 * blocks and makes a thread. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { THREADS = 4, BLOCKS = 400, CHILD_SECONDS = 20 };

static atomic_bool stop;
static atomic_ulong operations;

/* Replaces blocks of all sizes at random, so that any lock may be held at the moment of a fork. */
static void *allocate(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    void *block[200] = { NULL };
    for (long i = 0; !stop; i++) {
        /* A rest now and then, or the children would wait for a core most of the time. */
        if (i % 5000 == 0) sleep_ms(1);
        size_t slot = random_between(&state, 0, 199);
        free(block[slot]);
        block[slot] = malloc(random_between(&state, 0, slot % 20 == 0 ? 200000 : 2000));
        must(block[slot] != NULL);
        atomic_fetch_add_explicit(&operations, 1, memory_order_relaxed);
    }
    for (int i = 0; i < 200; i++) free(block[i]);
    return NULL;
}

static void *thread_of_child(void *parents_blocks)
{
    void **block = parents_blocks;
    for (size_t i = BLOCKS / 2; i < BLOCKS; i++) {
        must(stamp_holds(block[i], 50 + i, i));
        free(block[i]);
    }
    use_heap_once(2);
    return NULL;
}

static void child(void **block, bool forks_again)
{
    pthread_t thread;
    alarm(patience(CHILD_SECONDS));
    use_heap_once(1);
    for (size_t i = 0; i < BLOCKS / 2; i++) {
        must(stamp_holds(block[i], 50 + i, i));
        free(block[i]);
    }
    must(pthread_create(&thread, NULL, thread_of_child, block) == 0);
    if (forks_again) {
        int status = 1;
        pid_t pid = fork();
        if (pid == 0) {
            alarm(patience(CHILD_SECONDS));
            use_heap_once(3);
            _exit(0);
        }
        must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    }
    must(pthread_join(thread, NULL) == 0);
    walk_heap();
    _exit(0);
}

int main(void)
{
    require_prairie();
    pthread_t thread[THREADS];
    uint64_t seed = seed_of_run();
    long forks = scaled(300);
    double longest_ms = 0;
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&thread[i], NULL, allocate, (void *)(uintptr_t)(seed + (uint64_t)i))
             == 0);
    for (long f = 0; f < forks; f++) {
        int status = 1;
        void *block[BLOCKS];
        for (size_t i = 0; i < BLOCKS; i++) {
            block[i] = malloc(50 + i);
            must(block[i] != NULL);
            stamp(block[i], 50 + i, i);
        }
        double start_ms = now_ms();
        pid_t pid = fork();
        if (pid == 0) child(block, f % 10 == 0);
        double spent_ms = now_ms() - start_ms;
        if (spent_ms > longest_ms) longest_ms = spent_ms;
        must(pid > 0 && waitpid(pid, &status, 0) == pid);
        if (status != 0)
            give_up("child %ld ended with status %#x%s", f, status,
                    WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? ": it hung" : "");
        for (size_t i = 0; i < BLOCKS; i++) {
            must(stamp_holds(block[i], 50 + i, i));
            free(block[i]);
        }
    }
    stop = true;
    for (int i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
    walk_heap();
    must(operations > (unsigned long)forks);
    printf("fork_storm: %ld forks beside %lu operations, longest fork %.1f ms\n", forks, operations,
           longest_ms);
    return 0;
}
