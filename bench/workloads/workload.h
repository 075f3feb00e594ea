/* workload.h - what a workload is, and the few tools that workloads share.
 * SPDX-License-Identifier: MIT
 *
 * A workload is a whole process with a fixed amount of work. It ends with a checksum over what it
 * read back from its blocks, which depends neither on addresses nor on the allocator nor on the
 * order in which threads happened to run. Everything that it needs besides the blocks under test
 * (pointer tables, orders, generated input) comes from own_memory(), which is mmap. */
#ifndef PRAIRIE_BENCH_WORKLOAD_H
#define PRAIRIE_BENCH_WORKLOAD_H

#include "../random.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct workload;

struct job {
    const struct workload *workload;
    unsigned scale_percent;
    uint64_t seed;
    int argument_count; /* words after the name that the front does not know */
    char **arguments;
};

struct outcome {
    uint64_t checksum;
    uint64_t operations; /* an allocation with its free, mostly; reported as a figure */
};

enum suite { SUITE_TIMED, SUITE_FIGURES, SUITE_NONE };

struct workload {
    const char *name, *group;
    const char *what;  /* what it does and strains, for --list and the suite */
    const char *idea;  /* the published work whose idea it follows */
    unsigned threads;  /* busy at once, the first one included when it works too */
    const void *shape; /* the file's own parameters, or NULL */
    struct outcome (*run)(const struct job *job);
    enum suite suite;  /* which suite file lists it */
    const char *toml;  /* further lines of its suite entry, or NULL */
    const char *usage; /* its own arguments, or NULL when it takes none */
};

/* Threads that work side by side keep what each of them writes this far apart: two lines of 64
 * bytes, for processors fetch lines in pairs. */
#define OWN_LINES 128

struct workload_list {
    const struct workload *workloads;
    unsigned count;
};

/* What this executable contains; table.c or table_cpp.c. */
extern const struct workload_list *const workload_lists[];
extern const unsigned workload_list_count;
extern const char workload_executable[]; /* its name below the build folder of the bench */

/* Zeroed memory from the kernel, never given back; ends the program when there is none. */
void *own_memory(size_t bytes);

/* The same, already resident: a table that must not show between two readings of resident_kb(). */
void *own_resident_memory(size_t bytes);

/* Ends the program when an allocation under test failed: a time with failures in it says nothing.
 * */
void *need(void *block);

/* One line on stderr, naming the workload, and exit code 1. */
void stop(const char *format, ...)
#ifdef __GNUC__
    __attribute__((format(printf, 1, 2), noreturn))
#endif
    ;

/* Adds `name value unit` to the file that PRAIRIE_FIGURES names; does nothing without it. */
void report_figure(const char *name, double value, const char *unit);

/* Physical memory of this process now, and the most that it ever had. Neither allocates. The first
 * is exact; the second is the kernel's VmHWM, which may lack 64 pages for each thread where the
 * kernel is older than 6.2. */
double resident_kb(void);
double resident_peak_kb(void);

double wall_seconds(void);
double cpu_seconds(void); /* processor time of all threads, the allocator's own among them */
void pause_ms(unsigned ms);

/* Runs work(members + i * member_bytes) in `count` threads at once and waits for all of them. */
void run_threads(unsigned count, void *(*work)(void *member), void *members, size_t member_bytes);
/* The same in two steps, for a first thread that measures in between. */
void start_threads(unsigned count, void *(*work)(void *member), void *members, size_t member_bytes);
void join_threads(void);

/* `full` operations at 100 per cent; never less than one. */
static inline uint64_t scaled(const struct job *job, uint64_t full)
{
    uint64_t count = full * job->scale_percent / 100;
    return count > 0 ? count : 1;
}

/* A stream of its own for each (seed, number). */
static inline uint64_t random_start(uint64_t seed, uint64_t number)
{
    uint64_t x =
        seed * 0x9E3779B97F4A7C15ull + number * 0xD1B54A32D192ED03ull + 0x632BE59BD9B4E019ull;
    x ^= x >> 31;
    x *= 0xBF58476D1CE4E5B9ull;
    x ^= x >> 29;
    return x | 1;
}

static inline uint64_t random_between(uint64_t *state, uint64_t least, uint64_t most)
{
    return least + random_below(state, (uint32_t)(most - least + 1));
}

#ifdef __cplusplus
}
#endif

#endif
