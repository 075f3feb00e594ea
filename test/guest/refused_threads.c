/* refused_threads.c - threads take all memory that there is, through every door, are refused with
 * ENOMEM and keep what they have; what one gives back, all can take. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <malloc.h>
#include <sys/resource.h>

enum { THREADS = 4, DOORS = 6, ROUNDS = 3 };

struct link {
    struct link *next;
    size_t bytes;
};

static void *take(int door, size_t bytes)
{
    void *block = NULL;
    errno = 0;
    switch (door) {
    case 0: return malloc(bytes);
    case 1: return calloc(1, bytes);
    case 2: return realloc(NULL, bytes);
    case 3: return aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    case 4: return memalign(1024, bytes);
    default: errno = posix_memalign(&block, 256, bytes); return errno == 0 ? block : NULL;
    }
}

/* Until three requests in a row are refused. */
static struct link *take_all(uint64_t *state, long *refusals)
{
    struct link *first = NULL;
    for (int in_a_row = 0; in_a_row < 3;) {
        size_t bytes = random_between(state, sizeof(struct link), 100000);
        struct link *block = take((int)random_between(state, 0, DOORS - 1), bytes);
        if (block == NULL) {
            must(errno == ENOMEM);
            in_a_row++;
            ++*refusals;
            continue;
        }
        in_a_row = 0;
        *block = (struct link){ first, bytes };
        memset(block + 1, 0x5A, bytes - sizeof *block < 64 ? bytes - sizeof *block : 64);
        first = block;
    }
    return first;
}

static void give_all(struct link *block)
{
    while (block != NULL) {
        struct link *next = block->next;
        size_t bytes = block->bytes - sizeof *block < 64 ? block->bytes - sizeof *block : 64;
        const unsigned char *byte = (const unsigned char *)(block + 1);
        for (size_t i = 0; i < bytes; i++) must(byte[i] == 0x5A);
        free(block);
        block = next;
    }
}

static pthread_barrier_t all_are_there;

static void *live(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    long refusals = 0;
    pthread_barrier_wait(&all_are_there);
    for (int round = 0; round < ROUNDS; round++) give_all(take_all(&state, &refusals));
    must(refusals >= 3 * ROUNDS);
    return NULL;
}

int main(void)
{
    require_prairie();
    uint64_t seed = seed_of_run();
    struct rlimit limit = { 32 << 20, 32 << 20 };
    pthread_t thread[THREADS];
    free(malloc(1));
    must(pthread_barrier_init(&all_are_there, NULL, THREADS) == 0);
    /* What is written counts against this one, also when the address space was reserved before. */
    must(setrlimit(RLIMIT_DATA, &limit) == 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_attr_t small;
        must(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 1 << 18) == 0);
        must(pthread_create(&thread[i], &small, live, (void *)(uintptr_t)(seed + (uint64_t)i))
             == 0);
        must(pthread_attr_destroy(&small) == 0);
    }
    for (int i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
    for (int i = 0; i < 100; i++) {
        void *block = malloc(1 << 20);
        must(block != NULL);
        free(block);
    }
    walk_heap();
    printf("refused_threads: refused, given back, served\n");
    return 0;
}
