/* priorities.c - threads that always go first want the heap's lock from threads that never do:
 * whoever wants a lock sleeps before long, so that its holder can run. */
/* SPDX-License-Identifier: MIT */
/* All on one core, in one arena and without caches, so that each call takes the lock. A taker that
 * only spins keeps the core from the holder until the kernel takes it away, after most of a second:
 * minutes in all, and not a second. */
#include "../blackbox/use.h"

#include <sched.h>
#include <stdatomic.h>

enum { FIRST = 2, LAST = 3, BURSTS = 500, BLOCKS = 20, SECONDS_MAX = 30 };

static atomic_bool over;
static atomic_long last_rounds;

static void use_blocks(uint64_t *random)
{
    char *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        block[i] = malloc(random_between(random, 1, 2000));
        must(block[i] != NULL);
        block[i][0] = 'b';
    }
    for (int i = 0; i < BLOCKS; i++) free(block[i]);
}

/* Takes the core from everybody else, for a moment each. */
static void *go_first(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;
    for (long burst = scaled(BURSTS); burst > 0; burst--) {
        use_blocks(&random);
        struct timespec pause = { 0, (long)random_between(&random, 100000, 900000) };
        (void)nanosleep(&pause, NULL);
    }
    return NULL;
}

static void *go_last(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;
    while (!over) {
        use_blocks(&random);
        last_rounds++;
    }
    return NULL;
}

static void bind_to_one_core(void)
{
    cpu_set_t allowed, one;
    must(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; core++)
        if (CPU_ISSET(core, &allowed)) CPU_SET(core, &one);
    must(sched_setaffinity(0, sizeof one, &one) == 0);
}

static pthread_t start_first(size_t seed)
{
    pthread_t thread;
    pthread_attr_t attributes;
    struct sched_param priority = { .sched_priority = 10 };
    must(pthread_attr_init(&attributes) == 0);
    must(pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED) == 0);
    must(pthread_attr_setschedpolicy(&attributes, SCHED_FIFO) == 0);
    must(pthread_attr_setschedparam(&attributes, &priority) == 0);
    int error = pthread_create(&thread, &attributes, go_first, (void *)seed);
    if (error == EPERM) skip_test("no thread may go first here");
    must(error == 0);
    pthread_attr_destroy(&attributes);
    return thread;
}

int main(void)
{
    require_prairie();
    bind_to_one_core();
    pthread_t last[LAST], first[FIRST];
    double start_ms = now_ms();
    for (size_t i = 0; i < LAST; i++)
        must(pthread_create(&last[i], NULL, go_last, (void *)(i + 1)) == 0);
    for (size_t i = 0; i < FIRST; i++) first[i] = start_first(i + 100);
    for (size_t i = 0; i < FIRST; i++) must(pthread_join(first[i], NULL) == 0);
    double spent_ms = now_ms() - start_ms;
    over = true;
    for (size_t i = 0; i < LAST; i++) must(pthread_join(last[i], NULL) == 0);
    printf("priorities: %ld bursts of %d threads that go first took %.0f ms, %ld rounds of the "
           "others\n",
           scaled(BURSTS), FIRST, spent_ms, (long)last_rounds);
    must(last_rounds > 0);
    if (spent_ms > patience(SECONDS_MAX) * 1000.0) give_up("who goes first waits too long");
    return 0;
}
