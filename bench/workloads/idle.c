/* idle.c - a burst is freed and the process sleeps without another call: what does it still hold?
 * SPDX-License-Identifier: MIT
 *
 * Idea: the most frequent complaint in the trackers of all allocators: a service that once had a
 * peak keeps its memory for ever. The burst is 256 MB: half of its bytes in blocks of a program's
 * sizes, half in blocks of 16 to 512 KB. Of the small ones one in 10,000, about 130, is never
 * freed, as some of any burst stays somewhere: it pins what lies around it; in the sparse one it is
 * one in 20, as of a cache that dropped nearly all. In the threaded one,
 * four threads allocate, each frees half of its own and half of its neighbour's, and all stay
 * alive. At 100 per cent they sleep 10 s, at less in proportion, but at least 2 s. A quick round
 * sleeps as long as any: some allocators give memory back over 10 s, and less would only tell whose
 * delay is shorter. */
#include "sizes.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    THREADS = 4,
    PAUSE_MS = 10000,
    PAUSE_MS_MIN = 2000,
    RECORDS_MAX = 2500000,
    SURVIVORS_ONE_IN = 10000,
    SPARSE_ONE_IN = 20
};

static const size_t burst_bytes = (size_t)256 << 20;

struct member {
    struct member *neighbour;
    void **block;
    uint32_t count, room; /* of the table */
    size_t bytes;
    uint32_t survivors_one_in;
    uint64_t random, sum;
};

static pthread_barrier_t barrier;

static void allocate(struct member *member)
{
    for (size_t total = 0; total < member->bytes / 2;) {
        size_t bytes = size_program(&member->random);
        void *block = need(malloc(bytes));
        block_write(block, bytes, PAGE, member->random ^ bytes);
        total += bytes;
        if (random_below(&member->random, member->survivors_one_in) == 0) continue;
        member->block[member->count++] = block;
        if (member->count == member->room) stop("more blocks than the table holds");
    }
    for (size_t total = 0; total < member->bytes / 2;) {
        size_t bytes = size_between(&member->random, 16384, 524288);
        void *block = need(malloc(bytes));
        block_write(block, bytes, PAGE, member->random ^ bytes);
        member->block[member->count++] = block;
        total += bytes;
        if (member->count == member->room) stop("more blocks than the table holds");
    }
}

static void free_share(struct member *member, struct member *owner, uint32_t first)
{
    for (uint32_t i = first; i < owner->count; i += 2) {
        member->sum += block_word(owner->block[i]);
        free(owner->block[i]);
    }
}

static void *live_and_sleep(void *argument)
{
    struct member *member = argument;
    allocate(member);
    pthread_barrier_wait(&barrier); /* all have allocated; the first thread measures the peak */
    pthread_barrier_wait(&barrier);
    free_share(member, member, 0);
    free_share(member, member->neighbour, 1);
    pthread_barrier_wait(&barrier); /* all is free; sleep until the first thread has measured */
    pthread_barrier_wait(&barrier);
    return NULL;
}

static unsigned pause_of(const struct job *job)
{
    uint64_t ms = scaled(job, PAUSE_MS);
    return ms < PAUSE_MS_MIN ? PAUSE_MS_MIN : (unsigned)ms;
}

static void report_held(double before, double peak, double freed, double rested, unsigned ms)
{
    report_figure("burst_resident", peak - before, "KB");
    report_figure("held_at_once", freed > before ? 100 * (freed - before) / (peak - before) : 0,
                  "%");
    report_figure("held", rested > before ? 100 * (rested - before) / (peak - before) : 0, "%");
    report_figure("held_resident", rested - before, "KB");
    report_figure("slept", ms / 1e3, "s");
}

static void **new_table(uint32_t entries) { return own_resident_memory(entries * sizeof(void *)); }

static struct outcome run_alone(const struct job *job, uint32_t survivors_one_in)
{
    struct member member = { .block = new_table(RECORDS_MAX),
                             .room = RECORDS_MAX,
                             .bytes = burst_bytes,
                             .survivors_one_in = survivors_one_in,
                             .random = random_start(job->seed, 0) };
    double before = resident_kb();
    allocate(&member);
    double peak = resident_kb();
    free_share(&member, &member, 0);
    free_share(&member, &member, 1);
    double freed = resident_kb();
    pause_ms(pause_of(job));
    report_held(before, peak, freed, resident_kb(), pause_of(job));
    return (struct outcome){ member.sum, member.count };
}

static struct outcome run_single(const struct job *job) { return run_alone(job, SURVIVORS_ONE_IN); }
static struct outcome run_sparse(const struct job *job) { return run_alone(job, SPARSE_ONE_IN); }

static struct outcome run_threaded(const struct job *job)
{
    static struct member member[THREADS];
    struct outcome outcome = { 0, 0 };
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (unsigned i = 0; i < THREADS; i++)
        member[i] = (struct member){ .neighbour = &member[(i + 1) % THREADS],
                                     .block = new_table(RECORDS_MAX / THREADS),
                                     .room = RECORDS_MAX / THREADS,
                                     .bytes = burst_bytes / THREADS,
                                     .survivors_one_in = SURVIVORS_ONE_IN,
                                     .random = random_start(job->seed, i) };
    double before = resident_kb();
    start_threads(THREADS, live_and_sleep, member, sizeof *member);
    pthread_barrier_wait(&barrier);
    double peak = resident_kb();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    double freed = resident_kb();
    pause_ms(pause_of(job));
    report_held(before, peak, freed, resident_kb(), pause_of(job));
    pthread_barrier_wait(&barrier);
    join_threads();
    for (unsigned i = 0; i < THREADS; i++) {
        outcome.checksum += member[i].sum;
        outcome.operations += member[i].count;
    }
    return outcome;
}

#define IDEA "the trackers' most frequent complaint: memory that never goes back"
#define FIGURE "figure = \"held\"\nhigher_is_better = false\nquick_scale = 100\n"

static const struct workload workloads[] = {
    { "idle-one", "idle",
      "one thread frees a burst of 256 MB but for some 130 small blocks and sleeps 10 s: per cent "
      "still resident",
      IDEA, 1, NULL, run_single, SUITE_FIGURES, FIGURE, NULL },
    { "idle-sparse", "idle",
      "one thread frees a burst of 256 MB but for one in 20 of its small blocks and sleeps 10 s: "
      "per "
      "cent still resident",
      IDEA, 1, NULL, run_sparse, SUITE_FIGURES, FIGURE, NULL },
    { "idle-threads", "idle",
      "four threads free a burst of 256 MB but for some 130 small blocks, half of it across, and "
      "sleep 10 s: per cent still resident",
      IDEA, 4, NULL, run_threaded, SUITE_FIGURES, FIGURE, NULL },
};

const struct workload_list idle_list = { workloads, sizeof workloads / sizeof *workloads };
