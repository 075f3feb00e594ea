/* cancel_storm.c - threads are cancelled while they allocate; their cleanup gives everything
 * back. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <malloc.h>

enum { AT_ONCE = 8, SLOTS = 50 };

struct load {
    void *block[SLOTS];
};

static void clean_up(void *argument)
{
    struct load *load = argument;
    for (int i = 0; i < SLOTS; i++) free(load->block[i]);
    for (size_t bytes = 1; bytes < 100000; bytes *= 2) free(malloc(bytes));
}

/* The heap is no cancellation point: the thread ends only where it says so, or in a call that
 * may block. */
static void *live(void *argument)
{
    struct load load = { { NULL } };
    uint64_t state = (uint64_t)(uintptr_t)argument;
    pthread_cleanup_push(clean_up, &load);
    for (;;) {
        size_t slot = random_between(&state, 0, SLOTS - 1);
        free(load.block[slot]);
        load.block[slot] = malloc(random_between(&state, 0, slot == 0 ? 100000 : 5000));
        must(load.block[slot] != NULL);
        if (slot % 8 == 0) pthread_testcancel();
    }
    pthread_cleanup_pop(1);
    return NULL;
}

int main(void)
{
    require_prairie();
    uint64_t seed = seed_of_run();
    long generations = scaled(1600) / AT_ONCE + 1;
    size_t used_before = 0;
    for (long g = -5; g < generations; g++) {
        pthread_t thread[AT_ONCE];
        if (g == 0) used_before = mallinfo2().uordblks;
        for (size_t i = 0; i < AT_ONCE; i++) {
            uint64_t state = random_next(&seed);
            must(pthread_create(&thread[i], NULL, live, (void *)(uintptr_t)state) == 0);
        }
        usleep((useconds_t)random_between(&seed, 0, 500));
        for (int i = 0; i < AT_ONCE; i++) must(pthread_cancel(thread[i]) == 0);
        for (int i = 0; i < AT_ONCE; i++) {
            void *result = NULL;
            must(pthread_join(thread[i], &result) == 0 && result == PTHREAD_CANCELED);
        }
    }
    long leaked = (long)mallinfo2().uordblks - (long)used_before;
    printf("cancel_storm: %ld threads cancelled, %ld bytes more in use\n", generations * AT_ONCE,
           leaked);
    must(any_allocator_will_do() || leaked < 64 * 1024);
    walk_heap();
    return 0;
}
