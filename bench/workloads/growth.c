/* growth.c - what one operation costs with 10^3 to 10^7 live blocks.
 * SPDX-License-Identifier: MIT
 *
 * Idea: Knuth's and Wilson's question whether the cost of an operation depends on how many blocks
 * live. At each size of heap it takes the processor time of building it, freeing all in strides of
 * the golden ratio, replacing blocks in the order of their birth (kind to the caches of the
 * processor) and replacing random ones (misses beyond the caches). Blocks have 16 to 64 bytes.
 * `--live-max 100000000` goes to 10^8 (about 7 GB). */
#include "sizes.h"

#include <stdio.h>
#include <stdlib.h>

enum { OPERATIONS = 1000000, LIVE_MIN = 1000, LIVE_MAX = 10000000, LIVE_LIMIT = 100000000 };

struct sweep {
    void **live;
    uint64_t count, random, sum;
};

static void *new_block(struct sweep *sweep)
{
    size_t bytes = 16 + 8 * random_below(&sweep->random, 7);
    void *block = need(malloc(bytes));
    block_write(block, bytes, PAGE, sweep->random ^ bytes);
    return block;
}

static void renew(struct sweep *sweep, uint64_t index)
{
    sweep->sum = sweep->sum * 3 + block_word(sweep->live[index]);
    free(sweep->live[index]);
    sweep->live[index] = new_block(sweep);
}

static void report(const char *what, uint64_t count, double seconds, uint64_t operations)
{
    char name[48];
    unsigned digits = 0;
    for (uint64_t rest = count; rest >= 10; rest /= 10) digits++;
    snprintf(name, sizeof name, "%s_1e%u", what, digits);
    report_figure(name, seconds * 1e9 / (double)operations, "ns");
}

/* Small heaps are built several times over, so that every figure rests on as many operations. */
static void build_and_free(struct sweep *sweep, uint64_t operations)
{
    uint64_t passes = operations / sweep->count + 1, stride = sweep->count * 618 / 1000 | 1;
    double build = 0, tear_down = 0;
    if (stride % 5 == 0) stride += 2; /* no factor of any power of ten: every block has its turn */
    for (uint64_t pass = 0; pass < passes; pass++) {
        double start = cpu_seconds();
        for (uint64_t i = 0; i < sweep->count; i++) sweep->live[i] = new_block(sweep);
        double built = cpu_seconds();
        build += built - start;
        for (uint64_t i = 0, at = 0; i < sweep->count; i++, at = (at + stride) % sweep->count) {
            sweep->sum = sweep->sum * 3 + block_word(sweep->live[at]);
            free(sweep->live[at]);
        }
        tear_down += cpu_seconds() - built;
    }
    report("build", sweep->count, build, passes * sweep->count);
    report("free", sweep->count, tear_down, passes * sweep->count);
}

static void replace(struct sweep *sweep, uint64_t operations)
{
    for (uint64_t i = 0; i < sweep->count; i++) sweep->live[i] = new_block(sweep);
    double start = cpu_seconds();
    for (uint64_t i = 0; i < operations; i++) renew(sweep, i % sweep->count);
    double in_order = cpu_seconds();
    for (uint64_t i = 0; i < operations; i++)
        renew(sweep, random_below(&sweep->random, (uint32_t)sweep->count));
    double random = cpu_seconds();
    report("inorder", sweep->count, in_order - start, operations);
    report("random", sweep->count, random - in_order, operations);
    for (uint64_t i = 0; i < sweep->count; i++) free(sweep->live[i]);
}

static uint64_t live_max_of(const struct job *job)
{
    if (job->argument_count == 0) return LIVE_MAX;
    char *end = NULL;
    unsigned long long value = 0;
    if (job->argument_count == 2 && strcmp(job->arguments[0], "--live-max") == 0)
        value = strtoull(job->arguments[1], &end, 10);
    if (end == NULL || *end != '\0' || value < LIVE_MIN || value > LIVE_LIMIT)
        stop("its own argument is --live-max COUNT, from %d to %d", LIVE_MIN, LIVE_LIMIT);
    return value;
}

static struct outcome run_growth(const struct job *job)
{
    uint64_t live_max = live_max_of(job), operations = scaled(job, OPERATIONS), total = 0;
    struct sweep sweep = { .live = own_memory(live_max * sizeof *sweep.live),
                           .random = random_start(job->seed, 0) };
    for (sweep.count = LIVE_MIN; sweep.count <= live_max; sweep.count *= 10) {
        build_and_free(&sweep, operations);
        replace(&sweep, operations);
        total += sweep.count * 2 + operations * 4;
    }
    return (struct outcome){ sweep.sum, total };
}

static const struct workload workloads[] = {
    { "growth", "growth",
      "ns per operation with 10^3 to 10^7 live blocks; the figure is random replacement at 10^7",
      "Knuth and Wilson on costs that grow with the heap", 1, NULL, run_growth, SUITE_FIGURES,
      "figure = \"random_1e7\"\nhigher_is_better = false\n", "[--live-max COUNT]" },
};

const struct workload_list growth_list = { workloads, sizeof workloads / sizeof *workloads };
