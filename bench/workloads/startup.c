/* startup.c - many short processes, and one that only prints a line.
 * SPDX-License-Identifier: MIT
 *
 * Idea: shells, configure scripts and compilers start thousands of processes that live for a few
 * milliseconds: what an allocator does before the first call and touches for the first blocks is
 * most of its cost there. The child is this program again; it allocates 40 blocks and ends. */
#define _GNU_SOURCE
#include "sizes.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_BLOCKS = 40 };

struct shape {
    uint64_t children;
};

/* The figures are the parent's: children must not add theirs to the file. */
static char **environment_of_children(void)
{
    size_t count = 0, kept = 0;
    while (environ[count] != NULL) count++;
    char **environment = own_memory((count + 1) * sizeof *environment);
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "PRAIRIE_FIGURES=", 16) != 0) environment[kept++] = environ[i];
    return environment;
}

/* By posix_spawn, as make does it: fork would copy the page tables of the parent's heap and run the
 * allocator's handlers, which is another question. */
static int run_child(const char *workload, const char *number, char **environment)
{
    char *const words[] = { "workloads", (char *)workload, "--seed", (char *)number, NULL };
    int status = 0;
    pid_t child;
    int error = posix_spawn(&child, "/proc/self/exe", NULL, NULL, words, environment);
    if (error != 0) stop("cannot start a child: %s", strerror(error));
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) stop("a child was killed");
    return WEXITSTATUS(status);
}

static struct outcome run_startup(const struct job *job)
{
    const struct shape *shape = job->workload->shape;
    uint64_t children = scaled(job, shape->children), sum = 0;
    char **environment = environment_of_children();
    double start = wall_seconds();
    for (uint64_t i = 0; i < children; i++) {
        char number[8];
        snprintf(number, sizeof number, "%u", (unsigned)((i + job->seed) % 100));
        int code = run_child("startup-child", number, environment);
        if (code != (int)((i + job->seed) % 100)) stop("a child ended with %d", code);
        sum = sum * 3 + (uint64_t)code;
    }
    report_figure("process_us", (wall_seconds() - start) / (double)children * 1e6, "us");
    return (struct outcome){ sum, children };
}

/* Ends the process itself: its exit code is its seed, once its blocks held what was written. */
static struct outcome run_startup_child(const struct job *job)
{
    uint64_t random = random_start(job->seed, 0), written = 0, read = 0;
    void *block[CHILD_BLOCKS];
    for (unsigned i = 0; i < CHILD_BLOCKS; i++) {
        block[i] = new_program_block(&random);
        written += random ^ block_word(block[i]);
    }
    random = random_start(job->seed, 0);
    for (unsigned i = 0; i < CHILD_BLOCKS; i++) {
        size_program(&random);
        read += random ^ block_word(block[i]);
        free(block[i]);
    }
    exit(written == read ? (int)(job->seed % 100) : 101);
}

static struct outcome run_line(const struct job *job)
{
    printf("one line\n");
    fflush(stdout);
    report_figure("peak", resident_peak_kb(), "KB");
    return (struct outcome){ job->seed, 1 };
}

static const struct shape many = { 1100 };
static const struct shape ten_thousand = { 10000 };

static const struct workload workloads[] = {
    { "startup", "start", "1,100 processes, one after the other, allocate 40 blocks each and end",
      "shells and configure scripts; the C library's own start-up tests", 1, &many, run_startup,
      SUITE_TIMED, NULL, NULL },
    { "startup-10k", "start", "10,000 such processes: microseconds for each",
      "shells and configure scripts", 1, &ten_thousand, run_startup, SUITE_FIGURES,
      "figure = \"process_us\"\nhigher_is_better = false\n", NULL },
    { "startup-child", "start", "one such process; its exit code is its seed",
      "shells and configure scripts", 1, NULL, run_startup_child, SUITE_NONE, NULL, NULL },
    { "line", "start", "a process that prints a line: its peak resident memory",
      "the smallest program, as every system runs it by the thousand", 1, NULL, run_line,
      SUITE_FIGURES, "figure = \"peak\"\nhigher_is_better = false\n", NULL },
};

const struct workload_list startup_list = { workloads, sizeof workloads / sizeof *workloads };
