/* micro.c - runs one allocator pattern in this process and prints its time, peak memory and page
 * faults. SPDX-License-Identifier: MIT
 *
 * The allocator is whatever owns malloc in this process: preload another one to measure it.
 * `--json` names the object that owns malloc, so that nobody believes a number of the wrong
 * allocator. */
#include "micro.h"
#include "system.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_DEFAULT = 10, ROUNDS_MAX = 1000 };

struct sample {
    double cpu_ns, wall_ns; /* per operation */
    double first_half_ns;   /* wall per operation up to bench_lap, 0 without a lap */
};

struct result {
    const struct pattern *pattern;
    unsigned rounds;
    uint64_t operations;    /* of one round; the same in every round */
    struct sample *samples; /* one per round */
    long faults_prepare, faults_rounds;
    long peak_kb, base_kb; /* VmHWM at the end and before prepare */
};

static const struct family *const families[] = {
    &small_family, &tree_family, &thread_family, &large_family, &resize_family, &fragment_family,
};
enum { FAMILY_COUNT = sizeof families / sizeof *families };

static uint64_t lap_ns;

static void fail(const char *what)
{
    fprintf(stderr, "micro: %s\n", what);
    exit(1);
}

void *bench_memory(size_t bytes)
{
    void *base = system_memory(bytes);
    if (base == NULL) fail("no memory for the tables of the benchmark itself");
    return base;
}

void *bench_need(void *block)
{
    if (block == NULL) fail("the allocator under test returned NULL");
    return block;
}

void bench_lap(void) { lap_ns = system_now().wall_ns; }

static const struct pattern *find_pattern(const char *name)
{
    for (unsigned i = 0; i < FAMILY_COUNT; i++)
        for (unsigned j = 0; j < families[i]->count; j++)
            if (strcmp(families[i]->patterns[j].name, name) == 0) return &families[i]->patterns[j];
    return NULL;
}

static void list_patterns(void)
{
    for (unsigned i = 0; i < FAMILY_COUNT; i++)
        for (unsigned j = 0; j < families[i]->count; j++) {
            const struct pattern *pattern = &families[i]->patterns[j];
            printf("%-20s %s\n", pattern->name, pattern->stresses);
        }
}

static long peak_kb(void)
{
    long kb = system_peak_kb();
    if (kb < 0) fail("the system does not tell the peak of memory");
    return kb;
}

static struct sample time_round(const struct pattern *pattern, uint64_t *operations)
{
    lap_ns = 0;
    struct moment start = system_now();
    *operations = pattern->round(pattern);
    struct moment end = system_now();

    double count = (double)*operations;
    return (struct sample){
        .cpu_ns = (double)(end.cpu_ns - start.cpu_ns) / count,
        .wall_ns = (double)(end.wall_ns - start.wall_ns) / count,
        .first_half_ns = lap_ns != 0 ? (double)(lap_ns - start.wall_ns) / count : 0,
    };
}

static struct result measure(const struct pattern *pattern, unsigned rounds)
{
    struct result result = { .pattern = pattern, .rounds = rounds };
    result.samples = bench_memory(rounds * sizeof *result.samples);
    result.base_kb = peak_kb();
    long faults_start = system_faults();
    if (pattern->prepare != NULL) pattern->prepare(pattern);
    long faults_ready = system_faults();
    for (unsigned i = 0; i < rounds; i++)
        result.samples[i] = time_round(pattern, &result.operations);
    result.faults_rounds = system_faults() - faults_ready;
    result.faults_prepare = faults_ready - faults_start;
    result.peak_kb = peak_kb();
    return result;
}

static double sample_ns(const struct result *result, unsigned round)
{
    const struct sample *sample = &result->samples[round];
    return result->pattern->thread_count > 1 ? sample->wall_ns : sample->cpu_ns;
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The figures of all rounds in rising order: [0] is the minimum, [rounds / 2] the median. */
static double *sorted_figures(const struct result *result)
{
    double *figures = bench_memory(result->rounds * sizeof *figures);
    for (unsigned i = 0; i < result->rounds; i++) figures[i] = sample_ns(result, i);
    qsort(figures, result->rounds, sizeof *figures, compare_doubles);
    return figures;
}

static double first_half_min(const struct result *result)
{
    double least = result->samples[0].first_half_ns;
    for (unsigned i = 1; i < result->rounds; i++)
        if (result->samples[i].first_half_ns < least) least = result->samples[i].first_half_ns;
    return least;
}

static void print_json(const struct result *result)
{
    const double *figures = sorted_figures(result);
    printf("{\"pattern\": \"%s\", \"served_by\": \"%s\", \"clock\": \"%s\", \"rounds\": %u, "
           "\"operations\": %llu, ",
           result->pattern->name, system_malloc_owner(),
           result->pattern->thread_count > 1 ? "wall" : "cpu", result->rounds,
           (unsigned long long)result->operations);
    printf("\"min_ns\": %.3f, \"median_ns\": %.3f, \"first_round_ns\": %.3f, "
           "\"first_half_min_ns\": %.3f, ",
           figures[0], figures[result->rounds / 2], sample_ns(result, 0), first_half_min(result));
    printf("\"peak_kb\": %ld, \"base_kb\": %ld, \"faults_prepare\": %ld, \"faults_rounds\": %ld, "
           "\"cpu_ns\": [",
           result->peak_kb, result->base_kb, result->faults_prepare, result->faults_rounds);
    for (unsigned i = 0; i < result->rounds; i++)
        printf("%s%.3f", i == 0 ? "" : ", ", result->samples[i].cpu_ns);
    printf("], \"wall_ns\": [");
    for (unsigned i = 0; i < result->rounds; i++)
        printf("%s%.3f", i == 0 ? "" : ", ", result->samples[i].wall_ns);
    printf("]}\n");
}

static void print_text(const struct result *result)
{
    const double *figures = sorted_figures(result);
    printf("%s: min %.1f ns, median %.1f ns per operation (%s time), peak %ld KB (%ld before), "
           "minor faults %ld + %ld, malloc owned by %s\n",
           result->pattern->name, figures[0], figures[result->rounds / 2],
           result->pattern->thread_count > 1 ? "wall" : "cpu", result->peak_kb, result->base_kb,
           result->faults_prepare, result->faults_rounds, system_malloc_owner());
}

static void usage(void)
{
    fprintf(stderr, "usage: micro --list | micro --pattern NAME [--rounds 1..%d] [--json]\n",
            ROUNDS_MAX);
    exit(2);
}

int main(int argc, char **argv)
{
    const struct pattern *pattern = NULL;
    long rounds = ROUNDS_DEFAULT;
    bool json = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0) {
            list_patterns();
            return 0;
        }
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[i], "--pattern") == 0 && i + 1 < argc) {
            pattern = find_pattern(argv[++i]);
            if (pattern == NULL) fail("no such pattern; see --list");
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            rounds = strtol(argv[++i], NULL, 10);
        } else {
            usage();
        }
    }
    if (pattern == NULL || rounds < 1 || rounds > ROUNDS_MAX) usage();

    struct result result = measure(pattern, (unsigned)rounds);
    if (json) print_json(&result);
    else print_text(&result);
    return 0;
}
