/* lives.c - three lives, what must hold in them, and what must be left of them.
 * SPDX-License-Identifier: MIT
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "lives.h"

#include "gate.h"
#include "script.h"

#include "../blackbox/process_status.h"
#include "../stress/lane.h"
#include "../stress/sizes.h"
#include "../stress/ways.h"

#include "control/conf.h"
#include "control/control.h"
#include "control/stats_print.h"
#include "heap/heap.h"

#include <jemalloc/jemalloc.h>
#include <prairie/reserve.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { KB = 1024, MB = 1024 * 1024, CHILD_SECONDS = 10 };

static void step_begins(void) {}
static uint64_t calls_refused(void) { return gate_refused(); }

/* ---- threads ---- */

enum { LANES = 3, STEPS = 150, STEPS_CHILD = 30, ROUNDS = 2 };

static struct lane lanes[LANES];
static uint64_t lane_requests; /* that were refused */

static void lane_steps(struct lane *lane, unsigned count)
{
    uint64_t seen = gate_refused();

    for (unsigned i = 0; i < count; i++) {
        lane_step(lane);
        if (gate_refused() != seen) walk();
        seen = gate_refused();
    }
}

static pthread_barrier_t worked;

/* None ends before all have begun: each has an arena to choose. */
static void *work(void *lane)
{
    lane_steps(lane, STEPS);
    pthread_barrier_wait(&worked);
    return NULL;
}

static void live_with_others(void)
{
    pthread_t thread[LANES];

    if (pthread_barrier_init(&worked, NULL, LANES - 1) != 0) violation("no barrier");
    for (unsigned i = 1; i < LANES; i++)
        if (pthread_create(&thread[i], NULL, work, &lanes[i]) != 0) violation("no thread");
    lane_steps(&lanes[0], STEPS);
    for (unsigned i = 1; i < LANES; i++) pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&worked);
}

static void live_in_child(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        alarm(CHILD_SECONDS);
        lane_steps(&lanes[0], STEPS_CHILD);
        walk();
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) violation("no child");
    if (status != 0) violation("the child of a fork ended with status 0x%x", (unsigned)status);
}

static void live_threads(uint64_t seed)
{
    world = (struct world){ .seed = seed,
                            .live_bytes_max = (size_t)2 * MB,
                            .lane_count = LANES,
                            .refusals_allowed = true,
                            .lanes = lanes };
    ways_start(true);
    oracle_start(seed);
    for (unsigned i = 0; i < LANES; i++) lane_open(&lanes[i], i);
    for (unsigned round = 0; round < ROUNDS; round++) {
        live_with_others();
        gate_clock_ms(600);
    }
    live_in_child();
    (void)prairie_purge();
    lane_steps(&lanes[0], STEPS);
}

static void close_lanes(void)
{
    for (unsigned i = 0; i < LANES; i++) {
        lane_requests += lanes[i].refusals;
        lane_close(&lanes[i]);
    }
}

/* ---- large blocks ---- */

enum { LARGE = 16, GROWING = 20, VAST = 21, RESIZES = 24 };
/* So much of a vast block is touched that it would be missed, where no contents are looked at. */
enum { OFF_PLACES = 128 * MB + 4096, SEEN_BYTES = 32 * MB };

static size_t large_size(uint64_t *random) { return random_log_bytes(random, 14337, 24 * MB); }

static void take_large(unsigned index, uint64_t *random)
{
    size_t bytes = large_size(random);

    switch (index % 4) {
    case 0: take_zeroed(index, bytes); break;
    case 1: take_on_boundary(index, (size_t)4096 << index, bytes); break;
    default: take(index, bytes); break;
    }
}

static void grow_far(void)
{
    take(GROWING, 300 * KB);
    for (size_t bytes = MB; bytes <= 64 * MB && slots[GROWING].base != NULL; bytes *= 2)
        resize(GROWING, bytes + 4 * KB);
}

static void live_with_vast(void)
{
    const size_t vast = (size_t)64 << 30;

    take(VAST, vast);
    if (slots[VAST].base == NULL) return;
    memset(slots[VAST].base + OFF_PLACES, 1, SEEN_BYTES);
    /* What cannot be moved page by page is copied: more than machines have. */
    if (calls_refused() == 0 && !gate_refuses_for_good()) {
        resize(VAST, vast + vast / 64);
        resize(VAST, vast * 3);
        resize(VAST, vast);
    }
    if (slots[VAST].base != NULL) resize(VAST, 5 * MB);
}

static void live_large(uint64_t seed)
{
    uint64_t random = seed;

    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < LARGE; i++)
            if (slots[i].base == NULL) take_large(i, &random);
        for (unsigned i = 0; i < RESIZES; i++) {
            unsigned index = random_below(&random, LARGE);
            if (slots[index].base != NULL) resize(index, large_size(&random));
        }
        grow_far();
        live_with_vast();
        for (unsigned i = round; i < LARGE; i += 2) give(i);
        give(GROWING);
        give(VAST);
        give_to_the_kernel();
        gate_clock_ms(700);
    }
}

/* ---- services ---- */

enum { ARENA_FIRST = 200, ARENA_BLOCKS = 40, RESERVE_FIRST = 300, RESERVE_BLOCKS = 70 };
enum { RESERVE_BYTES = 256 * KB, LIMIT_BYTES = 6 * MB };

/* True: it was done. It may be refused, and only after a call was. */
static bool control(const char *name, void *old, size_t old_bytes, void *value, size_t bytes)
{
    int error;

    begin_step();
    error = control_by_name(name, old, old == NULL ? NULL : &old_bytes, value, bytes);
    if (error != 0 && calls_refused() == 0) complain(name, (size_t)error);
    end_step();
    return error == 0;
}

static bool act_on_arena(unsigned arena, const char *what)
{
    char name[40];

    snprintf(name, sizeof name, "arena.%u.%s", arena, what);
    return control(name, NULL, 0, NULL, 0);
}

static void take_with_flags(unsigned index, size_t bytes, int flags)
{
    begin_step();
    keep(index, prairie_mallocx(bytes, flags), 0, bytes);
}

static void live_in_arena(void)
{
    struct slot in_arena[ARENA_BLOCKS];
    unsigned arena = 0, cache = 0;
    int flags;

    if (!control("arenas.create", &arena, sizeof arena, NULL, 0)) return;
    flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE;
    if (control("tcache.create", &cache, sizeof cache, NULL, 0))
        flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE(cache);
    for (unsigned i = 0; i < ARENA_BLOCKS; i++)
        take_with_flags(ARENA_FIRST + i, script_sizes[i % (SIZES - 3)], flags);
    for (unsigned i = 0; i < ARENA_BLOCKS; i += 2) give(ARENA_FIRST + i);
    if ((flags & MALLOCX_TCACHE_NONE) != MALLOCX_TCACHE_NONE) {
        (void)control("tcache.flush", NULL, 0, &cache, sizeof cache);
        (void)control("tcache.destroy", NULL, 0, &cache, sizeof cache);
    }
    (void)act_on_arena(arena, "purge");
    /* What is left in it goes with it, and nobody may look at it once the call has begun. */
    memcpy(in_arena, &slots[ARENA_FIRST], sizeof in_arena);
    for (unsigned i = 0; i < ARENA_BLOCKS; i++) slots[ARENA_FIRST + i].base = NULL;
    if (!act_on_arena(arena, "destroy")) memcpy(&slots[ARENA_FIRST], in_arena, sizeof in_arena);
}

static void drop_some(void *unused, reserve_cnd_t condition, size_t bytes)
{
    (void)unused, (void)condition, (void)bytes;
    for (unsigned i = 0; i < RESERVE_BLOCKS; i += 3)
        if (slots[RESERVE_FIRST + i].base != NULL) {
            prairie_free(slots[RESERVE_FIRST + i].base);
            slots[RESERVE_FIRST + i].base = NULL;
        }
}

static void live_with_reserve(void)
{
    bool told_of;

    begin_step();
    told_of = !reserve_cb_register(drop_some, NULL);
    (void)reserve_min_set(RESERVE_BYTES);
    end_step();
    refusals_need_no_reason = true;
    limit_soft_set(LIMIT_BYTES / 2);
    limit_hard_set(LIMIT_BYTES);
    for (unsigned i = 0; i < RESERVE_BLOCKS; i++) take(RESERVE_FIRST + i, 1000 + (i % 7) * 40000);
    limit_hard_set(0);
    limit_soft_set(0);
    refusals_need_no_reason = false;
    for (unsigned i = 0; i < RESERVE_BLOCKS; i++)
        if (slots[RESERVE_FIRST + i].base != NULL) give(RESERVE_FIRST + i);
    begin_step();
    if (told_of) (void)reserve_cb_unregister(drop_some, NULL);
    (void)reserve_min_set(0);
    end_step();
}

static void swallow(void *unused, const char *text) { (void)unused, (void)text; }

static void tell(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    const char *nowhere = "/dev/null";
    uint64_t epoch = 1;

    begin_step();
    (void)prairie_stats_read(&stats);
    (void)prairie_stats_metrics(swallow, NULL);
    malloc_stats_print(swallow, NULL, "");
    malloc_stats_print(swallow, NULL, "J");
    end_step();
    (void)control("epoch", NULL, 0, &epoch, sizeof epoch);
    /* Who is not sampled has no profile. */
    begin_step();
    (void)control_by_name("prof.dump", NULL, NULL, &nowhere, sizeof nowhere);
    end_step();
}

/* With a second thread that has a cache there is a background thread for what is free. */
static void *be_there(void *barrier)
{
    prairie_free(prairie_malloc(100));
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    return NULL;
}

static void let_time_pass(void)
{
    const struct timespec moment = { 0, 1000000 };

    for (unsigned i = 0; i < 3; i++) {
        gate_clock_ms(1000);
        nanosleep(&moment, NULL);
        begin_step();
        end_step();
    }
}

static void live_services(uint64_t seed)
{
    pthread_barrier_t barrier;
    pthread_t thread;

    (void)seed;
    pthread_barrier_init(&barrier, NULL, 2);
    if (pthread_create(&thread, NULL, be_there, &barrier) != 0) complain("no thread", 0);
    pthread_barrier_wait(&barrier);
    live_through_all_doors(0);
    live_in_arena();
    let_time_pass();
    live_with_reserve();
    tell();
    live_in_arena();
    give_to_the_kernel();
    let_time_pass();
    live_by_resizing(700, MB);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
}

/* ---- the whole of it ---- */

bool lives_are_hardened;

const struct life lives[LIFE_COUNT] = {
    { "threads", "guard_sample:50,guard_interval:0", 3 * KB, live_threads, close_lanes },
    /* Records of pages, when a vast block was served as others are. */
    { "large", "thp:default", 24 * KB, live_large, give_all },
    { "services", "prof:true,lg_prof_sample:12,guard_sample:2,guard_interval:0,guard_cells:32",
      6 * KB, live_services, give_all },
};

static void expect_memory(void)
{
    static const size_t sizes[] = { 1, 48, 1000, 14336, 20000, 300000, 3 * MB, (size_t)64 << 30 };

    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *block = prairie_calloc(1, sizes[i]);
        if (block == NULL) complain("refused after the refusals ended", sizes[i]);
        block[0] = block[sizes[i] - 1] = 1;
        prairie_free(block);
    }
}

static void read_status(struct account *account)
{
    account->mapped_kb = read_status_kb("VmSize:");
    account->resident_kb = read_status_kb("VmRSS:");
    if (account->mapped_kb < 0 || account->resident_kb < 0) complain("no /proc/self/status", 0);
}

/* What is cached or waits in a quarantine is no block. */
static void expect_nothing_left(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };

    (void)prairie_purge();
    walk();
    if (!prairie_stats_read(&stats)) complain("no statistics", 0);
    if (stats.allocated != 0) complain("blocks were lost", stats.allocated);
    if (stats.dirty != 0) complain("pages stayed dirty", stats.dirty);
}

_Noreturn void live_whole_life(const struct life *life, uint64_t seed, struct account *account)
{
    static const struct gate_rule none = { .number = GATE_ANY };
    char options[200];

    snprintf(options, sizeof options, "%s%s", life->options,
             lives_are_hardened ? ",hardened:true" : "");
    setenv("PRAIRIE_CONF", options, 1);
    conf_start();
    life->live(seed);
    account->seen = gate_seen();
    account->refused = gate_refused();
    account->requests = refusals;
    gate_refuse(&none, 0, false);
    refused_seen = 0;
    walk();
    expect_memory();
    life->give_back();
    if (refusals != account->requests && life->give_back == give_all)
        complain("requests are refused after the refusals ended", refusals);
    expect_nothing_left();
    read_status(account);
    account->requests += lane_requests;
    account->walks = walks;
    account->ended = true;
    _exit(0);
}
