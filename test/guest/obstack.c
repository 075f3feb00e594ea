/* obstack.c - the C library's stacks of objects, which grow in blocks of the program's malloc and
 * give them back in pieces. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <malloc.h>
#include <obstack.h>

#define obstack_chunk_alloc malloc
#define obstack_chunk_free free

enum { OBJECTS = 3000 };

static void build(uint64_t *state, int mask)
{
    static char *object[OBJECTS];
    static size_t bytes[OBJECTS];
    struct obstack stack;
    obstack_init(&stack);
    obstack_alignment_mask(&stack) = mask;
    for (size_t i = 0; i < OBJECTS; i++) {
        bytes[i] = random_between(state, 1, i % 50 == 0 ? 40000 : 300);
        for (size_t n = 0; n < bytes[i]; n++) obstack_1grow(&stack, (char)(i * 7));
        object[i] = obstack_finish(&stack);
        must(((uintptr_t)object[i] & (uintptr_t)mask) == 0 || i == 0);
    }
    for (size_t i = OBJECTS; i-- > 0;) {
        for (size_t n = 0; n < bytes[i]; n++) must(object[i][n] == (char)(i * 7));
        if (i % 100 == 0) obstack_free(&stack, object[i]);
    }
    obstack_free(&stack, NULL);
}

int main(void)
{
    require_prairie();
    uint64_t state = seed_of_run();
    size_t used = 0;
    for (int round = 0; round < 20; round++) {
        build(&state, round % 2 == 0 ? 15 : 63);
        if (round == 1) used = mallinfo2().uordblks;
    }
    must(mallinfo2().uordblks <= used);
    walk_heap();
    printf("obstack: built and given back\n");
    return 0;
}
