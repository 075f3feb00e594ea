/* crowd.c - 200 or 2,000 threads that hold 100 KB each, or held it and sleep: what a thread costs.
 * SPDX-License-Identifier: MIT
 *
 * Idea: servers with a thread for each connection; Hoard's bound on blowup asks the same. The
 * figure is resident memory per thread above that of the process before it started them, stacks
 * included: while each holds its blocks; or when each has freed all but one in eight and sleeps, at
 * once and 15 s later (in proportion at less than 100 per cent, but at least 2 s). */
#include "sizes.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREAD_BYTES = 100 * 1024, BLOCKS_MAX = THREAD_BYTES / 16, KEPT_ONE_IN = 8 };
enum { SLEEP_MS = 15000, SLEEP_MS_MIN = 2000 };

struct shape {
    unsigned threads;
    int sleeps; /* they free most of it first */
};

static pthread_barrier_t barrier;

struct member {
    _Alignas(OWN_LINES) const struct shape *shape;
    void **block;
    uint64_t random, sum;
    uint32_t count;
};

static void give(struct member *member, uint32_t i)
{
    if (member->block[i] == NULL) return;
    member->sum += block_word(member->block[i]);
    free(member->block[i]);
    member->block[i] = NULL;
}

static void *hold(void *argument)
{
    struct member *member = argument;
    for (size_t total = 0; total < THREAD_BYTES && member->count < BLOCKS_MAX;) {
        size_t bytes = size_power_law(&member->random) % 2048 + 16;
        void *block = need(malloc(bytes));
        block_write(block, bytes, 64, member->random ^ bytes);
        member->block[member->count++] = block;
        total += bytes;
    }
    for (uint32_t i = 0; member->shape->sleeps && i < member->count; i++)
        if (i % KEPT_ONE_IN != 0) give(member, i);
    pthread_barrier_wait(&barrier); /* all hold theirs; the first thread measures */
    pthread_barrier_wait(&barrier);
    for (uint32_t i = 0; i < member->count; i++) give(member, i);
    return NULL;
}

static void measure(const struct job *job, double before)
{
    const struct shape *shape = job->workload->shape;
    uint64_t ms = scaled(job, SLEEP_MS);

    report_figure("per_thread", (resident_kb() - before) / shape->threads, "KB");
    if (!shape->sleeps) return;
    pause_ms(ms < SLEEP_MS_MIN ? SLEEP_MS_MIN : (unsigned)ms);
    report_figure("per_thread_later", (resident_kb() - before) / shape->threads, "KB");
}

static struct outcome run_crowd(const struct job *job)
{
    const struct shape *shape = job->workload->shape;
    unsigned threads = shape->threads;
    struct member *member = own_memory(threads * sizeof *member);
    size_t table_bytes = (size_t)threads * BLOCKS_MAX * sizeof(void *);
    void **table = own_resident_memory(table_bytes);
    struct outcome outcome = { 0, 0 };

    pthread_barrier_init(&barrier, NULL, threads + 1);
    double before = resident_kb();
    for (unsigned i = 0; i < threads; i++)
        member[i] = (struct member){ .shape = shape,
                                     .block = table + (size_t)i * BLOCKS_MAX,
                                     .random = random_start(job->seed, i) };
    start_threads(threads, hold, member, sizeof *member);
    pthread_barrier_wait(&barrier);
    measure(job, before);
    pthread_barrier_wait(&barrier);
    join_threads();
    for (unsigned i = 0; i < threads; i++) {
        outcome.checksum += member[i].sum;
        outcome.operations += member[i].count;
    }
    return outcome;
}

static const struct shape holders = { 200, 0 };
static const struct shape sleepers = { 200, 1 };
static const struct shape many_sleepers = { 2000, 1 };

#define IDEA "a thread for each connection; Hoard's bound on blowup"
#define LATER "figure = \"per_thread_later\"\nhigher_is_better = false\n"

static const struct workload workloads[] = {
    { "threads-200", "threads",
      "200 threads hold 100 KB of small blocks each: resident memory per thread", IDEA, 200,
      &holders, run_crowd, SUITE_FIGURES, "figure = \"per_thread\"\nhigher_is_better = false\n",
      NULL },
    { "sleepers-200", "threads",
      "200 threads took 100 KB of small blocks, freed all but an eighth, and sleep 15 s: resident "
      "memory per thread",
      IDEA, 200, &sleepers, run_crowd, SUITE_FIGURES, LATER, NULL },
    { "sleepers-2000", "threads", "the same with 2,000 threads", IDEA, 2000, &many_sleepers,
      run_crowd, SUITE_FIGURES, LATER, NULL },
};

const struct workload_list crowd_list = { workloads, sizeof workloads / sizeof *workloads };
