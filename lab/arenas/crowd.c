/* crowd.c - many threads on few arenas: how the rules share out the work, and what it costs.
 * SPDX-License-Identifier: MIT
 *
 * usage: crowd --rule R --threads T --steps S [--shape small|medium|unequal]
 * S steps altogether. In each step a thread replaces one of its blocks; every other time it leaves
 * the old block on a table that all share and frees the one it finds there, so that half of all
 * blocks are freed by another thread. small: 16 to 511 bytes; medium: 8 to 8,007 bytes; unequal:
 * medium, but every second thread works only one step of 64. The threads are dealt out to the cores
 * and then left alone. One line of JSON; at the end the library's walker looks at everything, and
 * nothing may be left. */
#define PRAIRIE_RULE_ELSEWHERE
#include "../../src/prairie.c"

#include "rules.c"

#include "../../bench/memory.h"
#include "../../bench/random.h"
#include "../kit/cores.h"

#include <prairie/prairie.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { CROWD_MAX = 256, OWN_BLOCKS = 2000, TABLE_BLOCKS = 4096, IDLE_SHARE = 64 };

struct worker {
    pthread_t thread;
    unsigned number;
    uint64_t steps;
    uint64_t *block[OWN_BLOCKS];
    uint64_t broken; /* blocks that did not hold what was written */
};

static struct worker worker[CROWD_MAX];
static uint64_t *table[TABLE_BLOCKS]; /* atomic */
static pthread_barrier_t ready, begin, work_done, measured;

static struct {
    const struct rule *rule;
    unsigned threads;
    uint64_t steps;
    bool small, unequal;
} job;

/* ---- one thread ---- */

static size_t draw_bytes(uint64_t *random)
{
    return job.small ? random_small_bytes(random) : 8 + random_below(random, 8000);
}

static uint64_t *new_block(uint64_t *random)
{
    uint64_t *block = prairie_malloc(draw_bytes(random));

    if (block == NULL) abort();
    *block = (uint64_t)(uintptr_t)block ^ 0x5a5a5a5a5a5a5a5au;
    return block;
}

static void end_block(struct worker *me, uint64_t *block)
{
    if (block == NULL) return;
    me->broken += *block != ((uint64_t)(uintptr_t)block ^ 0x5a5a5a5a5a5a5a5au);
    prairie_free(block);
}

static void replace_blocks(struct worker *me)
{
    uint64_t random = 88172645463325252u + me->number;

    for (uint64_t i = 0; i < me->steps; i++) {
        uint64_t **place = &me->block[random_below(&random, OWN_BLOCKS)];
        uint64_t *old = *place;

        if (i % 2 == 0)
            old = __atomic_exchange_n(&table[random_below(&random, TABLE_BLOCKS)], old,
                                      __ATOMIC_ACQ_REL);
        end_block(me, old);
        *place = new_block(&random);
    }
}

static void start_on_a_core(unsigned turn)
{
    cpu_set_t allowed;

    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    core_stay(turn);
    (void)sched_setaffinity(0, sizeof allowed, &allowed);
}

/* Threads allocate for the first time in the order in which they were made, as programs' do: rules
 * that give turns then give them in this order. */
static void allocate_in_turn(unsigned number)
{
    static unsigned arrived; /* atomic */

    while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) != number) sched_yield();
    prairie_free(prairie_malloc(64));
    __atomic_store_n(&arrived, number + 1, __ATOMIC_RELEASE);
}

static bool is_idle(unsigned number) { return job.unequal && number % 2 == 1; }

static void *work(void *argument)
{
    struct worker *me = argument;

    start_on_a_core(job.unequal ? me->number / 2 : me->number);
    thread_is_busy = !is_idle(me->number);
    allocate_in_turn(me->number);
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&begin);
    replace_blocks(me);
    pthread_barrier_wait(&work_done);
    pthread_barrier_wait(&measured);
    for (unsigned i = 0; i < OWN_BLOCKS; i++) end_block(me, me->block[i]);
    return NULL;
}

/* ---- the report ---- */

static uint64_t cpu_ns(const struct rusage *usage)
{
    return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000000u
         + (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000u;
}

static uint64_t wall_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void print_arenas(void)
{
    printf(", \"arenas\": [");
    for (unsigned index = 0; index < arena_limit; index++) {
        const struct arena *arena = arenas[index];
        const struct arena_tally *tally = &arena_tally[index];
        uint64_t bytes = 0;

        for (unsigned class_index = 1; arena != NULL && class_index < CLASS_COUNT; class_index++)
            bytes += arena->bin[class_index].slab_count * slab_shape[class_index].bytes;
        printf("%s{\"choices\": %llu, \"busy\": %llu, \"moved\": %llu, \"stale\": %llu, \"taken\": "
               "%llu, "
               "\"contended\": %llu, \"waits\": %llu, \"slab_bytes\": %llu}",
               index == 0 ? "" : ", ", (unsigned long long)tally->choices,
               (unsigned long long)tally->busy, (unsigned long long)tally->moved,
               (unsigned long long)tally->stale,
               (unsigned long long)(arena != NULL ? arena->lock.taken : 0),
               (unsigned long long)(arena != NULL ? arena->lock.contended : 0),
               (unsigned long long)(arena != NULL ? arena->lock.waits : 0),
               (unsigned long long)bytes);
    }
    printf("]");
}

static void print_costs(uint64_t start_ns, const struct rusage *before)
{
    struct rusage after;

    getrusage(RUSAGE_SELF, &after);
    printf(
        "{\"rule\": \"%s\", \"threads\": %u, \"steps\": %llu, \"wall_ns\": %llu, \"cpu_ns\": %llu, "
        "\"voluntary\": %ld, \"involuntary\": %ld, \"peak_bytes\": %llu",
        job.rule->name, job.threads, (unsigned long long)job.steps,
        (unsigned long long)(wall_ns() - start_ns),
        (unsigned long long)(cpu_ns(&after) - cpu_ns(before)), after.ru_nvcsw - before->ru_nvcsw,
        after.ru_nivcsw - before->ru_nivcsw, (unsigned long long)memory_peak_kb() * 1024);
}

/* What is left when all was freed, and whether the blocks held what was written. */
static void print_end(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    uint64_t broken = 0;

    for (unsigned i = 0; i < TABLE_BLOCKS; i++) end_block(&worker[0], table[i]);
    for (unsigned i = 0; i < job.threads; i++) broken += worker[i].broken;
    prairie_check_all();
    (void)prairie_purge();
    if (!prairie_stats_read(&stats)) abort();
    printf(", \"broken\": %llu, \"left_bytes\": %zu}\n", (unsigned long long)broken,
           stats.allocated);
}

/* ---- the run ---- */

static void share_steps(void)
{
    uint64_t weight = 0;

    for (unsigned i = 0; i < job.threads; i++) {
        worker[i].number = i;
        weight += is_idle(i) ? 1 : IDLE_SHARE;
    }
    for (unsigned i = 0; i < job.threads; i++)
        worker[i].steps = job.steps * (is_idle(i) ? 1 : IDLE_SHARE) / weight;
}

static int run(void)
{
    struct rusage before;
    uint64_t start_ns;

    share_steps();
    if (pthread_barrier_init(&ready, NULL, job.threads + 1) != 0
        || pthread_barrier_init(&begin, NULL, job.threads + 1) != 0
        || pthread_barrier_init(&work_done, NULL, job.threads + 1) != 0
        || pthread_barrier_init(&measured, NULL, job.threads + 1) != 0)
        return 1;
    for (unsigned i = 0; i < job.threads; i++)
        if (pthread_create(&worker[i].thread, NULL, work, &worker[i]) != 0) return 1;
    pthread_barrier_wait(&ready); /* nobody spins for its turn any more */
    getrusage(RUSAGE_SELF, &before);
    start_ns = wall_ns();
    pthread_barrier_wait(&begin);
    pthread_barrier_wait(&work_done);
    print_costs(start_ns, &before);
    print_arenas();
    pthread_barrier_wait(&measured);
    for (unsigned i = 0; i < job.threads; i++) pthread_join(worker[i].thread, NULL);
    print_end();
    return 0;
}

static bool read_crowd_argument(const char *name, const char *value)
{
    if (strcmp(name, "--rule") == 0) job.rule = rule_named(value);
    else if (strcmp(name, "--threads") == 0) job.threads = (unsigned)strtoul(value, NULL, 10);
    else if (strcmp(name, "--steps") == 0) job.steps = strtoull(value, NULL, 10);
    else if (strcmp(name, "--shape") == 0) {
        job.small = strcmp(value, "small") == 0;
        job.unequal = strcmp(value, "unequal") == 0;
        return job.small || job.unequal || strcmp(value, "medium") == 0;
    } else return false;
    return true;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2)
        if (i + 1 >= argc || !read_crowd_argument(argv[i], argv[i + 1])) return 2;
    if (job.rule == NULL || job.threads == 0 || job.threads > CROWD_MAX) return 2;
    if (!heap_start()) return 1;
    rule_use(job.rule, os_core_count());
    return run();
}
