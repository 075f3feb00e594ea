/* ifunc.c - the program's own ifunc resolver allocates and frees, before anything else of it
 * has run. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

static void *from_resolver;

/* Runs while the loader still relocates this program: thread-local variables have no initial
 * values yet. */
static int answer_42(void) { return 42; }

__attribute__((used)) static int (*resolve(void))(void)
{
    for (size_t bytes = 1; bytes <= 100000; bytes *= 7) {
        char *block = malloc(bytes);
        if (block == NULL) return NULL;
        block[0] = block[bytes - 1] = 1;
        free(block);
    }
    from_resolver = calloc(3, 1000);
    return answer_42;
}

int answer(void) __attribute__((ifunc("resolve")));

int main(void)
{
    require_prairie();
    must(answer() == 42);
    must(from_resolver != NULL && ((char *)from_resolver)[2999] == 0);
    free(from_resolver);
    use_heap_once(1);
    use_heap_in_threads(4, 3);
    walk_heap();
    puts("ifunc: the resolver's block outlived the loader");
    return 0;
}
