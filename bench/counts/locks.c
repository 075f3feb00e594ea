/* locks.c - scripted runs under a preloaded prairie: how many locks a malloc with its free takes.
 * SPDX-License-Identifier: MIT
 *
 * Each script first runs once to reach a steady state, then again between two readings of the
 * library's statistics. One line of JSON for each script. */
#define _GNU_SOURCE
#include <prairie/prairie.h>

#include "../random.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#pragma weak prairie_stats_read

enum { LIVE_MAX = 100000, BATCH = 1000, RING = 4 };

static void *live[LIVE_MAX];
static uint64_t random_state = 88172645463325252u;

static void hot_pairs(uint32_t pairs)
{
    for (uint32_t i = 0; i < pairs; i += 2) {
        void *first = malloc(48), *second = malloc(24);
        free(first);
        free(second);
    }
}

static void replace(uint32_t pairs, uint32_t live_count, uint32_t (*bytes)(uint64_t *))
{
    for (uint32_t i = 0; i < pairs; i++) {
        uint32_t victim = random_below(&random_state, live_count);
        free(live[victim]);
        live[victim] = malloc(bytes(&random_state));
    }
    for (uint32_t i = 0; i < live_count; i++) {
        free(live[i]);
        live[i] = NULL;
    }
}

static void replace_1k(uint32_t pairs) { replace(pairs, 1000, random_small_bytes); }
static void replace_100k(uint32_t pairs) { replace(pairs, 100000, random_small_bytes); }
static void replace_medium(uint32_t pairs) { replace(pairs, 1000, random_medium_bytes); }

static void burst(uint32_t pairs)
{
    for (uint32_t done = 0; done < pairs; done += LIVE_MAX) {
        for (uint32_t i = 0; i < LIVE_MAX; i++) live[i] = malloc(random_small_bytes(&random_state));
        for (uint32_t i = 0; i < LIVE_MAX; i++) free(live[i]);
    }
}

static void *ring[RING][BATCH];
static _Atomic uint32_t sent, received;

static void *free_batches(void *argument)
{
    uint32_t batches = *(uint32_t *)argument;
    for (uint32_t i = 0; i < batches; i++) {
        while (atomic_load(&sent) <= i) sched_yield();
        for (uint32_t j = 0; j < BATCH; j++) free(ring[i % RING][j]);
        atomic_store(&received, i + 1);
    }
    return NULL;
}

/* One thread allocates 64-byte blocks, another frees them. */
static void producer_consumer(uint32_t pairs)
{
    uint32_t batches = pairs / BATCH;
    pthread_t consumer;
    atomic_store(&sent, 0);
    atomic_store(&received, 0);
    if (pthread_create(&consumer, NULL, free_batches, &batches) != 0) abort();
    for (uint32_t i = 0; i < batches; i++) {
        while (i - atomic_load(&received) >= RING) sched_yield();
        for (uint32_t j = 0; j < BATCH; j++) ring[i % RING][j] = malloc(64);
        atomic_store(&sent, i + 1);
    }
    pthread_join(consumer, NULL);
}

static const struct script {
    const char *name;
    void (*run)(uint32_t pairs);
    unsigned threads;
} scripts[] = {
    { "hot pairs of 48 and 24 bytes", hot_pairs, 1 },
    { "replace at random, 1,000 live, 16..511 bytes", replace_1k, 1 },
    { "replace at random, 100,000 live, 16..511 bytes", replace_100k, 1 },
    { "replace at random, 1,000 live, 8..16,000 bytes", replace_medium, 1 },
    { "bursts of 100,000 freed in order", burst, 1 },
    { "one thread allocates, another frees, 64 bytes", producer_consumer, 2 },
};

int main(void)
{
    const uint32_t pairs = 1000000;
    if (prairie_stats_read == NULL) {
        fprintf(stderr, "locks: malloc is not answered by prairie\n");
        return 1;
    }
    for (unsigned i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        struct prairie_stats before = { .struct_bytes = sizeof before };
        struct prairie_stats after = { .struct_bytes = sizeof after };
        scripts[i].run(pairs);
        if (!prairie_stats_read(&before)) return 1;
        scripts[i].run(pairs);
        if (!prairie_stats_read(&after)) return 1;
        printf("{\"name\": \"%s\", \"threads\": %u, \"pairs\": %u, \"acquired\": %llu, "
               "\"contended\": %llu, \"waits\": %llu}\n",
               scripts[i].name, scripts[i].threads, pairs,
               (unsigned long long)(after.lock_acquired - before.lock_acquired),
               (unsigned long long)(after.lock_contended - before.lock_contended),
               (unsigned long long)(after.lock_waits - before.lock_waits));
    }
    return 0;
}
