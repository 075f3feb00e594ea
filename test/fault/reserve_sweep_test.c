/* reserve_sweep_test.c - a life with a reserve, callbacks and limits, the n-th kernel call refused,
 * for each n. */
/* SPDX-License-Identifier: MIT */
/*
 * The script takes and frees until memory runs short, again and again; a callback drops the oldest.
 * Whatever the kernel refuses, everything that prairie knows stays whole, and when it stops
 * refusing, the reserve fills up and nothing was lost.
 */
#include <prairie/prairie.h>
#include <prairie/reserve.h>

#include "policy/reserve.h"
#include "sweep.h"

#include <limits.h>

enum { KEPT_MAX = 3000, TURNS = 3, CALLS_LEAST = 20 };
enum { RESERVE_WANTED = 256 * 1024 };

static char *kept[KEPT_MAX];
static unsigned first, count;

static _Noreturn void complain(const char *what, size_t number)
{
    fprintf(stderr, "%s (%zu)\n", what, number);
    _exit(1);
}

static void drop_one(void)
{
    char *block = kept[first++ % KEPT_MAX];

    count--;
    if (*block != 7) complain("a block changed", (size_t)*block);
    prairie_free(block);
}

static void drop(void *unused, reserve_cnd_t condition, size_t size)
{
    (void)unused, (void)size;
    if (condition == RESERVE_CND_FAIL) complain("nobody asked for an end", size);
    account->low++;
    for (unsigned wanted = count / 3; wanted > 0; wanted--) drop_one();
}

static void keep(size_t bytes)
{
    char *block = prairie_malloc(bytes);

    if (block == NULL) {
        account->refusals++;
        return;
    }
    *block = 7;
    if (count == KEPT_MAX) drop_one();
    kept[(first + count++) % KEPT_MAX] = block;
}

static void live(void)
{
    static const size_t sizes[] = { 100, 3000, 20000, 60, 9000, 700, 40000, 16 };

    if (reserve_min_set(RESERVE_WANTED)) account->low++;
    (void)reserve_cb_register(drop, NULL);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        limit_hard_set(turn % 3 == 1 ? 3 << 20 : 0);
        limit_soft_set(turn % 3 == 2 ? 3 << 20 : 0);
        for (unsigned i = 0; i < 1500; i++) keep(sizes[(i + turn) % 8]);
        prairie_check_all();
        while (count > 100) drop_one();
        fake_clock_ms(300);
        (void)reserve_min_set(RESERVE_WANTED - turn * 8192);
    }
}

static void live_on(void)
{
    limit_hard_set(0);
    limit_soft_set(0);
    while (count > 0) drop_one();
    fake_clock_ms(1000);
    if (reserve_min_set(RESERVE_WANTED)) complain("the reserve stays short", reserve_cur_get());
    prairie_check_all();
    if (reserve_cur_get() != RESERVE_WANTED) complain("the reserve has", reserve_cur_get());
    (void)reserve_min_set(0);
    (void)reserve_cb_unregister(drop, NULL);
    (void)prairie_purge();
    prairie_check_all();
    if (page_heap_used_pages(page_heap) != 0)
        complain("pages were lost", page_heap_used_pages(page_heap));
}

static unsigned sweep_row(uint64_t row)
{
    struct swept swept = sweep_calls(row, 100, UINT_MAX); /* the late ones resemble each other */

    return swept.bad + (swept.call < CALLS_LEAST) + (swept.low == 0);
}

static unsigned sweep_all(void)
{
    unsigned bad = sweep_row(1);

    bad += sweep_row(4);
    return bad + sweep_row(25);
}
