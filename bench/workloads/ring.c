/* ring.c - blocks of 8 to 16,000 bytes passed round a ring of threads.
 * SPDX-License-Identifier: MIT
 *
 * Idea: rptest of rpmalloc, random medium sizes with a part freed by others, here with fixed
 * routes: each thread gets a batch from its left, frees half of it, renews that half, and sends the
 * batch to its right, while it replaces blocks of its own. A block may pass several threads before
 * it dies. */
#include "sizes.h"

#include <pthread.h>
#include <stdlib.h>

enum { BATCH_BLOCKS = 100, OWN_BLOCKS = 300 };

struct shape {
    unsigned members;
    uint64_t rounds; /* of all members together */
};

/* A place for one batch between neighbours. */
struct link {
    _Alignas(OWN_LINES) pthread_mutex_t lock;
    pthread_cond_t changed;
    int full;
    void *batch[BATCH_BLOCKS];
};

struct member {
    _Alignas(OWN_LINES) struct link *left;
    struct link *right;
    uint64_t rounds, random, sum;
    void **own;
};

static void send_batch(struct link *link, void *const *batch)
{
    pthread_mutex_lock(&link->lock);
    while (link->full) pthread_cond_wait(&link->changed, &link->lock);
    memcpy(link->batch, batch, sizeof link->batch);
    link->full = 1;
    pthread_cond_signal(&link->changed);
    pthread_mutex_unlock(&link->lock);
}

static void receive_batch(struct link *link, void **batch)
{
    pthread_mutex_lock(&link->lock);
    while (!link->full) pthread_cond_wait(&link->changed, &link->lock);
    memcpy(batch, link->batch, sizeof link->batch);
    link->full = 0;
    pthread_cond_signal(&link->changed);
    pthread_mutex_unlock(&link->lock);
}

static void renew(struct member *member, void **slot)
{
    size_t bytes = size_between(&member->random, 8, 16000);
    if (*slot != NULL) member->sum += block_word(*slot);
    free(*slot);
    *slot = need(malloc(bytes));
    block_write(*slot, bytes, 1024, member->random ^ bytes);
}

static void *work(void *argument)
{
    struct member *member = argument;
    void *batch[BATCH_BLOCKS] = { NULL };
    for (uint64_t round = 0; round < member->rounds; round++) {
        for (unsigned i = round % 2; i < BATCH_BLOCKS; i += 2) renew(member, &batch[i]);
        send_batch(member->right, batch);
        for (unsigned i = 0; i < BATCH_BLOCKS / 2; i++)
            renew(member, &member->own[random_below(&member->random, OWN_BLOCKS)]);
        receive_batch(member->left, batch);
    }
    for (unsigned i = 0; i < BATCH_BLOCKS + OWN_BLOCKS; i++) {
        void *block = i < BATCH_BLOCKS ? batch[i] : member->own[i - BATCH_BLOCKS];
        if (block != NULL) member->sum += block_word(block);
        free(block);
    }
    return NULL;
}

static struct outcome run_ring(const struct job *job)
{
    const struct shape *shape = job->workload->shape;
    uint64_t rounds = scaled(job, shape->rounds / shape->members), sum = 0;
    struct link *links = own_memory(shape->members * sizeof *links);
    struct member *member = own_memory(shape->members * sizeof *member);
    for (unsigned i = 0; i < shape->members; i++) {
        pthread_mutex_init(&links[i].lock, NULL);
        pthread_cond_init(&links[i].changed, NULL);
        member[i] = (struct member){ &links[i], &links[(i + 1) % shape->members],
                                     rounds,    random_start(job->seed, i),
                                     0,         own_memory(OWN_BLOCKS * sizeof(void *)) };
    }
    run_threads(shape->members, work, member, sizeof *member);
    for (unsigned i = 0; i < shape->members; i++) sum += member[i].sum;
    return (struct outcome){ sum, rounds * shape->members * BATCH_BLOCKS };
}

static const struct shape four = { 4, 70000 };
static const struct shape sixteen = { 16, 70000 };

static const struct workload workloads[] = {
    { "ring-4", "threads",
      "4 threads pass batches of blocks of 8 to 16,000 bytes round and renew half of each",
      "rptest; Hoard's blocks that bleed", 4, &four, run_ring, SUITE_TIMED, NULL, NULL },
    { "ring-16", "threads", "the same with 16 threads on however many cores there are",
      "rptest; Hoard's blocks that bleed", 16, &sixteen, run_ring, SUITE_TIMED, NULL, NULL },
};

const struct workload_list ring_list = { workloads, sizeof workloads / sizeof *workloads };
