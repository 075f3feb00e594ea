/* phases.c - a program whose sizes change from phase to phase: memory of one phase serves the
 * next. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

enum { PHASE_MIB = 100, ALLOWED_KB = 140 * 1024 };

struct chain {
    struct chain *next;
};

static struct chain *take(size_t bytes)
{
    struct chain *first = NULL;
    for (size_t taken = 0; taken < (size_t)PHASE_MIB << 20; taken += bytes) {
        struct chain *block = malloc(bytes);
        must(block != NULL);
        for (size_t at = 0; at < bytes; at += 4096) ((char *)block)[at] = 1;
        block->next = first;
        first = block;
    }
    return first;
}

/* By turns from the newest, and every other one first, so that pages empty in different orders. */
static void give(struct chain *first, bool in_two_passes)
{
    struct chain *later = NULL;
    for (size_t i = 0; first != NULL; i++) {
        struct chain *next = first->next;
        if (in_two_passes && i % 2 == 0) {
            first->next = later;
            later = first;
        } else {
            free(first);
        }
        first = next;
    }
    while (later != NULL) {
        struct chain *next = later->next;
        free(later);
        later = next;
    }
}

static void *phase_of_thread(void *bytes)
{
    give(take((size_t)bytes), true);
    return NULL;
}

int main(void)
{
    require_prairie();
    static const size_t sizes[] = {
        32, 100000, 64, 1000, 14336, 48, 16384, 1 << 20, 200, 5000, 16
    };
    enum { PHASES = sizeof sizes / sizeof sizes[0] };
    use_heap_once(1);
    long before_kb = resident_kb(), most_kb = 0;
    long rounds = scaled(2);
    for (long round = 0; round < rounds; round++) {
        for (size_t i = 0; i < PHASES; i++) {
            struct chain *chain = take(sizes[i]);
            long now_kb = resident_kb() - before_kb;
            if (now_kb > most_kb) most_kb = now_kb;
            printf("phase of %7zu bytes: %ld KiB held\n", sizes[i], now_kb);
            give(chain, i % 2 == 0);
        }
        /* Each phase in a thread of its own: what it leaves behind has to be there for the
         * others. */
        for (size_t i = 0; i < PHASES; i++) {
            pthread_t thread;
            must(pthread_create(&thread, NULL, phase_of_thread, (void *)sizes[i]) == 0);
            must(pthread_join(thread, NULL) == 0);
        }
        struct chain *chain = take(100);
        long now_kb = resident_kb() - before_kb;
        give(chain, false);
        if (now_kb > most_kb) most_kb = now_kb;
    }
    printf("phases: at most %ld KiB held of %d allowed for %d MiB in use\n", most_kb, ALLOWED_KB,
           PHASE_MIB);
    must(most_kb <= ALLOWED_KB);
    walk_heap();
    return 0;
}
