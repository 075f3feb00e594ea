/* defrag.c - a program that moves its blocks where the hint says so gets its memory back. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/blackbox.h"

#include <jemalloc/jemalloc.h>
#include <prairie/prairie.h>

enum { COUNT = 200000, KEPT_EVERY = 10, BYTES = 160 };

static void *(*take)(size_t, int);
static void (*give)(void *, int);
static int (*hint)(void *);

static size_t active_bytes(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    bool (*read_stats)(struct prairie_stats *) =
        (bool (*)(struct prairie_stats *))dlsym(RTLD_DEFAULT, "prairie_stats_read");

    must(read_stats != NULL && read_stats(&stats));
    return stats.active;
}

int main(void)
{
    static char *block[COUNT];
    size_t sparse, dense, moved = 0, wanted = (size_t)COUNT / KEPT_EVERY * BYTES;

    require_prairie();
    take = (void *(*)(size_t, int))dlsym(RTLD_DEFAULT, "mallocx");
    give = (void (*)(void *, int))dlsym(RTLD_DEFAULT, "dallocx");
    hint = (int (*)(void *))dlsym(RTLD_DEFAULT, "prairie_defrag_hint");
    must(take != NULL && give != NULL && hint != NULL);
    for (int i = 0; i < COUNT; i++) {
        block[i] = take(BYTES, 0);
        memset(block[i], i, BYTES);
    }
    must(hint(block) == 0); /* not a block of prairie's */
    for (int i = 0; i < COUNT; i++)
        if (i % KEPT_EVERY != 0) free(block[i]);
    sparse = active_bytes();
    must(sparse > 4 * wanted);
    for (int pass = 0; pass < 6; pass++) {
        for (int i = 0; i < COUNT; i += KEPT_EVERY) {
            char *other;
            if (!hint(block[i])) continue;
            other = take(BYTES, MALLOCX_TCACHE_NONE);
            must(other != NULL);
            memcpy(other, block[i], BYTES);
            give(block[i], MALLOCX_TCACHE_NONE);
            block[i] = other;
            moved++;
        }
    }
    for (int i = 0; i < COUNT; i += KEPT_EVERY)
        for (int at = 0; at < BYTES; at++) must(block[i][at] == (char)i);
    dense = active_bytes();
    printf("%zu bytes of pages for %zu of blocks, %zu after %zu moves\n", sparse, wanted, dense,
           moved);
    must(dense < 2 * wanted);
    walk_heap();
    return 0;
}
