/* sharing.c - small blocks written again and again by two threads: do they lie on one cache line?
 * SPDX-License-Identifier: MIT
 *
 * Idea: Hoard's cache-thrash and cache-scratch. Active: two threads allocate at the same time, and
 * an allocator that hands out neighbours makes their writes collide. Passive: the first thread
 * allocated neighbours and handed them over; an allocator that gives each thread the other's part
 * of a line again, after both freed theirs, keeps the collision alive. */
#include "sizes.h"

#include <stdlib.h>

enum { OBJECT_BYTES = 8, THREADS = 2, WRITES = 200 };

struct member {
    void *handed; /* what the first thread allocated, or NULL */
    uint64_t rounds, sum;
    char apart[104];
};

static void *work(void *argument)
{
    struct member *member = argument;
    if (member->handed != NULL) member->sum += block_word(member->handed);
    free(member->handed);
    for (uint64_t round = 0; round < member->rounds; round++) {
        volatile uint64_t *object = need(malloc(OBJECT_BYTES));
        *object = round;
        for (unsigned i = 0; i < WRITES; i++) *object += i;
        member->sum += *object;
        free((void *)object);
    }
    return NULL;
}

static struct outcome run_members(const struct job *job, int hands_over)
{
    struct member *member = own_memory(THREADS * sizeof *member);
    uint64_t rounds = scaled(job, 4000000), sum = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        member[i].rounds = rounds;
        if (hands_over) {
            member[i].handed = need(malloc(OBJECT_BYTES));
            memset(member[i].handed, (int)i, OBJECT_BYTES);
        }
    }
    run_threads(THREADS, work, member, sizeof *member);
    for (unsigned i = 0; i < THREADS; i++) sum += member[i].sum + job->seed;
    return (struct outcome){ sum, rounds * THREADS };
}

static struct outcome run_active(const struct job *job) { return run_members(job, 0); }
static struct outcome run_passive(const struct job *job) { return run_members(job, 1); }

static const struct workload workloads[] = {
    { "share-active", "threads", "2 threads allocate 8 bytes, write them 200 times and free them",
      "Hoard's cache-thrash (active false sharing)", 2, NULL, run_active, SUITE_TIMED, NULL, NULL },
    { "share-passive", "threads",
      "the same after each freed a neighbouring block that the first thread had allocated",
      "Hoard's cache-scratch (passive false sharing)", 2, NULL, run_passive, SUITE_TIMED, NULL,
      NULL },
};

const struct workload_list sharing_list = { workloads, sizeof workloads / sizeof *workloads };
