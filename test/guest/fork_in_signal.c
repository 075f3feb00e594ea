/* fork_in_signal.c - a signal handler that interrupts calls into the heap forks. */
/* SPDX-License-Identifier: MIT */
/* usage: fork_in_signal single|threads     fork() in a process with one thread, whose child goes on
 * where the signal came; _Fork() in one with threads, whose child leaves at once */
#include "../blackbox/use.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { THREADS = 3, SECONDS = 20, FORKS = 100 };

extern pid_t _Fork(void) __attribute__((weak));

static atomic_bool stop;
static volatile sig_atomic_t forks, is_child;

static void wait_for(pid_t pid)
{
    int status = 1;
    while (waitpid(pid, &status, 0) != pid)
        if (errno != EINTR) _exit(2);
    if (status != 0) _exit(3);
}

/* Both kinds of child are short-lived; the signal comes again only after this one. */
static void fork_here(int signal)
{
    int before = errno;
    (void)signal;
    if (stop || is_child) return;
    pid_t pid = fork();
    if (pid < 0) _exit(1);
    if (pid == 0) {
        alarm(SECONDS);
        is_child = 1; /* and back into the middle of the heap */
    } else {
        wait_for(pid);
        forks++;
    }
    errno = before;
}

static void leave_here(int signal)
{
    int before = errno;
    (void)signal;
    if (stop) return;
    pid_t pid = _Fork();
    if (pid < 0) _exit(1);
    if (pid == 0) _exit(0);
    wait_for(pid);
    forks++;
    errno = before;
}

/* Mostly calls that find nothing ready: those that hold locks. */
static void allocate(uint64_t *state)
{
    static _Thread_local void *block[400];
    for (int i = 0; i < 400; i++) block[i] = malloc(random_between(state, 0, 40) * 500);
    for (int i = 0; i < 400; i++) free(block[i]);
    free(malloc(300000));
}

static void *keep_allocating(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    while (!stop) allocate(&state);
    return NULL;
}

static void *use_one_heap(void *unused)
{
    use_heap_once(1);
    return unused;
}

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 2);
    bool single = strcmp(argv[1], "single") == 0;
    uint64_t state = seed_of_run();
    pthread_t thread[THREADS];
    struct sigaction action = { .sa_handler = single ? fork_here : leave_here };
    struct itimerval often = { { 0, 700 }, { 0, 700 } }, never = { { 0, 0 }, { 0, 0 } };
    long wanted = scaled(FORKS);
    if (!single && _Fork == NULL) skip_test("this C library has no _Fork");
    for (int i = 0; i < THREADS && !single; i++)
        must(pthread_create(&thread[i], NULL, keep_allocating, (void *)(uintptr_t)(state + 1))
             == 0);
    must(sigaction(SIGPROF, &action, NULL) == 0 && setitimer(ITIMER_PROF, &often, NULL) == 0);
    alarm(3 * SECONDS);
    while (forks < wanted && !is_child) allocate(&state);
    if (is_child) {
        for (int i = 0; i < 5; i++) allocate(&state);
        must(pthread_create(&thread[0], NULL, use_one_heap, NULL) == 0);
        must(pthread_join(thread[0], NULL) == 0);
        walk_heap();
        _exit(0);
    }
    stop = true;
    must(setitimer(ITIMER_PROF, &never, NULL) == 0);
    for (int i = 0; i < THREADS && !single; i++) must(pthread_join(thread[i], NULL) == 0);
    use_heap_once(1);
    walk_heap();
    printf("fork_in_signal: %d forks, %s\n", (int)forks, argv[1]);
    return 0;
}
