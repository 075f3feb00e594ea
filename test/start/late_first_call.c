/* late_first_call.c - eight threads make the very first call into prairie at the same moment,
 * in many processes. */
/* SPDX-License-Identifier: MIT */
#include "late.h"

#include <sys/wait.h>

enum { THREADS = 8 };
static pthread_barrier_t barrier;

static void *call_first(void *argument)
{
    size_t index = (size_t)argument;
    pthread_barrier_wait(&barrier);
    unsigned char *block = heap.malloc(100 + index);
    must(block != NULL);
    stamp(block, 100 + index, index);
    unsigned char *large = heap.calloc(1, 100000);
    must(large != NULL && large[99999] == 0);
    must(stamp_holds(block, 100 + index, index));
    heap.free(large);
    heap.free(block);
    return NULL;
}

static void child(void)
{
    pthread_t thread[THREADS];
    late_load();
    must(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    for (size_t i = 0; i < THREADS; i++)
        must(pthread_create(&thread[i], NULL, call_first, (void *)i) == 0);
    for (size_t i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
    use_heap_once(70);
    _exit(0);
}

int main(void)
{
    long processes = scaled(400);
    for (long i = 0; i < processes; i++) {
        int status = 1;
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20);
            child();
        }
        must(pid > 0 && waitpid(pid, &status, 0) == pid);
        if (status != 0) give_up("process %ld ended with status %d", i, status);
    }
    printf("late_first_call: %ld processes of %d threads\n", processes, THREADS);
    return 0;
}
