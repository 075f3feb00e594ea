/* neighbours.c - the program maps, unmaps and moves memory of its own, and its break, all around
 * the heap. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <stdatomic.h>
#include <sys/mman.h>

enum { MAPPINGS = 64, PAGE = 4096, PAGES_MAX = 64, BREAK_BYTES = 64 * 1024 };

/* A mapping of the program's own; every page holds a number at both ends. */
struct mapping {
    char *base;
    size_t bytes;
    uint64_t key;
};

static atomic_bool over;
static atomic_ulong mapped, moved, breaks;

static uint64_t *end_of(const struct mapping *mapping, size_t at)
{
    return (uint64_t *)(void *)(mapping->base + at + PAGE - sizeof(uint64_t));
}

static void mark(const struct mapping *mapping)
{
    for (size_t at = 0; at < mapping->bytes; at += PAGE)
        *(uint64_t *)(void *)(mapping->base + at) = *end_of(mapping, at) = mapping->key + at;
}

static void expect_marks(const struct mapping *mapping, size_t bytes)
{
    for (size_t at = 0; at < bytes && at < mapping->bytes; at += PAGE)
        must(*(uint64_t *)(void *)(mapping->base + at) == mapping->key + at
             && *end_of(mapping, at) == mapping->key + at);
}

/* As near to a block as the kernel allows. */
static void map_beside_heap(struct mapping *mapping, uint64_t *random)
{
    size_t bytes = random_between(random, 1, PAGES_MAX) * PAGE;
    char *block = malloc(random_between(random, 1, 3 << 20));
    char *hint = block + (ptrdiff_t)random_between(random, 0, 2000) * PAGE - 1000 * PAGE;
    void *base = mmap((void *)((uintptr_t)hint & ~(uintptr_t)(PAGE - 1)), bytes,
                      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    must(block != NULL && base != MAP_FAILED);
    *mapping = (struct mapping){ base, bytes, random_next(random) };
    mark(mapping);
    free(block);
    mapped++;
}

static void unmap(struct mapping *mapping)
{
    expect_marks(mapping, mapping->bytes);
    must(munmap(mapping->base, mapping->bytes) == 0);
    mapping->base = NULL;
}

static void move(struct mapping *mapping, uint64_t *random)
{
    size_t bytes = random_between(random, 1, PAGES_MAX) * PAGE;
    void *base = mremap(mapping->base, mapping->bytes, bytes, MREMAP_MAYMOVE);

    must(base != MAP_FAILED);
    mapping->base = base;
    expect_marks(mapping, bytes);
    mapping->bytes = bytes;
    mark(mapping);
    moved++;
}

/* Only one thread moves the break. */
static void move_break(uint64_t *random)
{
    static char *bottom;
    static size_t bytes;
    size_t wanted = random_between(random, 0, 16) * BREAK_BYTES;

    if (bottom == NULL) bottom = sbrk(0);
    must(sbrk((intptr_t)wanted - (intptr_t)bytes) == bottom + bytes);
    for (size_t at = 0; at < bytes && at < wanted; at += PAGE) must(bottom[at] == 'b');
    for (size_t at = 0; at < wanted; at += PAGE) bottom[at] = 'b';
    bytes = wanted;
    breaks++;
}

static void *map_all_around(void *seed)
{
    static struct mapping mapping[MAPPINGS];
    uint64_t *random = seed;

    while (!atomic_load(&over)) {
        struct mapping *one = &mapping[random_between(random, 0, MAPPINGS - 1)];
        if (one->base == NULL) map_beside_heap(one, random);
        else if (random_between(random, 0, 2) == 0) move(one, random);
        else unmap(one);
        if (random_between(random, 0, 9) == 0) move_break(random);
    }
    for (size_t i = 0; i < MAPPINGS; i++)
        if (mapping[i].base != NULL) unmap(&mapping[i]);
    return NULL;
}

/* How often each was done at least. */
static bool has_done_enough(void) { return mapped > 100 && moved > 50 && breaks > 20; }

int main(void)
{
    require_prairie();
    uint64_t random = seed_of_run();
    pthread_t thread;

    must(pthread_create(&thread, NULL, map_all_around, &random) == 0);
    double start_ms = now_ms();
    for (long round = scaled(10);
         round > 0 || (!has_done_enough() && now_ms() - start_ms < patience(60000)); round--) {
        use_heap_in_threads(3, 10);
        void *vast = sizeof(void *) == 8 ? malloc((size_t)64 << 30) : NULL;
        if (vast != NULL) *(char *)vast = 1;
        free(vast);
    }
    atomic_store(&over, true);
    must(pthread_join(thread, NULL) == 0);
    printf("neighbours: %lu mappings beside the heap, %lu moves, %lu breaks\n", mapped, moved,
           breaks);
    must(has_done_enough());
    walk_heap();
    return 0;
}
