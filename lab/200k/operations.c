/* operations.c - 100,000 mallocs and 100,000 frees, and nothing else: what callgrind counts.
 * SPDX-License-Identifier: MIT
 *
 * usage: operations [--pairs N] [--beside]
 * A table says beforehand what each operation does, so that the replay is a load, a call and a
 * store. Dumps of callgrind part the process in four: start (the loader and the allocator's
 * constructors), table, test, and the rest. With --beside a second thread sleeps meanwhile:
 * allocators that know that they are alone leave locks out. A line on stdout says who answered
 * malloc and, under prairie, how many locks its statistics counted. */
#define _GNU_SOURCE
#include <prairie/prairie.h>

#include "../../bench/random.h"
#include "../kit/beside.h"
#include "native.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <valgrind/callgrind.h>

#pragma weak prairie_stats_read

enum { PAIRS_MAX = 1000000, LIVE_MAX = 4000 };

struct operation {
    uint32_t slot;
    uint32_t bytes; /* 0: free what is in the slot */
};

static struct operation operations[2 * PAIRS_MAX];
static void *block[LIVE_MAX];
static uint64_t random_state = 88172645463325252u;

/* As in a program of many objects: nine of ten below 512 bytes, every doubling from 16 on equally
 * likely, one of a hundred from 8 to 64 KiB. */
static uint32_t draw_bytes(void)
{
    uint32_t kind = random_below(&random_state, 100), base;

    if (kind < 90) return random_small_bytes(&random_state);
    if (kind == 99) return 8192 + random_below(&random_state, 7 * 8192);
    base = 512u << random_below(&random_state, 4);
    return base + random_below(&random_state, base);
}

/* The first pairs fill the slots, the others replace one at random; at last all are freed. */
static uint32_t make_table(uint32_t pairs)
{
    uint32_t live = pairs < LIVE_MAX ? pairs : LIVE_MAX, count = 0;

    for (uint32_t slot = 0; slot < live; slot++)
        operations[count++] = (struct operation){ slot, draw_bytes() };
    for (uint32_t i = live; i < pairs; i++) {
        uint32_t slot = random_below(&random_state, live);
        operations[count++] = (struct operation){ slot, 0 };
        operations[count++] = (struct operation){ slot, draw_bytes() };
    }
    for (uint32_t slot = 0; slot < live; slot++)
        operations[count++] = (struct operation){ slot, 0 };
    return count;
}

static __attribute__((noinline)) void replay(const struct operation *at, uint32_t count)
{
    for (const struct operation *end = at + count; at != end; at++) {
        if (at->bytes == 0) free(block[at->slot]);
        else block[at->slot] = malloc(at->bytes);
    }
}

/* ---- prairie's own statistics ---- */

/* Reading them takes locks too, always as many. */
static uint64_t locks_so_far(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };

    if (prairie_stats_read == NULL || !prairie_stats_read(&stats)) return 0;
    return stats.lock_acquired;
}

static bool read_arguments(int argc, char **argv, uint32_t *pairs, bool *beside)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--beside") == 0) *beside = true;
        else if (strcmp(argv[i], "--pairs") == 0 && i + 1 < argc)
            *pairs = (uint32_t)strtoul(argv[++i], NULL, 10);
        else return false;
    }
    return *pairs > 0 && *pairs <= PAIRS_MAX;
}

int main(int argc, char **argv)
{
    uint32_t pairs = 100000, count;
    bool beside = false;
    struct beside second;
    uint64_t reading, locks_before, locks_after;
    int64_t native_before, native_after;
    Dl_info owner;

    if (!read_arguments(argc, argv, &pairs, &beside)) return 2;
    if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &owner) == 0) return 1;
    if (beside) beside_start(&second);
    int native = native_open();
    reading = locks_so_far();
    locks_before = locks_so_far();
    reading = locks_before - reading;
    CALLGRIND_DUMP_STATS_AT("start");
    count = make_table(pairs);
    CALLGRIND_DUMP_STATS_AT("table");
    native_before = native_read(native);
    replay(operations, count);
    native_after = native_read(native);
    CALLGRIND_DUMP_STATS_AT("test");
    locks_after = locks_so_far();
    printf("{\"served_by\": \"%s\", \"operations\": %u, \"locks\": %lld, \"native\": %lld}\n",
           owner.dli_fname, count,
           prairie_stats_read == NULL ? -1 : (long long)(locks_after - locks_before - reading),
           native_before < 0 || native_after < 0 ? -1 : (long long)(native_after - native_before));
    fflush(stdout);
    if (beside) beside_end(&second);
    return 0;
}
