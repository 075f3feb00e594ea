/* limits.h - filling a limited heap to the brim, and what must hold there. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_LIMITS_H
#define PRAIRIE_TEST_LIMITS_H

#include "../blackbox/use.h"

#include <sys/resource.h>

/* Blocks of a filled heap hang in a chain through themselves. */
struct fill {
    void *first;
    size_t blocks;
    size_t bytes;
};

/* Takes and writes blocks until the heap says no, which it must before `most_bytes`. */
SHARED struct fill fill_heap(size_t block_bytes, size_t most_bytes)
{
    struct fill fill = { NULL, 0, 0 };
    for (;;) {
        errno = 0;
        void **block = malloc(block_bytes);
        if (block == NULL) break;
        for (size_t at = 0; at < block_bytes; at += 4096) ((char *)block)[at] = 1;
        *block = fill.first;
        fill.first = block;
        fill.blocks++;
        fill.bytes += block_bytes;
        if (fill.bytes > most_bytes)
            give_up("the limit does not hold: %zu MiB in blocks of %zu", fill.bytes >> 20,
                    block_bytes);
    }
    if (errno != ENOMEM) give_up("refused with errno %d instead of ENOMEM", errno);
    return fill;
}

SHARED void empty_heap(struct fill fill)
{
    while (fill.first != NULL) {
        void *next = *(void **)fill.first;
        free(fill.first);
        fill.first = next;
    }
}

/* Fills with several sizes in turn. Each time at least `least_bytes` are had, also the second
 * time round, when everything comes from what was freed. Blocks of a MiB and more need
 * neighbouring pages: the whole blocks in a quarter of that are enough for them. */
SHARED void fill_and_refill(size_t least_bytes, size_t most_bytes)
{
    static const size_t sizes[] = { 1 << 20, 64, 1000, 14336, 100000, 4096, 24, 3 << 20, 64 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct fill fill = fill_heap(sizes[i], most_bytes);
        /* With nothing left, giving back and absurd requests still work. */
        must(malloc(PTRDIFF_MAX) == NULL && errno == ENOMEM);
        must(realloc(fill.first, most_bytes * 2) == NULL && errno == ENOMEM);
        must(calloc(most_bytes, 2) == NULL && errno == ENOMEM);
        empty_heap(fill);
        printf("blocks of %8zu: %5.1f MiB in %zu\n", sizes[i], (double)fill.bytes / (1 << 20),
               fill.blocks);
        fflush(stdout);
        size_t least = sizes[i] >= 1 << 20 ? least_bytes / 4 / sizes[i] * sizes[i] : least_bytes;
        if (fill.bytes < least)
            give_up("only %zu KiB in blocks of %zu, not %zu", fill.bytes >> 10, sizes[i],
                    least >> 10);
    }
}

SHARED void limit(int resource, size_t bytes)
{
    struct rlimit soft = { bytes, RLIM_INFINITY };
    struct rlimit old;
    must(getrlimit(resource, &old) == 0);
    soft.rlim_max = old.rlim_max;
    must(setrlimit(resource, &soft) == 0);
}

/* Starts this program anew, under what was set up before. */
SHARED void start_again(char **argv, const char *word)
{
    char *words[] = { argv[0], (char *)(uintptr_t)word, NULL };
    execv("/proc/self/exe", words);
    give_up("execv: errno %d", errno);
}

#endif
