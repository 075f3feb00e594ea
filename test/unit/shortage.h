/* shortage.h - what tests of scarce memory share: who was told what, and a kernel without more. */
/* SPDX-License-Identifier: MIT */
/*
 * Include it after library.h.
 */
#ifndef PRAIRIE_TEST_SHORTAGE_H
#define PRAIRIE_TEST_SHORTAGE_H

#include "unit.h"

enum { TOLD_MAX = 10000, CHAIN_MAX = 4096 };

static struct {
    char conditions[TOLD_MAX + 1]; /* a letter for each call: L, C or F */
    char names[TOLD_MAX + 1];      /* who was told, for each call */
    size_t count, last_size;
} told;

/* What a callback can let go of. */
static struct {
    void *block[CHAIN_MAX];
    unsigned count;
} spare;

static void *called(const char *name) { return (void *)(uintptr_t)name; }

static void hear(void *name, reserve_cnd_t condition, size_t size)
{
    if (told.count == TOLD_MAX) return;
    told.conditions[told.count] = "LCF"[condition];
    told.names[told.count++] = *(const char *)name;
    told.last_size = size;
}

static void hear_and_free_all(void *name, reserve_cnd_t condition, size_t size)
{
    hear(name, condition, size);
    while (spare.count > 0) prairie_free(spare.block[--spare.count]);
}

static void hear_and_free_one(void *name, reserve_cnd_t condition, size_t size)
{
    hear(name, condition, size);
    if (spare.count > 0) prairie_free(spare.block[--spare.count]);
}

static void forget_told(void) { memset(&told, 0, sizeof told); }

static void add(reserve_cb_t *call, const char *name)
{
    assert_false(reserve_cb_register(call, called(name)));
}

static void start_with_reserve(void)
{
    assert_false(reserve_min_set(256 * KiB));
    assert_int_equal(reserve_cur_get(), 256 * KiB);
}

/* The kernel has nothing from now on, and no run is free. */
static void exhaust_runs(void)
{
    struct run run;

    fake_fail_kind(FAKE_COMMIT, true);
    fake_fail_kind(FAKE_RESERVE, true);
    for (size_t pages = 256; pages > 0; pages /= 2)
        while ((run = run_lease(pages, 1, PAGE_USED)).page != 0) {}
}

/* Nor is anything held ready. */
static void exhaust(void)
{
    fake_fail_kind(FAKE_COMMIT, true);
    fake_fail_kind(FAKE_RESERVE, true);
    thread_flush();
    decay_before_refusal(SIZE_MAX);
    exhaust_runs();
}

static void *spare_block(size_t bytes)
{
    void *block = prairie_malloc(bytes);

    assert_non_null(block);
    assert_true(spare.count < CHAIN_MAX);
    return spare.block[spare.count++] = block;
}

#endif
