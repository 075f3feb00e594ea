/* producers.c - threads that only allocate and threads that only free, batches between them.
 * SPDX-License-Identifier: MIT
 *
 * Idea: Lever and Boreham's malloc-test and xmalloc-test: no freed block ever returns to the thread
 * that allocated it by itself. It strains the way home: per block, in batches, or through a lock.
 * */
#include "sizes.h"

#include <pthread.h>
#include <stdlib.h>

enum { QUEUE_SLOTS = 8, BATCH_BLOCKS = 2048 };

struct shape {
    unsigned pairs;
    uint64_t batches; /* by all producers together */
    size_t bytes;     /* 0: a program's mix */
};

static struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    unsigned first, count;
    void *(*slot)[BATCH_BLOCKS];
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER,
            .filled = PTHREAD_COND_INITIALIZER,
            .emptied = PTHREAD_COND_INITIALIZER };

struct member {
    _Alignas(OWN_LINES) const struct shape *shape;
    int produces;
    uint64_t batches, random, sum;
    void **batch; /* the one it is working on */
};

/* The batch is copied under the lock: 16 KB against some ten thousand instructions of work. */
static void push(void *const *batch)
{
    pthread_mutex_lock(&queue.lock);
    while (queue.count == QUEUE_SLOTS) pthread_cond_wait(&queue.emptied, &queue.lock);
    memcpy(queue.slot[(queue.first + queue.count++) % QUEUE_SLOTS], batch, sizeof *queue.slot);
    pthread_cond_signal(&queue.filled);
    pthread_mutex_unlock(&queue.lock);
}

static void pull(void **batch)
{
    pthread_mutex_lock(&queue.lock);
    while (queue.count == 0) pthread_cond_wait(&queue.filled, &queue.lock);
    memcpy(batch, queue.slot[queue.first], sizeof *queue.slot);
    queue.first = (queue.first + 1) % QUEUE_SLOTS;
    queue.count--;
    pthread_cond_signal(&queue.emptied);
    pthread_mutex_unlock(&queue.lock);
}

static void fill(struct member *member)
{
    size_t bytes = member->shape->bytes;
    for (unsigned i = 0; i < BATCH_BLOCKS; i++) {
        if (bytes == 0) {
            member->batch[i] = new_program_block(&member->random);
        } else {
            member->batch[i] = need(malloc(bytes));
            block_write(member->batch[i], bytes, PAGE, random_next(&member->random));
        }
    }
}

static void *work(void *argument)
{
    struct member *member = argument;
    for (uint64_t i = 0; i < member->batches; i++) {
        if (member->produces) {
            fill(member);
            push(member->batch);
            continue;
        }
        pull(member->batch);
        for (unsigned j = 0; j < BATCH_BLOCKS; j++) {
            member->sum += block_word(member->batch[j]);
            free(member->batch[j]);
        }
    }
    return NULL;
}

static struct outcome run_producers(const struct job *job)
{
    const struct shape *shape = job->workload->shape;
    uint64_t each = scaled(job, shape->batches / shape->pairs), sum = 0;
    unsigned members = shape->pairs * 2;
    struct member *member = own_memory(members * sizeof *member);
    queue.slot = own_memory(QUEUE_SLOTS * sizeof *queue.slot);
    for (unsigned i = 0; i < members; i++)
        member[i] = (struct member){ shape, i % 2 == 0,
                                     each,  random_start(job->seed, i),
                                     0,     own_memory(sizeof *queue.slot) };
    run_threads(members, work, member, sizeof *member);
    for (unsigned i = 0; i < members; i++) sum += member[i].sum;
    return (struct outcome){ sum, each * shape->pairs * BATCH_BLOCKS };
}

static const struct shape one_way = { 1, 26000, 64 };
static const struct shape four = { 4, 14000, 0 };

#define IDEA "Lever and Boreham's malloc-test; xmalloc-test"

static const struct workload workloads[] = {
    { "producer-64", "threads",
      "one thread allocates blocks of 64 bytes in batches of 2,048, another frees them", IDEA, 2,
      &one_way, run_producers, SUITE_TIMED, NULL, NULL },
    { "producers-4", "threads",
      "four threads allocate blocks of a program's sizes in batches, four free them", IDEA, 8,
      &four, run_producers, SUITE_TIMED, NULL, NULL },
};

const struct workload_list producers_list = { workloads, sizeof workloads / sizeof *workloads };
