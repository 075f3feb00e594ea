/* magazines_fuzz.c - magazines, depots and explicit caches: no block is given twice, none is
 * lost. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "crowd.h"
#include "unit/threads.h"

#include <jemalloc/jemalloc.h>

const unsigned fuzz_bytes_max = 500;

enum { CACHES = 3 };
static unsigned caches[CACHES];

/* Another thread gives back what this one took, and what it holds goes home at its end. */
static void *give_some(void *unused)
{
    unsigned from = (unsigned)random_below(CROWD);

    (void)unused;
    for (unsigned i = from; i < from + 12 && i < CROWD; i++) crowd_give(&crowd[i]);
    crowd_keep(&crowd[from], crowd[from].base == NULL ? prairie_malloc(40) : NULL, 40, 0);
    return NULL;
}

static void step_of_cache(void)
{
    unsigned which = (unsigned)random_below(CACHES);
    int flags = MALLOCX_TCACHE(caches[which]);
    struct block *block = &crowd[random_below(CROWD)];

    if (block->base == NULL) {
        size_t size = 1 + random_below(2000);
        crowd_keep(block, prairie_mallocx(size, flags), size, 0);
        return;
    }
    oracle_verify(block, block->stamped_bytes, "when it is given to a cache");
    oracle_release(block);
    prairie_dallocx(block->base, flags);
    block->base = NULL;
}

void fuzz_one(void)
{
    fake_cores(1 + (unsigned)random_below(3));
    oracle_start(1);
    prairie_free(prairie_malloc(1));
    for (unsigned i = 0; i < CACHES; i++) caches[i] = explicit_cache_create();
    while (!random_is_over()) {
        switch (random_below(32)) {
        case 0: thread_flush(); break;
        case 1: (void)arenas_clear(CLEAR_ALL); break;
        case 2: (void)arenas_clear(CLEAR_UNNEEDED); break;
        case 3: arenas_close_empty(); break;
        case 4: run_thread(give_some, NULL); break;
        case 5: explicit_cache_flush(explicit_cache_at(caches[random_below(CACHES)])); break;
        case 6: fake_core_current((unsigned)random_below(4)); break;
        case 7:
        case 8:
        case 9:
        case 10: step_of_cache(); break;
        default: crowd_step(1 + random_below(3000));
        }
        prairie_check_all();
    }
    crowd_give_all();
    prairie_check_all();
}
