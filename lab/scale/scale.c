/* scale.c - loads on an allocator by 1 to 64 cores: of the model, or threads on the clock.
 *
 *      scale LOAD --cores N [--rounds N] [--warm N] [--seed N] [--cost NAME=CYCLES]...  in the model
 *      scale-timed LOAD --cores N [--rounds N] [--warm N] [--seed N]                    as threads
 *
 * ALLOCATOR is prairie.h, on its real kernel with a core for each thread and a background thread
 * that sleeps, for its looks are rarer than a load is long; or peer.h. The first is compiled as for
 * ThreadSanitizer, loads included: what a program does with its blocks moves lines, too, and is told
 * by its functions.
 * SPDX-License-Identifier: MIT
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <time.h>
#include <unistd.h>

#include "model.h"

static unsigned cores = 1;
#ifndef MODELLED
static __thread unsigned own_core;
#endif
/* For the kernel that prairie.h plays. */
static inline unsigned core_here(void)
{
#ifdef MODELLED
    return model_core();
#else
    return own_core;
#endif
}

#include ALLOCATOR

#define KIB ((size_t)1024)

/* ---- what the loads share ---- */

enum { LIVE_MAX = 1024, RING = 256 };

static struct {
    uint64_t random;
    unsigned char *live[LIVE_MAX];
} __attribute__((aligned(128))) own[CORES_MAX];

/* Blocks on their way from a core to the next one. */
static struct {
    uint32_t head __attribute__((aligned(128)));
    uint32_t tail __attribute__((aligned(128)));
    unsigned char *block[RING] __attribute__((aligned(128)));
} ring[CORES_MAX];

static unsigned rounds = 2000;
static unsigned warm =
    40; /* how often each block or place of a ring is replaced before it counts */
static uint64_t seed = 1;

static uint64_t random_of(unsigned core)
{
    uint64_t *random = &own[core].random;

    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

static unsigned char *filled(size_t bytes, size_t step)
{
    unsigned char *block = scale_take(bytes);

    if (block == NULL) exit(1);
    for (size_t at = 0; at < bytes; at += step) block[at] = 1;
    return block;
}

#ifdef MODELLED
static void begin(void) { model_begin(); }
static void rest(void) { model_rest(1000); }
static void done(unsigned operations) { model_done(operations); }
#else
static pthread_barrier_t all_begin;
static __thread uint64_t done_here; /* since all began */
static uint64_t done_by_all;        /* atomic */
/* Each thread's own: who waits for them may not run when they begin. */
static struct {
    uint64_t begun_ns, over_ns;
} times[CORES_MAX];
static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
static void begin(void)
{
    (void)pthread_barrier_wait(&all_begin);
    done_here = 0;
    times[own_core].begun_ns = now_ns();
}
static void rest(void) { (void)sched_yield(); } /* there may be fewer cores than threads */
static void done(unsigned operations) { done_here += operations; }
#endif

/* ---- loads ---- */

/* Live blocks, a random one replaced at a time. */
static void replace(unsigned core, unsigned live, size_t (*size)(uint64_t random), size_t step)
{
    for (unsigned i = 0; i < live; i++) own[core].live[i] = filled(size(random_of(core)), step);
    for (unsigned i = 0; i < warm * live + rounds; i++) {
        unsigned victim = (unsigned)(random_of(core) % live);

        if (i == warm * live) begin();
        scale_give(own[core].live[victim]);
        own[core].live[victim] = filled(size(random_of(core)), step);
        done(1);
    }
}

/* Two thirds of up to 128 bytes, the rest of up to 2 KiB. */
static size_t small_size(uint64_t random)
{
    return random % 3 != 0 ? 8 + (random >> 8) % 121 : 8 + (random >> 8) % 2041;
}
static size_t medium_size(uint64_t random) { return 16 * KIB + random % (112 * KIB); }
static size_t large_size(uint64_t random) { return 256 * KIB + random % (768 * KIB); }

static void small(unsigned core) { replace(core, 1000, small_size, 64); }
static void medium(unsigned core) { replace(core, 32, medium_size, 4096); }
static void large(unsigned core) { replace(core, 8, large_size, 4096); }

/* Bursts of blocks of one size after the other, in which slabs open and close. */
static void bursts(unsigned core)
{
    static const uint16_t sizes[] = { 48, 256, 1024, 4096, 112, 2048 };

    for (unsigned round = 0; round <= 2 * warm + rounds / 200; round++) {
        size_t bytes = sizes[(round + core) % 6];

        if (round == 2 * warm) begin();
        for (unsigned i = 0; i < 200; i++) own[core].live[i] = filled(bytes, 64);
        for (unsigned i = 0; i < 200; i++) {
            scale_give(own[core].live[i]);
            done(1);
        }
    }
}

/* Each core fills blocks for the next one, and gives back what it got from the one before: so many
 * of both, after which nobody waits for anybody. */
static void hand_on(unsigned core, uint32_t blocks)
{
    unsigned from = (core + cores - 1) % cores;
    uint32_t made = ring[core].head, eaten = ring[from].tail;
    const uint32_t made_end = made + blocks, eaten_end = eaten + blocks;

    while (eaten != eaten_end || made != made_end) {
        uint32_t tail = __atomic_load_n(&ring[core].tail, __ATOMIC_ACQUIRE), head, before = eaten;

        for (; made - tail < RING && made != made_end; made++)
            ring[core].block[made % RING] = filled(64, 64);
        __atomic_store_n(&ring[core].head, made, __ATOMIC_RELEASE);
        head = __atomic_load_n(&ring[from].head, __ATOMIC_ACQUIRE);
        for (; eaten != head; eaten++) {
            unsigned char *block = ring[from].block[eaten % RING];

            block[0]++;
            scale_give(block);
            done(1);
        }
        __atomic_store_n(&ring[from].tail, eaten, __ATOMIC_RELEASE);
        if (eaten == before) rest();
    }
}

static void chain(unsigned core)
{
    hand_on(core, warm * RING);
    begin();
    hand_on(core, rounds);
}

/* All change one word: no load for an allocator, but one of which it is known what must come. */
static void word(unsigned core)
{
    static uint32_t changed __attribute__((aligned(128)));

    (void)core;
    begin();
    for (unsigned i = 0; i < rounds; i++) {
        (void)__atomic_fetch_add(&changed, 1, __ATOMIC_RELAXED);
        done(1);
    }
}

static const struct {
    const char *name;
    void (*body)(unsigned core);
} loads[] = { { "small", small },   { "medium", medium }, { "large", large },
              { "bursts", bursts }, { "chain", chain },   { "word", word } };

#ifdef MODELLED
static const char *structure_at(uintptr_t address)
{
    if (address - (uintptr_t)own < sizeof own || address - (uintptr_t)ring < sizeof ring)
        return "program";
    return scale_place(address);
}
#endif

/* ---- the command ---- */

static void (*load)(unsigned core);

static void run_load(unsigned core)
{
    own[core].random = (seed * CORES_MAX + core + 1) * 0x9e3779b97f4a7c15u;
    scale_begin();
    scale_give(filled(100, 64)); /* every thread of a program has an arena */
    load(core);
}

#ifdef MODELLED
/* One thread runs at a time, and hands over sooner where the next one runs, too. */
static void stay_here(void)
{
    cpu_set_t here;

    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    (void)sched_setaffinity(0, sizeof here, &here);
}

static struct model_costs costs = { .access = 2,
                                    .atomic = 18,
                                    .moved = 150,
                                    .shared = 60,
                                    .claimed = 100,
                                    .pause = 60,
                                    .woken = 6000,
                                    .slice = 100 };

static void set_cost(const char *text)
{
    static const struct {
        const char *name;
        uint32_t *cost;
    } names[] = { { "access=", &costs.access },   { "atomic=", &costs.atomic },
                  { "moved=", &costs.moved },     { "shared=", &costs.shared },
                  { "claimed=", &costs.claimed }, { "pause=", &costs.pause },
                  { "woken=", &costs.woken },     { "slice=", &costs.slice } };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t length = strlen(names[i].name);

        if (strncmp(text, names[i].name, length) != 0) continue;
        *names[i].cost = (uint32_t)strtoul(text + length, NULL, 10);
        return;
    }
    fprintf(stderr, "scale: no cost '%s'\n", text);
    exit(2);
}

static void run_all(void)
{
    const struct model_user user = { structure_at, scale_lock };

    stay_here();
    model_run(cores, &costs, &user, run_load);
    model_print((const void *)replace);
}
#else
static void *run_thread(void *core)
{
    own_core = (unsigned)(uintptr_t)core;
    run_load(own_core);
    times[own_core].over_ns = now_ns();
    __atomic_fetch_add(&done_by_all, done_here, __ATOMIC_RELAXED);
    return NULL;
}

/* From when the first one began until the last one was through. */
static uint64_t passed_ns(void)
{
    uint64_t begun = UINT64_MAX, over = 0;

    for (unsigned i = 0; i < cores; i++) {
        if (times[i].begun_ns < begun) begun = times[i].begun_ns;
        if (times[i].over_ns > over) over = times[i].over_ns;
    }
    return over - begun;
}

static void run_all(void)
{
    pthread_t thread[CORES_MAX];

    (void)pthread_barrier_init(&all_begin, NULL, cores);
    for (unsigned i = 0; i < cores; i++)
        if (pthread_create(&thread[i], NULL, run_thread, (void *)(uintptr_t)i) != 0) exit(1);
    for (unsigned i = 0; i < cores; i++) (void)pthread_join(thread[i], NULL);
    printf("{\"cores\": %u, \"ns\": %lu, \"operations\": %lu}\n", cores, passed_ns(),
           (unsigned long)done_by_all);
}
#endif

/* Where things lie decides which of them share a line. */
static void want_fixed_addresses(char **argv)
{
    int now = personality(0xffffffff);

    if (now == -1 || (now & ADDR_NO_RANDOMIZE) != 0) return;
    if (personality((unsigned long)now | ADDR_NO_RANDOMIZE) != -1)
        (void)execv("/proc/self/exe", argv);
}

static bool read_load(const char *name)
{
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++)
        if (strcmp(name, loads[i].name) == 0) load = loads[i].body;
    return load != NULL;
}

int main(int argc, char **argv)
{
    bool understood = true;

    want_fixed_addresses(argv);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--cores") == 0 && i + 1 < argc)
            cores = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--warm") == 0 && i + 1 < argc)
            warm = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            seed = strtoul(argv[++i], NULL, 10);
#ifdef MODELLED
        else if (strcmp(argv[i], "--cost") == 0 && i + 1 < argc) set_cost(argv[++i]);
#endif
        else if (load != NULL || !read_load(argv[i])) understood = false;
    }
    if (!understood || load == NULL || cores == 0 || cores > CORES_MAX || rounds == 0) {
        fprintf(stderr,
                "usage: scale small|medium|large|bursts|chain|word [--cores 1..%d] [--rounds N] "
                "[--warm N] [--seed N]\n",
                CORES_MAX);
        return 2;
    }
    scale_begin();
    run_all();
    return 0;
}
