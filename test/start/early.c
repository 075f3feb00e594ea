/* early.c - the heap works before main: in preinit_array and in the first constructors. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

/* Blocks from each stage stay alive and are freed by the next, so that no stage works on a heap
 * of its own. */
static void *from_preinit, *from_constructor;
static int stages;

static void preinit(int argc, char **argv, char **environment)
{
    (void)argc, (void)argv, (void)environment;
    from_preinit = malloc(50000);
    memset(from_preinit, 2, 50000);
    stages |= 1;
}

__attribute__((section(".preinit_array"),
               used)) static void (*const preinit_entry)(int, char **, char **) = preinit;

__attribute__((constructor(101))) static void constructor(void)
{
    must(from_preinit != NULL && ((char *)from_preinit)[49999] == 2);
    from_preinit = realloc(from_preinit, 100);
    free(from_preinit);
    use_heap_once(1);
    from_constructor = malloc(24);
    stages |= 2;
}

__attribute__((destructor(101))) static void destructor(void)
{
    use_heap_once(2);
    void *last = malloc(100);
    must(last != NULL);
    free(last);
}

int main(void)
{
    require_prairie();
    must(stages == 3);
    free(from_constructor);
    use_heap_once(3);
    use_heap_in_threads(4, 3);
    walk_heap();
    puts("early: preinit_array, constructor, main, destructor");
    return 0;
}
