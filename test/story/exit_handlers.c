/* exit_handlers.c - handlers of exit and quick_exit allocate and free after main is over. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <stdatomic.h>
#include <sys/wait.h>

static void *from_main;
static atomic_bool stop;
static int handled;

static void *allocate(void *unused)
{
    while (!stop) use_heap_once(5);
    return unused;
}

static void first_handler(void)
{
    handled++;
    use_heap_once(1);
    free(from_main);
    use_heap_in_threads(2, 1);
}

/* Registered last, runs first, and registers another one. */
static void second_handler(void)
{
    handled++;
    from_main = realloc(from_main, 300000);
    must(from_main != NULL);
    memset(from_main, 1, 300000);
    must(atexit(first_handler) == 0);
}

__attribute__((destructor)) static void destructor(void)
{
    use_heap_once(2);
    must(handled == 2);
    walk_heap();
}

static void quick_handler(void)
{
    use_heap_once(3);
    free(from_main);
}

static void expect_success(pid_t pid, const char *way)
{
    int status = 1;
    must(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (status != 0) give_up("%s ended with status %#x", way, status);
}

int main(void)
{
    require_prairie();
    for (int with_threads = 0; with_threads < 2; with_threads++) {
        pid_t pid = fork();
        if (pid == 0) {
            pthread_t thread;
            alarm(patience(30));
            from_main = malloc(100);
            must(atexit(second_handler) == 0);
            for (int i = 0; with_threads && i < 3; i++)
                must(pthread_create(&thread, NULL, allocate, NULL) == 0);
            exit(0);
        }
        expect_success(pid, "exit");
        pid = fork();
        if (pid == 0) {
            alarm(patience(30));
            from_main = malloc(100000);
            must(at_quick_exit(quick_handler) == 0);
            quick_exit(0);
        }
        expect_success(pid, "quick_exit");
    }
    puts("exit_handlers: exit and quick_exit, with and without threads");
    fflush(stdout);
    /* The destructor above is for the children; this process never ran the handlers. */
    _exit(0);
}
