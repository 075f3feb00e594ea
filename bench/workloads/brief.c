/* brief.c - threads that are born and gone, with a few huge blocks or many small ones.
 * SPDX-License-Identifier: MIT
 *
 * Idea: mleak and mstress of mimalloc-bench: what a dead thread leaves must serve the next one. The
 * huge ones strain the policy for large blocks, the small ones the cost of a thread's first calls
 * and of its end; half of the small blocks outlive their thread and are freed by the first thread.
 * */
#include "sizes.h"

#include <pthread.h>
#include <stdlib.h>

enum { AT_ONCE = 2, HUGE_BLOCKS = 4, SMALL_BLOCKS = 200 };

struct member {
    _Alignas(OWN_LINES) uint64_t random;
    uint64_t sum;
    void *left[SMALL_BLOCKS]; /* what outlives the thread */
};

static void *hold_huge(void *argument)
{
    struct member *member = argument;
    void *block[HUGE_BLOCKS];
    size_t bytes[HUGE_BLOCKS];
    for (unsigned i = 0; i < HUGE_BLOCKS; i++) {
        bytes[i] = size_between(&member->random, 4000000, 32000000);
        block[i] = need(malloc(bytes[i]));
        block_write(block[i], bytes[i], PAGE, member->random ^ bytes[i]);
    }
    for (unsigned i = 0; i < HUGE_BLOCKS; i++) {
        member->sum += block_sum(block[i], bytes[i], 4 * PAGE);
        free(block[i]);
    }
    return NULL;
}

static void *hold_a_little(void *argument)
{
    struct member *member = argument;
    for (unsigned i = 0; i < SMALL_BLOCKS; i++)
        member->left[i] = new_program_block(&member->random);
    for (unsigned i = 0; i < SMALL_BLOCKS; i += 2) {
        member->sum += block_word(member->left[i]);
        free(member->left[i]);
        member->left[i] = NULL;
    }
    return NULL;
}

static struct outcome run_generations(const struct job *job, uint64_t generations,
                                      void *(*work)(void *))
{
    struct member *members = own_memory(AT_ONCE * sizeof *members);
    uint64_t sum = 0;
    for (unsigned i = 0; i < AT_ONCE; i++) members[i].random = random_start(job->seed, i);
    for (uint64_t generation = 0; generation < generations; generation++) {
        run_threads(AT_ONCE, work, members, sizeof *members);
        for (unsigned i = 0; i < AT_ONCE; i++)
            for (unsigned j = 0; j < SMALL_BLOCKS; j++) {
                if (members[i].left[j] == NULL) continue;
                sum += block_word(members[i].left[j]);
                free(members[i].left[j]);
                members[i].left[j] = NULL;
            }
    }
    for (unsigned i = 0; i < AT_ONCE; i++) sum += members[i].sum;
    return (struct outcome){ sum, generations };
}

static struct outcome run_huge(const struct job *job)
{
    struct outcome outcome = run_generations(job, scaled(job, 25), hold_huge);
    outcome.operations *= (uint64_t)AT_ONCE * HUGE_BLOCKS;
    return outcome;
}

static struct outcome run_small(const struct job *job)
{
    struct outcome outcome = run_generations(job, scaled(job, 12000), hold_a_little);
    outcome.operations *= (uint64_t)AT_ONCE * SMALL_BLOCKS;
    return outcome;
}

static const struct workload workloads[] = {
    { "threads-huge", "threads",
      "2 threads are born and gone 25 times, each with 4 blocks of 4 to 32 MB", "mstress; mleak", 2,
      NULL, run_huge, SUITE_TIMED, NULL, NULL },
    { "threads-brief", "threads",
      "24,000 threads, two at a time, allocate 200 small blocks and die; half is freed by the "
      "first thread",
      "mleak", 2, NULL, run_small, SUITE_TIMED, NULL, NULL },
};

const struct workload_list brief_list = { workloads, sizeof workloads / sizeof *workloads };
