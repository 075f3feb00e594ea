/* one_core.c - a process bound to a single core, from its start and later on. */
/* SPDX-License-Identifier: MIT */
#include "limits.h"

#include <sched.h>

static int first_allowed_core(void)
{
    cpu_set_t allowed;
    must(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &allowed)) return core;
    give_up("no core is allowed");
}

/* Threads that each sit on a core of their own choice, changed while they work. */
static void *wander(void *argument)
{
    cpu_set_t *allowed = argument;
    for (int round = 0; round < 30; round++) {
        for (int core = 0, seen = 0; core < CPU_SETSIZE; core++) {
            if (!CPU_ISSET(core, allowed) || seen++ % 2 != round % 2) continue;
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            must(sched_setaffinity(0, sizeof one, &one) == 0);
            break;
        }
        use_heap_once((size_t)round);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    require_prairie();
    cpu_set_t all, one;
    must(sched_getaffinity(0, sizeof all, &all) == 0);
    if (argc == 1) {
        pthread_t thread[4];
        for (int i = 0; i < 4; i++) must(pthread_create(&thread[i], NULL, wander, &all) == 0);
        for (int i = 0; i < 4; i++) must(pthread_join(thread[i], NULL) == 0);
        CPU_ZERO(&one);
        CPU_SET(first_allowed_core(), &one);
        must(sched_setaffinity(0, sizeof one, &one) == 0);
        start_again(argv, "bound");
    }
    must(CPU_COUNT(&all) == 1);
    use_heap_once(1);
    double start_ms = now_ms();
    use_heap_in_threads(8, 20);
    walk_heap();
    printf("one_core: 8 threads took %.0f ms\n", now_ms() - start_ms);
    return 0;
}
