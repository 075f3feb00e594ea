/* many_threads.c - hundreds of threads hold 100 KB each: what a thread costs, in use and idle. */
/* SPDX-License-Identifier: MIT */
/* usage: many_threads [threads]   200 unless told */
#include "../blackbox/use.h"

enum { THREADS_MAX = 2000, BLOCKS = 200, BLOCK_BYTES = 512, PER_THREAD_KB_MAX = 150 };

static pthread_barrier_t all_there, used, go_on, idle, finish;

static void *live(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    void *block[BLOCKS];
    size_t total = 0;
    pthread_barrier_wait(&all_there);
    for (int i = 0; i < BLOCKS; i++) {
        /* Mixed sizes around the mean, so that many classes are touched. */
        size_t bytes = i % 2 == 0 ? random_between(&state, 16, 2 * BLOCK_BYTES - 16)
                                  : 2 * BLOCK_BYTES - total % 997;
        if (total + bytes > BLOCKS * BLOCK_BYTES) bytes = 16;
        block[i] = malloc(bytes);
        must(block[i] != NULL);
        memset(block[i], 1, bytes);
        total += bytes;
    }
    pthread_barrier_wait(&used);
    pthread_barrier_wait(&go_on);
    for (int i = 0; i < BLOCKS; i++) free(block[i]);
    pthread_barrier_wait(&idle);
    pthread_barrier_wait(&finish);
    return NULL;
}

int main(int argc, char **argv)
{
    require_prairie();
    static pthread_t thread[THREADS_MAX];
    long threads = argc > 1 ? atol(argv[1]) : 200;
    must(threads > 0 && threads <= THREADS_MAX);
    pthread_barrier_t *barrier[] = { &all_there, &used, &go_on, &idle, &finish };
    for (int i = 0; i < 5; i++)
        must(pthread_barrier_init(barrier[i], NULL, (unsigned)threads + 1) == 0);
    use_heap_once(1);
    long before_kb = resident_kb();
    pthread_attr_t small; /* so that strict machines have room for all */
    must(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 256 << 10) == 0);
    for (size_t i = 0; i < (size_t)threads; i++) {
        int error = pthread_create(&thread[i], &small, live, (void *)(i + 1));
        /* None has taken anything yet. */
        if (error == EAGAIN) skip_test("no more than %zu threads are allowed here", i);
        must(error == 0);
    }
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&used);
    long used_kb = (resident_kb() - before_kb) / threads;
    pthread_barrier_wait(&go_on);
    pthread_barrier_wait(&idle);
    long idle_kb = (resident_kb() - before_kb) / threads;
    pthread_barrier_wait(&finish);
    for (long i = 0; i < threads; i++) must(pthread_join(thread[i], NULL) == 0);
    printf("many_threads: %ld threads of 100 KB: %ld KiB each in use, %ld KiB each after free, "
           "stacks included\n",
           threads, used_kb, idle_kb);
    must(used_kb >= 90 && used_kb <= PER_THREAD_KB_MAX);
    must(idle_kb <= PER_THREAD_KB_MAX);
    walk_heap();
    return 0;
}
