/* hooks.c - arenas on mappings of the program's own, beside a heap that takes all the page numbers
 * it can have. */
/* SPDX-License-Identifier: MIT */
/* usage: hooks numbers: sets a limit of address space and starts itself again under it.
 *        hooks many */
#include "limits.h"

#include <jemalloc/jemalloc.h>

#include <dlfcn.h>
#include <sys/mman.h>

#define MIB ((size_t)1 << 20)
enum { BLOCK_COUNT = 4096, EXTENT_COUNT = 5000 };

static int (*control)(const char *, void *, size_t *, void *, size_t);
static void *(*take)(size_t, int);

static void *map(extent_hooks_t *hooks, void *wanted, size_t bytes, size_t align, bool *zero,
                 bool *commit, unsigned arena)
{
    void *base;

    (void)hooks, (void)arena;
    if (wanted != NULL || align > 4096) return NULL;
    base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *zero = *commit = true;
    return base == MAP_FAILED ? NULL : base;
}

static bool unmap(extent_hooks_t *hooks, void *base, size_t bytes, bool committed, unsigned arena)
{
    (void)hooks, (void)committed, (void)arena;
    return munmap(base, bytes) != 0;
}

static unsigned make_arena(void)
{
    static extent_hooks_t hooks = { .alloc = map, .dalloc = unmap };
    extent_hooks_t *table = &hooks;
    unsigned arena = 0;
    size_t length = sizeof arena;
    char name[40];

    must(control("arenas.create", &arena, &length, NULL, 0) == 0);
    snprintf(name, sizeof name, "arena.%u.extent_hooks", arena);
    must(control(name, NULL, NULL, &table, sizeof table) == 0);
    return arena;
}

static void destroy(unsigned arena)
{
    char name[40];

    snprintf(name, sizeof name, "arena.%u.destroy", arena);
    must(control(name, NULL, NULL, NULL, 0) == 0);
}

/* Numbers that an arena's memory had once are not given to the heap, which grows meanwhile. */
static void numbers_stay_apart(void)
{
    static char *block[BLOCK_COUNT];
    unsigned arena = make_arena();
    size_t count = 0;
    char *theirs;

    theirs = take(512 * MIB, MALLOCX_ARENA(arena));
    must(theirs != NULL);
    destroy(arena);
    limit(RLIMIT_AS, RLIM_INFINITY);
    while (count < BLOCK_COUNT && (block[count] = malloc(MIB)) != NULL) {
        block[count][0] = 1;
        count++;
    }
    printf("the heap grew to %zu MiB\n", count);
    must(count > 500);
    arena = make_arena();
    theirs = take(512 * MIB, MALLOCX_ARENA(arena));
    must(theirs != NULL);
    theirs[0] = theirs[512 * MIB - 1] = 1;
    while (count > 0) free(block[--count]);
    free(theirs);
    walk_heap();
    destroy(arena);
}

static void many_at_once(void)
{
    static unsigned char *block[EXTENT_COUNT];
    unsigned arena = make_arena();

    for (size_t i = 0; i < EXTENT_COUNT; i++) {
        block[i] = take(20000 + i % 8 * 4096, MALLOCX_ARENA(arena));
        must(block[i] != NULL);
        stamp(block[i], 4096, i);
    }
    walk_heap();
    for (size_t i = 0; i < EXTENT_COUNT; i++) {
        size_t at = i * 7 % EXTENT_COUNT + (i * 7 / EXTENT_COUNT) % 7;

        at %= EXTENT_COUNT;
        if (block[at] == NULL) continue;
        must(stamp_holds(block[at], 4096, at));
        must(malloc_usable_size(block[at]) == (20000 + at % 8 * 4096 + 4095) / 4096 * 4096);
        free(block[at]);
        block[at] = NULL;
    }
    for (size_t i = 0; i < EXTENT_COUNT; i++) free(block[i]);
    walk_heap();
    destroy(arena);
}

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 2);
    if (strcmp(argv[1], "numbers") == 0) {
        limit(RLIMIT_AS, 2048 * MIB);
        start_again(argv, "limited");
    }
    control =
        (int (*)(const char *, void *, size_t *, void *, size_t))dlsym(RTLD_DEFAULT, "mallctl");
    take = (void *(*)(size_t, int))dlsym(RTLD_DEFAULT, "mallocx");
    must(control != NULL && take != NULL);
    if (strcmp(argv[1], "many") == 0) many_at_once();
    else numbers_stay_apart();
    return 0;
}
