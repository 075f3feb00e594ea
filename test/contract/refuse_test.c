/* refuse_test.c - absurd requests: NULL and ENOMEM, at once, and the old block of a realloc
 * stays whole. */
/* SPDX-License-Identifier: MIT */
#include "checks.h"

#include <limits.h>

static double spent_since(double start_ms) { return processor_ms() - start_ms; }

/* Runs `request` three times; the quickest has to be quick. */
#define REFUSED_AT_ONCE(request)                        \
    do {                                                \
        double best_ms = 1e9;                           \
        for (int round = 0; round < 3; round++) {       \
            errno = SENTINEL;                           \
            double start_ms = processor_ms();           \
            void *refused = (request);                  \
            int error = errno;                          \
            double spent_ms = spent_since(start_ms);    \
            if (spent_ms < best_ms) best_ms = spent_ms; \
            errno = error;                              \
            expect_refused(refused);                    \
        }                                               \
        assert_true(best_ms <= ABSURD_MS_MAX);          \
    } while (0)

static void door_refuses(const struct check *check)
{
    REFUSED_AT_ONCE(check->door->take(check->bytes));
}

/* `align_bytes` is the size of the old block here; its contents must survive the refusal. */
static void realloc_refuses(const struct check *check)
{
    size_t bytes = check->align_bytes;
    void *block = call.malloc(bytes);
    assert_non_null(block);
    stamp(block, bytes, bytes);
    REFUSED_AT_ONCE(call.realloc(block, check->bytes));
    REFUSED_AT_ONCE(call.reallocarray(block, check->bytes, 1));
    REFUSED_AT_ONCE(call.reallocarray(block, 1, check->bytes));
    assert_true(stamp_holds(block, bytes, bytes));
    assert_true(call.malloc_usable_size(block) >= bytes);
    void *grown = call.realloc(block, bytes + 1);
    assert_non_null(grown);
    assert_true(stamp_holds(grown, bytes, bytes));
    call.free(grown);
}

static void calloc_overflows(const struct check *check)
{
    REFUSED_AT_ONCE(call.calloc(check->bytes, check->other));
    REFUSED_AT_ONCE(call.calloc(check->other, check->bytes));
}

static void reallocarray_overflows(const struct check *check)
{
    REFUSED_AT_ONCE(call.reallocarray(NULL, check->bytes, check->other));
    REFUSED_AT_ONCE(call.reallocarray(NULL, check->other, check->bytes));
    char *block = call.malloc(100);
    assert_non_null(block);
    stamp(block, 100, 5);
    REFUSED_AT_ONCE(call.reallocarray(block, check->bytes, check->other));
    REFUSED_AT_ONCE(call.reallocarray(block, check->other, check->bytes));
    assert_true(stamp_holds(block, 100, 5));
    call.free(block);
}

static long kb_of_refusals(const struct check *check)
{
    long before_kb = resident_kb();
    for (int i = 0; i < 1000; i++) expect_refused(check->door->take(SIZE_MAX / 2 + 1 + (size_t)i));
    return resident_kb() - before_kb;
}

/* A thousand refusals leave the heap as it was. What an emulator has translated is resident, too,
 * and comes in steps of a huge page: there one of three thousands must cost nothing. */
static void refusals_cost_nothing(const struct check *check)
{
    int rounds = times_slower() > 1 ? 3 : 1;
    long least_kb = LONG_MAX;
    void *warm = check->door->take(1000);

    call.free(warm);
    check->door->take(SIZE_MAX / 2 + 1);
    for (int round = 0; round < rounds && least_kb >= 1024; round++) {
        long kb = kb_of_refusals(check);

        if (kb < least_kb) least_kb = kb;
    }
    assert_true(least_kb < 1024);
}

enum { HALF_BITS = sizeof(size_t) * 4 };

/* Products that wrap around, among them some that wrap to something small. */
static const size_t products[][2] = {
    { SIZE_MAX, 2 },
    { SIZE_MAX, SIZE_MAX },
    { SIZE_MAX / 2 + 1, 2 },
    { SIZE_MAX / 2 + 2, 2 },
    { SIZE_MAX / 4 + 1, 4 },
    { (size_t)1 << HALF_BITS, (size_t)1 << HALF_BITS },
    { ((size_t)1 << HALF_BITS) + 1, (size_t)1 << HALF_BITS },
    { ((size_t)2 << HALF_BITS) + 1, (size_t)1 << (HALF_BITS - 1) },
    { SIZE_MAX / 2 + 2, 16 },
    { SIZE_MAX / 16 + 2, 16 },
    { SIZE_MAX / 16 + 2, 48 },
    { SIZE_MAX / 3 + 1, 3 },
    { SIZE_MAX / 3, 3 },
    { SIZE_MAX / 16, 16 },
    { SIZE_MAX / 1000 + 1, 1000 },
    { PTRDIFF_MAX, 2 },
    { SIZE_MAX / 4 + 1, 2 },
    { (size_t)1 << (HALF_BITS - 1), (size_t)1 << HALF_BITS },
    { SIZE_MAX - 15, 1 },
    { 65537, SIZE_MAX / 65536 },
};

int main(void)
{
    uint64_t seed = seed_of_run();
    checks_begin();
    struct sizes absurd = sizes_absurd(seed);
    for (size_t d = 0; d < door_count; d++) {
        for (size_t s = 0; s < absurd.count; s++)
            check_add(
                (struct check){ .run = door_refuses, .door = &doors[d], .bytes = absurd.bytes[s] },
                "%s refuses %zu", doors[d].name, absurd.bytes[s]);
        check_add((struct check){ .run = refusals_cost_nothing, .door = &doors[d] },
                  "refusals of %s cost nothing", doors[d].name);
    }
    static const size_t old[] = { 1, 24, 1000, 14336, 14337, 100000, 3 * MIB };
    for (size_t o = 0; o < sizeof old / sizeof old[0]; o++)
        for (size_t s = 0; s < absurd.count; s++)
            check_add((struct check){ .run = realloc_refuses,
                                      .align_bytes = old[o],
                                      .bytes = absurd.bytes[s] },
                      "realloc from %zu to %zu keeps the block", old[o], absurd.bytes[s]);
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        struct check check = { .bytes = products[i][0], .other = products[i][1] };
        check.run = calloc_overflows;
        check_add(check, "calloc of %zu times %zu", check.bytes, check.other);
        check.run = reallocarray_overflows;
        check_add(check, "reallocarray of %zu times %zu", check.bytes, check.other);
    }
    return checks_run("contract refuse");
}
