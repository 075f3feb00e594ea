/* calloc_test.c - calloc is zero to its last usable byte, whatever lay in the memory before. */
/* SPDX-License-Identifier: MIT */
#include "checks.h"

/* Bytes enough to fill caches and slabs of a size, yet bounded for the large ones. */
static size_t blocks_of(size_t bytes)
{
    size_t count = 8 * (size_t)MIB / (bytes + 16);
    if (count > 400) return 400;
    return count > 3 ? count : 3;
}

static void *blocks[400];

/* Leaves `count` blocks' worth of memory behind that is dirty up to the last usable byte. */
static void dirty(size_t bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        blocks[i] = call.malloc(bytes);
        assert_non_null(blocks[i]);
        memset(blocks[i], 0xa5, call.malloc_usable_size(blocks[i]));
    }
    for (size_t i = 0; i < count; i++) call.free(blocks[i]);
}

/* Takes twice as many as were dirtied, so that fresh memory is looked at too. */
static void expect_zero(size_t bytes, size_t count)
{
    count = 2 * count <= 400 ? 2 * count : 400;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = i % 2 == 0 ? call.calloc(1, bytes) : call.calloc(bytes, 1);
        assert_non_null(blocks[i]);
        assert_true(bytes_are(blocks[i], 0, call.malloc_usable_size(blocks[i])));
        memset(blocks[i], 0xee, call.malloc_usable_size(blocks[i]));
    }
    for (size_t i = 0; i < count; i++) call.free(blocks[i]);
}

static void zero_over_dirt(const struct check *check)
{
    size_t count = blocks_of(check->bytes);
    dirty(check->bytes, count);
    expect_zero(check->bytes, count);
    expect_zero(check->bytes, count);
}

/* Dirt left by blocks of other sizes: pages change their class on the way. */
static void zero_over_other_sizes(const struct check *check)
{
    static const size_t others[] = { 24, 200, 3000, 14336, 40000, 300000, 2 * MIB };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        dirty(others[i], blocks_of(others[i]));
        expect_zero(check->bytes, blocks_of(check->bytes) / 4 + 1);
    }
}

/* After memory was given to the kernel and taken again, what is known about zero pages must
 * still be true. */
static void zero_after_trim(const struct check *check)
{
    int (*trim)(size_t) = (int (*)(size_t))dlsym(RTLD_DEFAULT, "malloc_trim");
    size_t count = blocks_of(check->bytes);
    dirty(check->bytes, count);
    if (trim != NULL) trim(0);
    expect_zero(check->bytes, count);
    if (trim != NULL) trim(0);
    dirty(check->bytes, count / 2 + 1);
    expect_zero(check->bytes, count);
}

/* Tails cut off by realloc and rests of split runs are dirty too. */
static void zero_after_realloc(const struct check *check)
{
    for (int round = 0; round < 6; round++) {
        void *big = call.malloc(check->bytes * 3);
        assert_non_null(big);
        memset(big, 0xa5, call.malloc_usable_size(big));
        big = call.realloc(big, check->bytes);
        unsigned char *zeroed = call.calloc(2, check->bytes);
        assert_non_null(zeroed);
        assert_true(bytes_are(zeroed, 0, call.malloc_usable_size(zeroed)));
        memset(zeroed, 0xee, call.malloc_usable_size(zeroed));
        big = call.realloc(big, check->bytes * 5);
        assert_non_null(big);
        memset(big, 0xa5, call.malloc_usable_size(big));
        unsigned char *second = call.calloc(check->bytes, 3);
        assert_non_null(second);
        assert_true(bytes_are(second, 0, call.malloc_usable_size(second)));
        call.free(big);
        call.free(zeroed);
        call.free(second);
    }
}

static void zero_over_aligned(const struct check *check)
{
    for (int i = 0; i < 40; i++) {
        blocks[i] = call.aligned_alloc(check->align_bytes, check->bytes);
        assert_non_null(blocks[i]);
        memset(blocks[i], 0xa5, call.malloc_usable_size(blocks[i]));
    }
    for (int i = 0; i < 40; i++) call.free(blocks[i]);
    expect_zero(check->bytes, 40);
}

/* A mixed crowd of sizes, taken and given back at random, sees zeros at every calloc. */
static void zero_in_a_crowd(const struct check *check)
{
    uint64_t state = check->other;
    memset(blocks, 0, sizeof blocks);
    for (long i = 0, rounds = scaled(20000); i < rounds; i++) {
        size_t slot = random_between(&state, 0, 199);
        call.free(blocks[slot]);
        size_t bytes = random_between(&state, 0, random_between(&state, 1, check->bytes));
        if (random_next(&state) % 2 == 0) {
            blocks[slot] = call.calloc(1, bytes);
            assert_non_null(blocks[slot]);
            assert_true(bytes_are(blocks[slot], 0, call.malloc_usable_size(blocks[slot])));
        } else {
            blocks[slot] = call.malloc(bytes);
            assert_non_null(blocks[slot]);
        }
        memset(blocks[slot], 0xa5, call.malloc_usable_size(blocks[slot]));
    }
    for (size_t slot = 0; slot < 200; slot++) call.free(blocks[slot]);
}

int main(void)
{
    uint64_t seed = seed_of_run();
    checks_begin();
    struct sizes sizes = sizes_of_classes();
    static const size_t more[] = { 0,       1,           7,       33,
                                   1000,    14335,       14337,   16384,
                                   16385,   65536,       100000,  MIB,
                                   MIB + 1, 2 * MIB - 1, 4 * MIB, 8 * MIB + 4097 };
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) sizes_add(&sizes, more[i]);
    for (size_t i = 0; i < sizes.count; i++) {
        struct check check = { .bytes = sizes.bytes[i] };
        check.run = zero_over_dirt;
        check_add(check, "calloc of %zu over its own dirt", check.bytes);
        check.run = zero_over_other_sizes;
        check_add(check, "calloc of %zu over dirt of other sizes", check.bytes);
        check.run = zero_after_trim;
        check_add(check, "calloc of %zu after malloc_trim", check.bytes);
        check.run = zero_after_realloc;
        if (check.bytes > 0) check_add(check, "calloc of %zu after realloc", check.bytes);
    }
    for (size_t align = 32; align <= 256 * KIB; align *= 8)
        check_add(
            (struct check){ .run = zero_over_aligned, .align_bytes = align, .bytes = align * 2 },
            "calloc over dirt of blocks aligned to %zu", align);
    static const size_t crowds[] = { 300, 20000, 200000 };
    for (size_t i = 0; i < 3; i++)
        check_add((struct check){ .run = zero_in_a_crowd, .bytes = crowds[i], .other = seed + i },
                  "calloc in a crowd of up to %zu bytes", crowds[i]);
    return checks_run("contract calloc");
}
