/* small_stacks.c - every door to the heap on the smallest stack that a thread can have. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <limits.h>
#include <malloc.h>

/* The thread's own frames are small; what is left of its stack is for the heap. */
static void *live(void *unused)
{
    static const size_t sizes[] = { 0,     1,     24,    100,     1000,    5000,
                                    14336, 14337, 50000, 1000000, 20000000 };
    for (long round = 0, rounds = scaled(20); round < rounds; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            char *block = round % 2 == 0 ? malloc(sizes[i]) : calloc(1, sizes[i]);
            must(block != NULL);
            if (sizes[i] > 0) block[0] = block[sizes[i] - 1] = 1;
            block = realloc(block, sizes[i] * 2 + 1);
            must(block != NULL);
            char *aligned = aligned_alloc(4096, sizes[i]);
            must(aligned != NULL);
            must(malloc(PTRDIFF_MAX) == NULL);
            free(block);
            free(aligned);
        }
        malloc_trim(0);
    }
    return unused;
}

int main(void)
{
    require_prairie();
    pthread_attr_t attributes;
    pthread_t thread[8];
    must(pthread_attr_init(&attributes) == 0);
    must(pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN) == 0);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 8; i++) must(pthread_create(&thread[i], &attributes, live, NULL) == 0);
        for (int i = 0; i < 8; i++) must(pthread_join(thread[i], NULL) == 0);
    }
    walk_heap();
    printf("small_stacks: 40 threads of %ld bytes of stack\n", (long)PTHREAD_STACK_MIN);
    return 0;
}
