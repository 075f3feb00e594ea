/* pulse.c - threads that work in short bursts between rests, and hand every second batch over.
 * SPDX-License-Identifier: MIT
 *
 * Idea: event loops and pools of threads: a request takes some hundred blocks of all small sizes,
 * gives them back, and its thread waits for the next one. Two threads take 100 blocks of 16 to
 * 16,000 bytes at a time, by malloc or aligned_alloc, write to each page, and free them, rest half
 * a millisecond, and so on; the blocks of every second burst are exchanged first and freed by the
 * other thread. It strains how much of mixed sizes a thread's cache lets go of and takes back by
 * itself. The figure counts the two threads' own time inside of bursts only: what an allocator does
 * in the rests, or in a thread of its own, costs nothing there. A second figure, cpu_per_block, is
 * all of the process's processor time over the blocks. */
#define _GNU_SOURCE
#include "sizes.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { MEMBERS = 2, BATCH_BLOCKS = 100, BYTES_MIN = 16, BYTES_MAX = 16000 };

struct shape {
    uint64_t bursts; /* of each member */
    unsigned rest_us;
};

struct batch {
    _Alignas(OWN_LINES) void *block[BATCH_BLOCKS];
    uint32_t bytes[BATCH_BLOCKS];
};

struct member {
    _Alignas(OWN_LINES) const struct shape *shape;
    struct batch *batch; /* of both members: [0] and [1] */
    pthread_barrier_t *barrier;
    unsigned index;
    uint64_t bursts, random, sum;
    double seconds; /* of processor time inside of bursts */
};

static double thread_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void rest(unsigned us)
{
    struct timespec time = { 0, (long)us * 1000 };
    if (us != 0) nanosleep(&time, NULL);
}

/* The size of aligned_alloc is a multiple of the alignment. */
static void *aligned(size_t alignment, size_t bytes)
{
    return aligned_alloc(alignment, (bytes + alignment - 1) & ~(alignment - 1));
}

/* One in four by aligned_alloc, of 8 or 16. */
static void take(struct batch *batch, uint64_t *random)
{
    for (unsigned i = 0; i < BATCH_BLOCKS; i++) {
        size_t bytes = size_between(random, BYTES_MIN, BYTES_MAX);
        unsigned way = *random >> 8 & 7;
        batch->block[i] = need(way > 1 ? malloc(bytes) : aligned(way == 0 ? 8 : 16, bytes));
        batch->bytes[i] = (uint32_t)bytes;
        block_write(batch->block[i], bytes, PAGE, *random ^ bytes);
    }
}

static uint64_t give(struct batch *batch)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < BATCH_BLOCKS; i++) {
        sum += block_sum(batch->block[i], batch->bytes[i], PAGE);
        free(batch->block[i]);
    }
    return sum;
}

/* Sums are of both members' blocks, so who frees a batch does not matter. */
static void *work(void *argument)
{
    struct member *member = argument;
    for (uint64_t burst = 0; burst < member->bursts; burst++) {
        unsigned whose = member->index;
        double start = thread_seconds();
        take(&member->batch[whose], &member->random);
        if (burst % 2 != 0) {
            member->seconds += thread_seconds() - start;
            pthread_barrier_wait(member->barrier);
            whose = 1 - whose;
            start = thread_seconds();
        }
        member->sum += give(&member->batch[whose]);
        member->seconds += thread_seconds() - start;
        if (burst % 2 != 0) pthread_barrier_wait(member->barrier);
        rest(member->shape->rest_us);
    }
    return NULL;
}

static struct outcome run_pulse(const struct job *job)
{
    const struct shape *shape = job->workload->shape;
    struct batch *batch = own_memory(MEMBERS * sizeof *batch);
    struct member *member = own_memory(MEMBERS * sizeof *member);
    struct outcome outcome = { 0, 0 };
    pthread_barrier_t barrier;
    double seconds = 0, cpu_start = cpu_seconds();

    pthread_barrier_init(&barrier, NULL, MEMBERS);
    for (unsigned i = 0; i < MEMBERS; i++)
        member[i] = (struct member){ .shape = shape,
                                     .batch = batch,
                                     .barrier = &barrier,
                                     .index = i,
                                     .bursts = scaled(job, shape->bursts),
                                     .random = random_start(job->seed, i) };
    run_threads(MEMBERS, work, member, sizeof *member);
    for (unsigned i = 0; i < MEMBERS; i++) {
        outcome.checksum += member[i].sum;
        outcome.operations += member[i].bursts * BATCH_BLOCKS;
        seconds += member[i].seconds;
    }
    report_figure("burst_mops", (double)outcome.operations * 2 / seconds / 1e6, "M/s");
    report_figure("cpu_per_block", (cpu_seconds() - cpu_start) * 1e9 / (double)outcome.operations,
                  "ns");
    return outcome;
}

static const struct shape with_rests = { 4000, 500 };
static const struct shape without = { 60000, 0 };

#define IDEA "event loops and pools of threads"

static const struct workload workloads[] = {
    { "pulse-2", "threads",
      "2 threads take and free 100 blocks of 16 to 16,000 bytes between rests of 0.5 ms, half of "
      "them across: million calls a second of these threads' time inside; work in other threads "
      "is not counted",
      IDEA, MEMBERS, &with_rests, run_pulse, SUITE_FIGURES,
      "figure = \"burst_mops\"\nhigher_is_better = true\n", NULL },
    { "pulse-busy", "threads", "the same work 15 times, without rests", IDEA, MEMBERS, &without,
      run_pulse, SUITE_TIMED, NULL, NULL },
};

const struct workload_list pulse_list = { workloads, sizeof workloads / sizeof *workloads };
