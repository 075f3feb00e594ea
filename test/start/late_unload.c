/* late_unload.c - a thread that used prairie ends after the library was closed. */
/* SPDX-License-Identifier: MIT */
#include "late.h"

enum { THREADS = 8 };
static pthread_barrier_t used, closed;

static void *outlive(void *unused)
{
    use_heap_once(50);
    void *kept = heap.malloc(100);
    must(kept != NULL);
    pthread_barrier_wait(&used);
    pthread_barrier_wait(&closed);
    /* The thread ends with full caches and prairie's hook for its end. */
    return unused;
}

int main(void)
{
    pthread_t thread[THREADS];
    must(pthread_barrier_init(&used, NULL, THREADS + 1) == 0);
    must(pthread_barrier_init(&closed, NULL, THREADS + 1) == 0);
    void *handle = late_load();
    for (int i = 0; i < THREADS; i++) must(pthread_create(&thread[i], NULL, outlive, NULL) == 0);
    pthread_barrier_wait(&used);
    must(dlclose(handle) == 0);
    pthread_barrier_wait(&closed);
    for (int i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);

    /* It may be opened again, and finds its heap as it was, or a new one. */
    heap = (struct heap){ malloc, calloc, realloc, aligned_alloc, free };
    handle = late_load();
    use_heap_once(60);
    use_heap_in_threads(4, 2);
    must(dlclose(handle) == 0);
    puts("late_unload: threads outlived dlclose");
    return 0;
}
