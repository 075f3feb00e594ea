/* fork_handlers.c - atfork handlers that allocate, registered before, after and long after the
 * heap was first used. */
/* SPDX-License-Identifier: MIT */
/* usage: fork_handlers preinit|main|late     registered before main, in main, after the threads
 * were made */
#include "../blackbox/use.h"

#include <stdatomic.h>
#include <sys/wait.h>

enum { THREADS = 3 };

static atomic_bool stop;
static int prepared, in_parent, in_child;
static void *early_block, *late_block;

static void *allocate(void *unused)
{
    while (!stop) {
        use_heap_once(5);
        sleep_ms(1);
    }
    return unused;
}

static void early_prepare(void)
{
    prepared++;
    early_block = malloc(3000);
    must(early_block != NULL);
    use_heap_once(1);
}
static void early_parent(void)
{
    in_parent++;
    free(early_block);
    use_heap_once(2);
}
static void early_child(void)
{
    in_child++;
    free(early_block);
    use_heap_once(3);
}

static void late_prepare(void)
{
    prepared++;
    late_block = calloc(1, 200000);
    must(late_block != NULL);
    free(malloc(24));
}
static void late_parent(void)
{
    in_parent++;
    late_block = realloc(late_block, 400000);
    free(late_block);
}
static void late_child(void)
{
    in_child++;
    late_block = realloc(late_block, 400000);
    free(late_block);
    use_heap_once(4);
}

/* As early as a program can. Prepare handlers run in reverse order, so this one is the last of
 * all, when every handler that takes locks has taken them; the others run in order, so that
 * these are the first. */
static void preinit(int argc, char **argv, char **environment)
{
    (void)environment;
    if (argc == 2 && strcmp(argv[1], "preinit") == 0)
        must(pthread_atfork(early_prepare, early_parent, early_child) == 0);
}
__attribute__((section(".preinit_array"),
               used)) static void (*const preinit_entry)(int, char **, char **) = preinit;

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 2);
    pthread_t thread[THREADS];
    long forks = scaled(60);
    if (strcmp(argv[1], "main") == 0)
        must(pthread_atfork(late_prepare, late_parent, late_child) == 0);
    for (int i = 0; i < THREADS; i++) must(pthread_create(&thread[i], NULL, allocate, NULL) == 0);
    sleep_ms(20);
    if (strcmp(argv[1], "late") == 0)
        must(pthread_atfork(late_prepare, late_parent, late_child) == 0);
    for (long f = 0; f < forks; f++) {
        int status = 1;
        pid_t pid = fork();
        if (pid == 0) {
            alarm(patience(20));
            must(in_child == 1);
            use_heap_in_threads(2, 1);
            walk_heap();
            _exit(0);
        }
        must(pid > 0 && waitpid(pid, &status, 0) == pid);
        if (status != 0) give_up("child %ld ended with status %#x", f, status);
    }
    stop = true;
    for (int i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
    must(prepared == forks && in_parent == forks && in_child == 0);
    walk_heap();
    printf("fork_handlers: %ld forks with allocating handlers, registered %s\n", forks, argv[1]);
    return 0;
}
