/* thread.c - patterns of blocks that cross threads, and of threads that come and go.
 * SPDX-License-Identifier: MIT
 *
 * The main thread and one partner, which lives as long as the process, work in step: each hands
 * batches to the other through a short ring and waits by yielding. Figures are wall time. An
 * operation is one block: its malloc in one thread and its free, mostly in the other. */
#include "micro.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { RING_SLOTS = 4, SPINS_BEFORE_YIELD = 200 };

struct exchange_shape {
    uint32_t batch_count; /* batches that each side makes in a round */
    uint32_t batch_blocks;
    int one_way; /* main only allocates, the partner only frees */
};

struct mixed_shape {
    uint32_t live_count; /* blocks that each side keeps */
    uint32_t steps;
    uint32_t step_blocks; /* replaced in one step */
};

/* Apart, so that the two threads share no line but those through which they speak. */
enum { OWN_LINES = 128 };

/* One direction of travel. Exactly one thread sends and exactly one receives. */
struct channel {
    /* written by the sender: release, after the slot is filled */
    _Alignas(OWN_LINES) _Atomic uint64_t sent;
    /* written by the receiver: release, after the slot is empty */
    _Alignas(OWN_LINES) _Atomic uint64_t received;
    _Alignas(OWN_LINES) void **slot[RING_SLOTS]; /* batch_blocks pointers each */
};

struct side {
    _Alignas(OWN_LINES) struct channel *out;
    struct channel *in;
    void **live;
    uint64_t random;
};

static struct channel channels[2];
static struct side sides[2];
static pthread_barrier_t round_start, round_end;
static void (*work)(const struct pattern *pattern, struct side *side);

static void wait_until(const _Atomic uint64_t *counter, uint64_t least)
{
    for (unsigned spins = 0; atomic_load_explicit(counter, memory_order_acquire) < least; spins++) {
        if (spins >= SPINS_BEFORE_YIELD) sched_yield();
    }
}

static void **slot_to_fill(struct channel *channel)
{
    uint64_t sent = atomic_load_explicit(&channel->sent, memory_order_relaxed);
    if (sent >= RING_SLOTS) wait_until(&channel->received, sent - RING_SLOTS + 1);
    return channel->slot[sent % RING_SLOTS];
}

static void send_slot(struct channel *channel)
{
    atomic_fetch_add_explicit(&channel->sent, 1, memory_order_release);
}

static void **slot_to_empty(struct channel *channel)
{
    uint64_t received = atomic_load_explicit(&channel->received, memory_order_relaxed);
    wait_until(&channel->sent, received + 1);
    return channel->slot[received % RING_SLOTS];
}

static void give_slot_back(struct channel *channel)
{
    atomic_fetch_add_explicit(&channel->received, 1, memory_order_release);
}

static void send_batch(const struct exchange_shape *shape, struct channel *channel)
{
    void **batch = slot_to_fill(channel);
    for (uint32_t i = 0; i < shape->batch_blocks; i++) {
        batch[i] = bench_need(malloc(64));
        touch_first_word(batch[i]);
    }
    send_slot(channel);
}

static void free_batch(uint32_t block_count, struct channel *channel)
{
    void **batch = slot_to_empty(channel);
    for (uint32_t i = 0; i < block_count; i++) free(batch[i]);
    give_slot_back(channel);
}

static void exchange_work(const struct pattern *pattern, struct side *side)
{
    const struct exchange_shape *shape = pattern->shape;
    for (uint32_t i = 0; i < shape->batch_count; i++) {
        if (!shape->one_way || side == &sides[0]) send_batch(shape, side->out);
        if (!shape->one_way || side == &sides[1]) free_batch(shape->batch_blocks, side->in);
    }
}

static void *new_mixed(struct side *side)
{
    size_t bytes = random_medium_bytes(&side->random);
    char *block = bench_need(malloc(bytes));
    for (size_t offset = 0; offset < bytes; offset += 1024) *(volatile char *)(block + offset) = 1;
    return block;
}

/* Every other step, the blocks that are replaced are freed by the other side instead of here. */
static void mixed_work(const struct pattern *pattern, struct side *side)
{
    const struct mixed_shape *shape = pattern->shape;
    for (uint32_t step = 0; step < shape->steps; step++) {
        void **batch = step % 2 == 0 ? slot_to_fill(side->out) : NULL;
        for (uint32_t i = 0; i < shape->step_blocks; i++) {
            uint32_t victim = random_below(&side->random, shape->live_count);
            if (batch != NULL) batch[i] = side->live[victim];
            else free(side->live[victim]);
            side->live[victim] = new_mixed(side);
        }
        if (batch == NULL) continue;
        send_slot(side->out);
        free_batch(shape->step_blocks, side->in);
    }
}

static void *partner_main(void *argument)
{
    const struct pattern *pattern = argument;
    for (;;) {
        pthread_barrier_wait(&round_start);
        work(pattern, &sides[1]);
        pthread_barrier_wait(&round_end);
    }
    return NULL;
}

static void start_partner(const struct pattern *pattern, uint32_t slot_blocks)
{
    pthread_t partner;
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned j = 0; j < RING_SLOTS; j++)
            channels[i].slot[j] = bench_memory(slot_blocks * sizeof *channels[i].slot[j]);
        sides[i] = (struct side){ &channels[i], &channels[1 - i], sides[i].live, 0x2545F491 + i };
    }
    pthread_barrier_init(&round_start, NULL, 2);
    pthread_barrier_init(&round_end, NULL, 2);
    if (pthread_create(&partner, NULL, partner_main, (void *)pattern) != 0) abort();
}

static void exchange_prepare(const struct pattern *pattern)
{
    const struct exchange_shape *shape = pattern->shape;
    work = exchange_work;
    start_partner(pattern, shape->batch_blocks);
}

static void mixed_prepare(const struct pattern *pattern)
{
    const struct mixed_shape *shape = pattern->shape;
    work = mixed_work;
    for (unsigned i = 0; i < 2; i++) {
        sides[i].live = bench_memory(shape->live_count * sizeof *sides[i].live);
        sides[i].random = 77 + i;
        for (uint32_t j = 0; j < shape->live_count; j++) sides[i].live[j] = new_mixed(&sides[i]);
    }
    start_partner(pattern, shape->step_blocks);
}

static void work_in_step(const struct pattern *pattern)
{
    pthread_barrier_wait(&round_start);
    work(pattern, &sides[0]);
    pthread_barrier_wait(&round_end);
}

static uint64_t exchange_round(const struct pattern *pattern)
{
    const struct exchange_shape *shape = pattern->shape;
    work_in_step(pattern);
    return (uint64_t)shape->batch_count * shape->batch_blocks * (shape->one_way ? 1 : 2);
}

static uint64_t mixed_round(const struct pattern *pattern)
{
    const struct mixed_shape *shape = pattern->shape;
    work_in_step(pattern);
    return 2ull * shape->steps * shape->step_blocks;
}

enum { CHURN_THREADS = 100, CHURN_BLOCKS = 1000, CROWD_THREADS = 200, CROWD_BLOCKS = 500 };

static void *allocate_and_die(void *argument)
{
    void **blocks = argument;
    uint64_t random = 0x9E3779B97F4A7C15ull;
    for (unsigned i = 0; i < CHURN_BLOCKS; i++) {
        blocks[i] = bench_need(malloc(random_small_bytes(&random)));
        touch_first_word(blocks[i]);
    }
    return NULL;
}

/* While one thread allocates, the blocks of the one that died before it are freed. */
static uint64_t churn_round(const struct pattern *pattern)
{
    static void *blocks[2][CHURN_BLOCKS];
    (void)pattern;
    for (unsigned i = 0; i <= CHURN_THREADS; i++) {
        pthread_t thread;
        if (i < CHURN_THREADS
            && pthread_create(&thread, NULL, allocate_and_die, blocks[i % 2]) != 0)
            abort();
        if (i > 0)
            for (unsigned j = 0; j < CHURN_BLOCKS; j++) free(blocks[(i - 1) % 2][j]);
        if (i < CHURN_THREADS) pthread_join(thread, NULL);
    }
    return (uint64_t)CHURN_THREADS * CHURN_BLOCKS;
}

static void *hold_a_little(void *argument)
{
    void *blocks[CROWD_BLOCKS];
    uint64_t random = (uintptr_t)argument + 0x9E3779B97F4A7C15ull;
    for (unsigned i = 0; i < CROWD_BLOCKS; i++) {
        blocks[i] = bench_need(malloc(random_small_bytes(&random)));
        touch_first_word(blocks[i]);
    }
    pthread_barrier_wait(&round_start);
    for (unsigned i = 0; i < CROWD_BLOCKS; i++) free(blocks[i]);
    return NULL;
}

static uint64_t crowd_round(const struct pattern *pattern)
{
    static pthread_t threads[CROWD_THREADS];
    (void)pattern;
    pthread_barrier_init(&round_start, NULL, CROWD_THREADS);
    for (uintptr_t i = 0; i < CROWD_THREADS; i++)
        if (pthread_create(&threads[i], NULL, hold_a_little, (void *)i) != 0) abort();
    for (unsigned i = 0; i < CROWD_THREADS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&round_start);
    return (uint64_t)CROWD_THREADS * CROWD_BLOCKS;
}

static const struct exchange_shape exchange_64 = { 1000, 1000, 0 };
static const struct exchange_shape one_way_64 = { 2000, 1000, 1 };
static const struct mixed_shape pass_mixed = { 500, 1000, 100 };

static const struct pattern patterns[] = {
    { "exchange-64",
      "two threads exchange 64-byte blocks in batches of 1,000 and free each other's", 2,
      &exchange_64, exchange_prepare, exchange_round },
    { "one-way-64", "one thread allocates 64-byte blocks in batches of 1,000, the other frees them",
      2, &one_way_64, exchange_prepare, exchange_round },
    { "pass-mixed",
      "two threads of 500 live blocks of 8..16,000 bytes; the other frees half of the replaced "
      "ones",
      2, &pass_mixed, mixed_prepare, mixed_round },
    { "thread-churn",
      "100 threads one after the other allocate 1,000 blocks and die; main frees the blocks", 2,
      NULL, NULL, churn_round },
    { "thread-crowd",
      "200 threads at once hold 500 small blocks each (75 KB), then free them and die", 2, NULL,
      NULL, crowd_round },
};

const struct family thread_family = { patterns, sizeof patterns / sizeof *patterns };
