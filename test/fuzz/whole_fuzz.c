/* whole_fuzz.c - the whole library: options, requests of all kinds, refused calls of the kernel,
 * time, threads and forks, as the bytes say. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "crowd.h"
#include "heap/hardened.h"
#include "policy/limits.h"
#include "unit/threads.h"

#include <jemalloc/jemalloc.h>
#include <prairie/reserve.h>
#include <sys/wait.h>

const unsigned fuzz_bytes_max = 700;

static const char *const option_texts[] = {
    "",
    "tcache:false",
    "junk:true",
    "zero:true",
    "narenas:1",
    "percpu_arena:percpu",
    "dirty_decay_ms:0",
    "dirty_decay_ms:-1",
    "background_thread:false",
    "retain:false",
    "tcache_max:256",
    "thp:always,metadata_thp:always",
    "thp:never",
    "oversize_threshold:65536",
};

static struct arena *manual;
static unsigned explicit_cache = EXPLICIT_CACHE_COUNT_MAX;

/* ---- what others do ---- */

static void *another_lives(void *unused)
{
    void *own[12];

    for (unsigned i = 0; i < ARRAY_COUNT(own); i++) own[i] = prairie_malloc(1 + random_below(3000));
    for (unsigned steps = (unsigned)random_below(12); steps > 0; steps--) crowd_step(100000);
    for (unsigned i = 0; i < ARRAY_COUNT(own); i++) prairie_free(own[i]);
    return unused;
}

static void child_lives(void)
{
    int status, child = fake_fork();

    assert_true(child >= 0);
    if (child == 0) {
        for (unsigned steps = 0; steps < 6; steps++) crowd_step(100000);
        prairie_check_all();
        crowd_give_all();
        prairie_check_all();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void listener(void *context, reserve_cnd_t condition, size_t size)
{
    (void)context, (void)condition, (void)size;
    prairie_free(prairie_malloc(100));
    for (unsigned i = 0; i < 4; i++) crowd_give(&crowd[i]);
}

/* ---- places of blocks ---- */

static int draw_flags(void)
{
    int flags = 0;

    if (manual != NULL && random_below(2) == 0) flags |= MALLOCX_ARENA(manual->index);
    if (explicit_cache != EXPLICIT_CACHE_COUNT_MAX && random_below(2) == 0)
        flags |= MALLOCX_TCACHE(explicit_cache);
    else if (random_below(2) == 0) flags |= MALLOCX_TCACHE_NONE;
    if (random_below(4) == 0) flags |= MALLOCX_ZERO;
    return flags;
}

static void extended_step(void)
{
    struct block *block = &crowd[random_below(CROWD)];
    size_t size = crowd_size(500000);
    size_t align = random_below(4) == 0 ? (size_t)1 << random_below(14) : 0;
    int flags = draw_flags();

    if (block->base == NULL) {
        void *base = prairie_mallocx(size, flags | (align != 0 ? MALLOCX_ALIGN(align) : 0));

        if (base != NULL && (flags & MALLOCX_ZERO) != 0) assert_true(all_bytes_are(base, 0, size));
        crowd_keep(block, base, size, align);
        return;
    }
    oracle_verify(block, block->stamped_bytes, "before it changes in place");
    oracle_release(block);
    if (random_below(2) == 0) {
        size_t now = prairie_xallocx(block->base, size, 0, 0);
        block->requested_bytes = block->stamped_bytes = min_size(block->stamped_bytes, now);
        crowd_keep(block, block->base, now, block->align_bytes);
        return;
    }
    prairie_dallocx(block->base, flags & ~(MALLOCX_ZERO | MALLOCX_TCACHE_NONE));
    block->base = NULL;
}

static void change_places(void)
{
    if (explicit_cache == EXPLICIT_CACHE_COUNT_MAX) {
        explicit_cache = explicit_cache_create();
    } else {
        explicit_cache_destroy(explicit_cache);
        explicit_cache = EXPLICIT_CACHE_COUNT_MAX;
    }
    if (manual == NULL) manual = arena_create();
}

/* ---- the end of memory ---- */

static void change_limits(void)
{
    switch (random_below(5)) {
    case 0: limit_hard_set((8 + random_below(60)) * MiB); break;
    case 1: limit_hard_set(SIZE_MAX); break;
    case 2: limit_soft_set(random_below(64) * MiB); break;
    case 3: (void)reserve_min_set(random_below(64) * 64 * KiB); break;
    default:
        if (random_below(2) == 0) (void)reserve_cb_register(listener, NULL);
        else (void)reserve_cb_unregister(listener, NULL);
    }
}

static void print_nothing(void *context, const char *text) { (void)context, (void)text; }

static void rare_step(void)
{
    switch (random_below(16)) {
    case 0: fake_clock_ms(random_below(20000)); break;
    case 1: (void)fake_thread_run(); break;
    case 2: (void)prairie_purge(); break;
    case 3: thread_flush(); break;
    case 4: (void)arenas_clear(random_below(2) == 0 ? CLEAR_ALL : CLEAR_UNNEEDED); break;
    case 5: run_thread(another_lives, NULL); break;
    case 6: child_lives(); break;
    case 7: change_places(); break;
    case 8: change_limits(); break;
    case 9: (void)prairie_stats_metrics(print_nothing, NULL); break;
    case 10: decay_keep_looking(); break;
    case 11: fake_core_current((unsigned)random_below(4)); break;
    case 12: fake_commit_bytes_max((8 + random_below(100)) * MiB); break;
    case 13: fake_commit_bytes_max(512 * MiB); break;
    case 14: decay_close_tail(true); break;
    default: fake_one_thread(random_below(2) == 0);
    }
}

void fuzz_one(void)
{
    oracle_start(1);
    fake_cores(1 + (unsigned)random_below(3));
    fake_commit_bytes_max(512 * MiB);
    if (random_below(3) == 0) fake_address_space((24 + random_below(100)) * MiB, 0);
    if (random_below(4) == 0) fake_purge_does(FAKE_PURGE_ZEROES);
    options_parse(option_texts[random_below(ARRAY_COUNT(option_texts))], "test");
    if (random_below(8) == 0) (void)hardened_start();
    heap_obey_options();
    fake_thread_allow(random_below(4) != 0);
    if (!heap_start()) return;
    while (!random_is_over()) {
        uint64_t kind = random_below(8);

        crowd_fail();
        if (kind == 0) rare_step();
        else if (kind < 3) extended_step();
        crowd_succeed();
        if (kind >= 3) crowd_step(4 * MiB);
        prairie_check_all();
    }
    (void)reserve_cb_unregister(listener, NULL);
    crowd_give_all();
    prairie_check_all();
}
