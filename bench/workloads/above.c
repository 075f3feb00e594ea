/* above.c - blocks just above the sizes where allocators change their way, by 1 to 64 threads.
 * SPDX-License-Identifier: MIT
 *
 * Idea: buffers have round sizes and a header. What is a little longer than the largest class of
 * thread caches (some 16 KB, 64 KB), or than what is worth a mapping of its own, takes a slower
 * way. 320 blocks are alive, shared out among the threads, and random ones are replaced; each
 * thread frees its own. A word is written in each page. */
#include "sizes.h"

#include <stdlib.h>

enum { LIVE_BLOCKS = 320, HELD_PER_LINES = OWN_LINES / 16 };

struct shape {
    size_t bytes; /* up to an eighth more */
    unsigned members;
    uint32_t replacements; /* by all of them together */
};

struct held {
    void *block;
    size_t bytes;
};

_Static_assert(sizeof(struct held) * HELD_PER_LINES == OWN_LINES, "a table ends where lines end");

struct member {
    _Alignas(OWN_LINES) const struct shape *shape;
    struct held *live;
    uint32_t live_count;
    uint64_t random, sum, replacements;
};

static void hold(struct member *member, struct held *held)
{
    held->bytes = size_between(&member->random, member->shape->bytes,
                               member->shape->bytes + member->shape->bytes / 8);
    held->block = need(malloc(held->bytes));
    block_write(held->block, held->bytes, PAGE, member->random ^ held->bytes);
}

static void let_go(struct member *member, struct held *held)
{
    member->sum = member->sum * 3 + block_sum(held->block, held->bytes, (size_t)4 * PAGE);
    free(held->block);
}

static void *work(void *argument)
{
    struct member *member = argument;
    for (uint32_t i = 0; i < member->live_count; i++) hold(member, &member->live[i]);
    for (uint64_t i = 0; i < member->replacements; i++) {
        struct held *victim = &member->live[random_below(&member->random, member->live_count)];
        let_go(member, victim);
        hold(member, victim);
    }
    for (uint32_t i = 0; i < member->live_count; i++) let_go(member, &member->live[i]);
    return NULL;
}

static struct outcome run_above(const struct job *job)
{
    const struct shape *shape = job->workload->shape;
    uint64_t each = scaled(job, shape->replacements / shape->members), sum = 0;
    uint32_t live_count = LIVE_BLOCKS / shape->members;
    struct member *member = own_memory(shape->members * sizeof *member);
    size_t room = (live_count + HELD_PER_LINES - 1) / HELD_PER_LINES * HELD_PER_LINES;
    struct held *live = own_memory(shape->members * room * sizeof *live);

    for (unsigned i = 0; i < shape->members; i++)
        member[i] = (struct member){ .shape = shape,
                                     .live = live + i * room,
                                     .live_count = live_count,
                                     .random = random_start(job->seed, i),
                                     .replacements = each };
    run_threads(shape->members, work, member, sizeof *member);
    for (unsigned i = 0; i < shape->members; i++) sum += member[i].sum;
    return (struct outcome){ sum, (each + live_count) * shape->members };
}

#define KB_16 16000
#define KB_64 ((size_t)64 << 10)
#define MB_1 ((size_t)1 << 20)

static const struct shape shapes[] = {
    { KB_16, 1, 9000000 }, { KB_16, 2, 9000000 }, { KB_16, 16, 9000000 }, { KB_16, 64, 9000000 },
    { KB_64, 1, 2400000 }, { KB_64, 2, 2400000 }, { KB_64, 16, 2400000 }, { KB_64, 64, 2400000 },
    { MB_1, 1, 24000 },    { MB_1, 2, 24000 },    { MB_1, 16, 24000 },    { MB_1, 64, 24000 },
};

#define IDEA "buffers of a round size and their headers"
#define WHAT(size, members) "320 live blocks just above " size ", a random one replaced by " members
#define ABOVE(name, size, members, count, index)                                                 \
    {                                                                                            \
        name, "large", WHAT(size, members), IDEA, count, &shapes[index], run_above, SUITE_TIMED, \
            NULL, NULL                                                                           \
    }

static const struct workload workloads[] = {
    ABOVE("above-16k-1", "16,000 bytes", "one thread", 1, 0),
    ABOVE("above-16k-2", "16,000 bytes", "2 threads", 2, 1),
    ABOVE("above-16k-16", "16,000 bytes", "16 threads", 16, 2),
    ABOVE("above-16k-64", "16,000 bytes", "64 threads", 64, 3),
    ABOVE("above-64k-1", "64 KB", "one thread", 1, 4),
    ABOVE("above-64k-2", "64 KB", "2 threads", 2, 5),
    ABOVE("above-64k-16", "64 KB", "16 threads", 16, 6),
    ABOVE("above-64k-64", "64 KB", "64 threads", 64, 7),
    ABOVE("above-1m-1", "1 MB", "one thread", 1, 8),
    ABOVE("above-1m-2", "1 MB", "2 threads", 2, 9),
    ABOVE("above-1m-16", "1 MB", "16 threads", 16, 10),
    ABOVE("above-1m-64", "1 MB", "64 threads", 64, 11),
};

const struct workload_list above_list = { workloads, sizeof workloads / sizeof *workloads };
