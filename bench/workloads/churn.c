/* churn.c - the same mixed work divided among 2, 16 and 64 threads; and none of it shared.
 * SPDX-License-Identifier: MIT
 *
 * Idea: mstress of mimalloc-bench: threads replace random blocks of theirs and swap one in 16 with
 * whatever lies in a place that all threads see. The work and the live blocks are the same in all,
 * so that the three show what more threads than cores cost. threadtest is Berger's: each thread
 * allocates its share, frees it, and never sees another's block. */
#include "sizes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { LIVE = 64 * 1024, PLACES = 1024, SWAP_ONE_IN = 16, SHARE_BLOCKS = 30000 };

struct shape {
    unsigned threads;
    uint64_t operations; /* by all threads together */
};

struct member {
    _Alignas(OWN_LINES) void **live;
    uint32_t live_count;
    uint64_t operations, random, sum;
};

static _Atomic(void *) *places;

static void *churn(void *argument)
{
    struct member *member = argument;
    for (uint64_t i = 0; i < member->operations; i++) {
        void **victim = &member->live[random_below(&member->random, member->live_count)];
        if (i % SWAP_ONE_IN == 0)
            *victim = atomic_exchange(&places[random_below(&member->random, PLACES)], *victim);
        if (*victim != NULL) member->sum += block_word(*victim);
        free(*victim);
        *victim = new_program_block(&member->random);
    }
    for (uint32_t i = 0; i < member->live_count; i++) {
        if (member->live[i] != NULL) member->sum += block_word(member->live[i]);
        free(member->live[i]);
    }
    return NULL;
}

static void *allocate_and_free(void *argument)
{
    struct member *member = argument;
    for (uint64_t i = 0; i < member->operations; i += member->live_count) {
        for (uint32_t j = 0; j < member->live_count; j++) {
            size_t bytes = 8 * (1 + (j & 7));
            member->live[j] = need(malloc(bytes));
            block_write(member->live[j], bytes, PAGE, i + j);
        }
        for (uint32_t j = 0; j < member->live_count; j++) {
            member->sum += block_word(member->live[j]);
            free(member->live[j]);
        }
    }
    return NULL;
}

static struct outcome run_members(const struct job *job, uint32_t live, void *(*work)(void *))
{
    const struct shape *shape = job->workload->shape;
    uint64_t each = scaled(job, shape->operations / shape->threads), sum = 0;
    struct member *member = own_memory(shape->threads * sizeof *member);
    places = own_memory(PLACES * sizeof *places);
    for (unsigned i = 0; i < shape->threads; i++)
        member[i] = (struct member){ .live = own_memory(live / shape->threads * sizeof(void *)),
                                     .live_count = live / shape->threads,
                                     .operations = each,
                                     .random = random_start(job->seed, i) };
    run_threads(shape->threads, work, member, sizeof *member);
    for (unsigned i = 0; i < shape->threads; i++) sum += member[i].sum;
    for (unsigned i = 0; i < PLACES; i++) {
        void *block = atomic_load(&places[i]);
        if (block != NULL) sum += block_word(block);
        free(block);
    }
    return (struct outcome){ sum, each * shape->threads };
}

static struct outcome run_churn(const struct job *job) { return run_members(job, LIVE, churn); }

static struct outcome run_threadtest(const struct job *job)
{
    const struct shape *shape = job->workload->shape;
    return run_members(job, shape->threads * SHARE_BLOCKS, allocate_and_free);
}

static const struct shape two = { 2, 40000000 };
static const struct shape sixteen = { 16, 40000000 };
static const struct shape many = { 64, 40000000 };
static const struct shape apart = { 2, 100000000 };

#define IDEA "mstress of mimalloc-bench"

static const struct workload workloads[] = {
    { "churn-2", "threads",
      "64k live blocks of a program's sizes, replaced by 2 threads which swap one in 16", IDEA, 2,
      &two, run_churn, SUITE_TIMED, NULL, NULL },
    { "churn-16", "threads", "the same work by 16 threads", IDEA, 16, &sixteen, run_churn,
      SUITE_TIMED, NULL, NULL },
    { "churn-64", "threads", "the same work by 64 threads", IDEA, 64, &many, run_churn, SUITE_TIMED,
      NULL, NULL },
    { "threadtest", "threads",
      "2 threads allocate 30,000 blocks of 8 to 64 bytes each and free them, nothing shared",
      "Berger's threadtest", 2, &apart, run_threadtest, SUITE_TIMED, NULL, NULL },
};

const struct workload_list churn_list = { workloads, sizeof workloads / sizeof *workloads };
