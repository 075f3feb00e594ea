/* main.c - the front of the workloads: arguments, the checksum line, figures and the suite files.
 * SPDX-License-Identifier: MIT
 *
 * The allocator is whatever owns malloc in this process: preload another one to measure it. */
#define _GNU_SOURCE
#include "workload.h"

#include "../memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SCALE_MAX = 10000, THREADS_MAX = 2048 };

static const char *running = "workloads";

void stop(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    fprintf(stderr, "%s: ", running);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    exit(1);
}

void *own_memory(size_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) stop("no memory for the workload's own tables (%zu bytes)", bytes);
    return base;
}

void *own_resident_memory(size_t bytes) { return memset(own_memory(bytes), 0, bytes); }

void *need(void *block)
{
    if (__builtin_expect(block == NULL, 0)) stop("the allocator under test returned NULL");
    return block;
}

void report_figure(const char *name, double value, const char *unit)
{
    const char *path = getenv("PRAIRIE_FIGURES");
    if (path == NULL || *path == '\0') return;

    char line[160];
    int bytes = snprintf(line, sizeof line, "%s %.6g %s\n", name, value, unit);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0 || write(file, line, (size_t)bytes) != bytes)
        stop("cannot write figures to %s: %s", path, strerror(errno));
    close(file);
}

static double told(long kb)
{
    if (kb < 0) stop("the kernel does not tell how much memory is resident");
    return (double)kb;
}

double resident_kb(void) { return told(memory_resident_kb()); }
double resident_peak_kb(void) { return told(memory_peak_kb()); }

static double clock_seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

double wall_seconds(void) { return clock_seconds(CLOCK_MONOTONIC); }
double cpu_seconds(void) { return clock_seconds(CLOCK_PROCESS_CPUTIME_ID); }

void pause_ms(unsigned ms)
{
    struct timespec rest = { ms / 1000, (long)(ms % 1000) * 1000000 };
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {}
}

static pthread_t threads[THREADS_MAX];
static unsigned thread_count;

void start_threads(unsigned count, void *(*work)(void *member), void *members, size_t member_bytes)
{
    if (count > THREADS_MAX) stop("%u threads are more than %d", count, THREADS_MAX);
    for (unsigned i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, (char *)members + i * member_bytes) != 0)
            stop("cannot start thread %u", i);
    thread_count = count;
}

void join_threads(void)
{
    for (unsigned i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
}

void run_threads(unsigned count, void *(*work)(void *member), void *members, size_t member_bytes)
{
    start_threads(count, work, members, member_bytes);
    join_threads();
}

static const struct workload *next_workload(unsigned *list, unsigned *index)
{
    while (*list < workload_list_count && *index == workload_lists[*list]->count) {
        ++*list;
        *index = 0;
    }
    return *list == workload_list_count ? NULL : &workload_lists[*list]->workloads[(*index)++];
}

static const struct workload *find_workload(const char *name)
{
    unsigned list = 0, index = 0;
    const struct workload *workload;
    while ((workload = next_workload(&list, &index)) != NULL)
        if (strcmp(workload->name, name) == 0) return workload;
    return NULL;
}

static void list_workloads(void)
{
    unsigned list = 0, index = 0;
    const struct workload *workload;
    while ((workload = next_workload(&list, &index)) != NULL)
        printf("%-16s %-14s %s%s%s\n", workload->name, workload->group, workload->what,
               workload->usage != NULL ? "; arguments: " : "",
               workload->usage != NULL ? workload->usage : "");
}

/* The entries of one suite file, so that the file never disagrees with the program. */
static int print_suite(const char *name)
{
    enum suite suite = strcmp(name, "workloads") == 0 ? SUITE_TIMED
                     : strcmp(name, "figures") == 0   ? SUITE_FIGURES
                                                      : SUITE_NONE;
    if (suite == SUITE_NONE) stop("no suite '%s'; there are: workloads figures", name);

    unsigned list = 0, index = 0;
    const struct workload *workload;
    while ((workload = next_workload(&list, &index)) != NULL) {
        if (workload->suite != suite) continue;
        printf("\n[[workload]]\nname = \"%s\"\ngroup = \"%s\"\nwhat = \"%s\"\nidea = \"%s\"\n",
               workload->name, workload->group, workload->what, workload->idea);
        printf("command = [\"build/bench/%s\", \"%s\", \"--scale\", \"{scale}\"]\nthreads = %u\n",
               workload_executable, workload->name, workload->threads);
        const char *toml = workload->toml != NULL ? workload->toml : "";
        printf("%s", toml);
        if (strstr(toml, "quick_scale") == NULL)
            printf("quick_scale = %d\n", suite == SUITE_TIMED ? 20 : 30);
    }
    return 0;
}

static uint64_t parse_number(const char *option, const char *text, uint64_t least, uint64_t most)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = text != NULL ? strtoull(text, &end, 10) : 0;
    if (text == NULL || *text < '0' || *text > '9' || *end != '\0' || errno != 0 || value < least
        || value > most)
        stop("%s wants a whole number from %llu to %llu", option, (unsigned long long)least,
             (unsigned long long)most);
    return value;
}

static struct job parse_job(int argc, char **argv)
{
    struct job job = { .workload = find_workload(argv[1]), .scale_percent = 100, .seed = 1 };
    if (job.workload == NULL) stop("no workload '%s'; --list names them", argv[1]);
    running = job.workload->name;
    job.arguments = argv + 2;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--scale") == 0)
            job.scale_percent = (unsigned)parse_number("--scale", argv[++i], 1, SCALE_MAX);
        else if (strcmp(argv[i], "--seed") == 0)
            job.seed = parse_number("--seed", argv[++i], 0, UINT64_MAX);
        else job.arguments[job.argument_count++] = argv[i];
    }
    if (job.argument_count > 0 && job.workload->usage == NULL)
        stop("unknown argument '%s'; there are --scale PERCENT and --seed NUMBER",
             job.arguments[0]);
    return job;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list_workloads();
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "--suite") == 0) return print_suite(argv[2]);
    if (argc < 2 || argv[1][0] == '-') {
        fprintf(stderr,
                "usage: %s --list | --suite workloads|figures | NAME [--scale PERCENT] "
                "[--seed NUMBER]\n",
                workload_executable);
        return 2;
    }

    struct job job = parse_job(argc, argv);
    double wall_start = wall_seconds(), cpu_start = cpu_seconds();
    struct outcome outcome = job.workload->run(&job);
    double cpu = cpu_seconds() - cpu_start;
    double wall = wall_seconds() - wall_start;

    printf("%s scale %u seed %llu checksum %016llx\n", running, job.scale_percent,
           (unsigned long long)job.seed, (unsigned long long)outcome.checksum);
    report_figure("operations", (double)outcome.operations, "count");
    report_figure("run_cpu", cpu * 1e3, "ms");
    report_figure("run_wall", wall * 1e3, "ms");
    if (fflush(stdout) != 0) stop("cannot write the result: %s", strerror(errno));
    return 0;
}
