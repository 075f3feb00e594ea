/* first_call.c - many processes whose first threads meet at a barrier and then all allocate. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <spawn.h>
#include <sys/wait.h>

enum { THREADS = 8, AT_ONCE = 4 };

extern char **environ;

static void *call_first(void *argument)
{
    pthread_barrier_wait(argument);
    unsigned char *block[20];
    for (size_t i = 0; i < 20; i++) {
        block[i] = malloc(use_size(i * 12));
        must(block[i] != NULL);
        use_block_fully(block[i], use_size(i * 12), i);
    }
    for (size_t i = 0; i < 20; i++) {
        must(use_block_holds(block[i], use_size(i * 12), i));
        free(block[i]);
    }
    return NULL;
}

static int child(void)
{
    pthread_t thread[THREADS];
    pthread_barrier_t barrier;
    must(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&thread[i], NULL, call_first, &barrier) == 0);
    for (int i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
    return 0;
}

int main(int argc, char **argv)
{
    require_prairie();
    if (argc == 2) return child();
    long processes = scaled(400);
    char *words[] = { argv[0], "child", NULL };
    for (long i = 0; i < processes; i += AT_ONCE) {
        pid_t pid[AT_ONCE];
        for (int k = 0; k < AT_ONCE; k++)
            must(posix_spawn(&pid[k], "/proc/self/exe", NULL, NULL, words, environ) == 0);
        for (int k = 0; k < AT_ONCE; k++) {
            int status = 1;
            must(waitpid(pid[k], &status, 0) == pid[k]);
            if (status != 0) give_up("process %ld ended with status %d", i + k, status);
        }
    }
    printf("first_call: %ld processes of %d threads\n", processes, THREADS);
    return 0;
}
