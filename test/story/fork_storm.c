/* fork_storm.c - three threads, and a signal handler, fork while eight threads allocate; handlers
 * of the forks allocate; each child allocates in every class, frees its parent's blocks and makes a
 * thread. */
/* SPDX-License-Identifier: MIT */
/* 2,000 forks; PRAIRIE_TEST_PERCENT=5000 for 100,000. */
#include "../blackbox/use.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { THREADS = 8, FORKERS = 3, BLOCKS = 400, CHILD_SECONDS = 20, SIGNALS_EACH = 20 };

static atomic_bool stop;
static atomic_ulong operations;
static atomic_long forks_left, forks, handled;
static atomic_int prepared, in_parent;

/* Replaces blocks of all sizes at random, so that any lock may be held at the moment of a fork. */
static void *allocate(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    void *block[200] = { NULL };
    for (long i = 0; !stop; i++) {
        /* A rest now and then, or the children would wait for a core most of the time. */
        if (i % 5000 == 0) sleep_ms(2);
        size_t slot = random_between(&state, 0, 199);
        free(block[slot]);
        block[slot] = malloc(random_between(&state, 0, slot % 20 == 0 ? 200000 : 2000));
        must(block[slot] != NULL);
        atomic_fetch_add_explicit(&operations, 1, memory_order_relaxed);
    }
    for (int i = 0; i < 200; i++) free(block[i]);
    return NULL;
}

/* ---- handlers of the forks: each thread has its own block on its way ---- */

static _Thread_local char *carried;

static void prepare(void)
{
    must((carried = malloc(3000)) != NULL);
    stamp(carried, 3000, 9);
    free(calloc(1, 70000));
    prepared++;
}

static void hand_on(void)
{
    must(stamp_holds(carried, 3000, 9));
    must((carried = realloc(carried, 90000)) != NULL && stamp_holds(carried, 3000, 9));
    free(carried);
    free(malloc(24));
}

static void after_in_parent(void)
{
    hand_on();
    in_parent++;
}

/* ---- children ---- */

static void use_every_class(void)
{
    static void *block[500];
    size_t count = 0;
    for (size_t bytes = 1; bytes < 300000; bytes += bytes < 512 ? 8 : bytes / 16) {
        must((block[count] = malloc(bytes)) != NULL);
        *(char *)block[count++] = 1;
    }
    must(count <= 500);
    while (count > 0) free(block[--count]);
}

static void *thread_of_child(void *parents_blocks)
{
    void **block = parents_blocks;
    for (size_t i = BLOCKS / 2; i < BLOCKS; i++) {
        must(stamp_holds(block[i], 50 + i, i));
        free(block[i]);
    }
    use_every_class();
    return NULL;
}

static void child(void **block, long number)
{
    pthread_t thread;
    alarm(patience(CHILD_SECONDS));
    use_every_class();
    for (size_t i = 0; i < BLOCKS / 2; i++) {
        must(stamp_holds(block[i], 50 + i, i));
        free(block[i]);
    }
    must(pthread_create(&thread, NULL, thread_of_child, block) == 0);
    if (number % 10 == 0) {
        int status = 1;
        pid_t pid = fork();
        if (pid == 0) {
            alarm(patience(CHILD_SECONDS));
            use_heap_once(3);
            _exit(0);
        }
        must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
        use_heap_once(1);
    }
    must(pthread_join(thread, NULL) == 0);
    walk_heap();
    _exit(0);
}

/* ---- those that fork ---- */

static void wait_for(pid_t pid, long number)
{
    int status = 1;
    while (pid > 0 && waitpid(pid, &status, 0) != pid) must(errno == EINTR);
    if (pid < 0 || status != 0)
        give_up("child %ld ended with status %#x%s", number, status,
                WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? ": it hung" : "");
    forks++;
}

static void *keep_forking(void *longest)
{
    long number;
    while ((number = --forks_left) >= 0) {
        void *block[BLOCKS];
        for (size_t i = 0; i < BLOCKS; i++) {
            block[i] = malloc(50 + i);
            must(block[i] != NULL);
            stamp(block[i], 50 + i, i);
        }
        double start_ms = now_ms();
        pid_t pid = fork();
        if (pid == 0) child(block, number);
        double spent_ms = now_ms() - start_ms;
        if (spent_ms > *(double *)longest) *(double *)longest = spent_ms;
        wait_for(pid, number);
        for (size_t i = 0; i < BLOCKS; i++) {
            must(stamp_holds(block[i], 50 + i, i));
            free(block[i]);
        }
    }
    return NULL;
}

/* Interrupts a thread that is not in the heap. */
static void fork_here(int signal)
{
    int before = errno;
    (void)signal;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(patience(CHILD_SECONDS));
        use_every_class();
        _exit(0);
    }
    wait_for(pid, -1);
    handled++;
    errno = before;
}

static void *stay_outside(void *unused)
{
    volatile unsigned turns = 0;
    while (!stop)
        if (++turns % 100000 == 0) sleep_ms(1);
    return unused;
}

int main(void)
{
    require_prairie();
    pthread_t thread[THREADS], forker[FORKERS], outside;
    struct sigaction action = { .sa_handler = fork_here, .sa_flags = SA_RESTART };
    uint64_t seed = seed_of_run();
    double longest_ms[FORKERS] = { 0 };
    forks_left = scaled(2000);
    must(pthread_atfork(prepare, after_in_parent, hand_on) == 0);
    must(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&thread[i], NULL, allocate, (void *)(uintptr_t)(seed + (uint64_t)i))
             == 0);
    must(pthread_create(&outside, NULL, stay_outside, NULL) == 0);
    for (int i = 0; i < FORKERS; i++)
        must(pthread_create(&forker[i], NULL, keep_forking, &longest_ms[i]) == 0);
    for (long sent = 0; forks_left > 0; sent++) {
        long before = handled;
        must(pthread_kill(outside, SIGUSR1) == 0);
        while (handled == before) sleep_ms(1);
        sleep_ms(SIGNALS_EACH);
    }
    for (int i = 0; i < FORKERS; i++) must(pthread_join(forker[i], NULL) == 0);
    stop = true;
    must(pthread_join(outside, NULL) == 0);
    for (int i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
    walk_heap();
    must(prepared == forks && in_parent == forks && operations > (unsigned long)forks);
    for (int i = 1; i < FORKERS; i++)
        if (longest_ms[i] > longest_ms[0]) longest_ms[0] = longest_ms[i];
    printf("fork_storm: %ld forks, %ld of them in signal handlers, beside %lu operations, longest "
           "fork %.1f ms\n",
           forks, handled, operations, longest_ms[0]);
    return 0;
}
