/* server.c - a server whose threads die and are replaced, while others free what they allocated.
 * SPDX-License-Identifier: MIT
 *
 * Idea: Larson and Krishnan's server: each line of succession keeps 2,000 blocks and replaces
 * random ones; after a while its thread starts a successor, hands the blocks over and dies,
 * whatever the other lines do at that time. One block in eight is exchanged at hand-over for what
 * another line left in a common place, so that the dead threads' blocks are freed by all lines. */
#include "sizes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { SLOTS = 2000, PLACES = 512, EXCHANGED_ONE_IN = 8 };

struct shape {
    unsigned lines;
    uint64_t replacements; /* by all lines together */
    unsigned generations;
};

struct line {
    _Alignas(OWN_LINES) void *slot[SLOTS];
    uint64_t random, sum, replacements; /* of one generation */
    unsigned generations;               /* still to come */
};

static _Atomic(void *) *places;
static pthread_mutex_t end_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t line_ended = PTHREAD_COND_INITIALIZER;
static unsigned lines_left;

static void start_thread(struct line *line);

static void end_line(void)
{
    pthread_mutex_lock(&end_lock);
    lines_left--;
    pthread_cond_signal(&line_ended);
    pthread_mutex_unlock(&end_lock);
}

static void *serve(void *argument)
{
    struct line *line = argument;
    for (uint64_t i = 0; i < line->replacements; i++) {
        void **victim = &line->slot[random_below(&line->random, SLOTS)];
        if (*victim != NULL) line->sum += block_word(*victim);
        free(*victim);
        *victim = new_program_block(&line->random);
    }
    for (unsigned i = 0; i < SLOTS; i += EXCHANGED_ONE_IN)
        line->slot[i] =
            atomic_exchange(&places[random_below(&line->random, PLACES)], line->slot[i]);
    if (--line->generations > 0) start_thread(line);
    else end_line();
    return NULL;
}

static void start_thread(struct line *line)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve, line) != 0) stop("cannot start a successor");
    pthread_detach(thread);
}

static uint64_t free_rest(void **slot, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (slot[i] != NULL) sum += block_word(slot[i]);
        free(slot[i]);
    }
    return sum;
}

static struct outcome run_server(const struct job *job)
{
    const struct shape *shape = job->workload->shape;
    uint64_t each = scaled(job, shape->replacements / shape->lines / shape->generations);
    struct line *line = own_memory(shape->lines * sizeof *line);
    places = own_memory(PLACES * sizeof *places);
    lines_left = shape->lines;
    for (unsigned i = 0; i < shape->lines; i++) {
        line[i].random = random_start(job->seed, i);
        line[i].replacements = each;
        line[i].generations = shape->generations;
        start_thread(&line[i]);
    }
    pthread_mutex_lock(&end_lock);
    while (lines_left > 0) pthread_cond_wait(&line_ended, &end_lock);
    pthread_mutex_unlock(&end_lock);

    uint64_t sum = free_rest((void **)places, PLACES);
    for (unsigned i = 0; i < shape->lines; i++) sum += line[i].sum + free_rest(line[i].slot, SLOTS);
    return (struct outcome){ sum, each * shape->lines * shape->generations };
}

static const struct shape two = { 2, 70000000, 40 };
static const struct shape sixteen = { 16, 70000000, 20 };

#define IDEA "Larson and Krishnan's server"

static const struct workload workloads[] = {
    { "server-2", "threads",
      "2 threads with 2,000 blocks each, replaced 40 times; heirs and others free the blocks", IDEA,
      2, &two, run_server, SUITE_TIMED, NULL, NULL },
    { "server-16", "threads",
      "16 threads with 2,000 blocks each, replaced 20 times; heirs and others free the blocks",
      IDEA, 16, &sixteen, run_server, SUITE_TIMED, NULL, NULL },
};

const struct workload_list server_list = { workloads, sizeof workloads / sizeof *workloads };
