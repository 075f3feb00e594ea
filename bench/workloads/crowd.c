/* crowd.c - 200 threads that hold 100 KB each: what a thread costs.
 * SPDX-License-Identifier: MIT
 *
 * Idea: servers with a thread for each connection; Hoard's bound on blowup asks the same. The
 * figure is resident memory per thread above that of the process before it started them, stacks
 * included. */
#include "sizes.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 200, THREAD_BYTES = 100 * 1024, BLOCKS_MAX = THREAD_BYTES / 16 };

static pthread_barrier_t barrier;

struct member {
    void **block;
    uint64_t random, sum;
    uint32_t count;
};

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
    pthread_barrier_wait(&barrier); /* all hold theirs; the first thread measures */
    pthread_barrier_wait(&barrier);
    for (uint32_t i = 0; i < member->count; i++) {
        member->sum += block_word(member->block[i]);
        free(member->block[i]);
    }
    return NULL;
}

static struct outcome run_crowd(const struct job *job)
{
    struct member *member = own_memory(THREADS * sizeof *member);
    size_t table_bytes = (size_t)THREADS * BLOCKS_MAX * sizeof(void *);
    void **table = own_memory(table_bytes);
    struct outcome outcome = { 0, 0 };

    memset(table, 1, table_bytes); /* resident before the first measurement */
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    double before = resident_kb();
    for (unsigned i = 0; i < THREADS; i++)
        member[i] =
            (struct member){ table + (size_t)i * BLOCKS_MAX, random_start(job->seed, i), 0, 0 };
    start_threads(THREADS, hold, member, sizeof *member);
    pthread_barrier_wait(&barrier);
    report_figure("per_thread", (resident_kb() - before) / THREADS, "KB");
    pthread_barrier_wait(&barrier);
    join_threads();
    for (unsigned i = 0; i < THREADS; i++) {
        outcome.checksum += member[i].sum;
        outcome.operations += member[i].count;
    }
    return outcome;
}

static const struct workload workloads[] = {
    { "threads-200", "threads",
      "200 threads hold 100 KB of small blocks each: resident memory per thread",
      "a thread for each connection; Hoard's bound on blowup", 200, NULL, run_crowd, SUITE_FIGURES,
      "figure = \"per_thread\"\nhigher_is_better = false\n", NULL },
};

const struct workload_list crowd_list = { workloads, sizeof workloads / sizeof *workloads };
