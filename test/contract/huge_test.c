/* huge_test.c - blocks beyond 4 GiB: no number on the way is cut to 32 bits. */
/* SPDX-License-Identifier: MIT */
#include "checks.h"

#define GIB ((size_t)1 << 30)

/* Rows that the machine had memory for. Without any the whole program counts as skipped. */
static int served_count;

/* Skips the row when the machine says no, which it may; a refusal still has to be a clean one. */
static void *take_or_skip(void *block)
{
    if (block != NULL) {
        served_count++;
        return block;
    }
    assert_int_equal(errno, ENOMEM);
    skip();
    return NULL;
}

/* Marks places whose distances from the start would collide if 32 bits were lost. */
static void mark_places(unsigned char *block, size_t bytes)
{
    for (size_t at = 0; at < bytes - 1; at += GIB) block[at] = (unsigned char)(1 + at / GIB);
    block[bytes - 1] = 0xfe;
}

static bool places_hold(const unsigned char *block, size_t bytes, size_t marked)
{
    for (size_t at = 0; at < bytes && at < marked - 1; at += GIB)
        if (block[at] != (unsigned char)(1 + at / GIB)) return false;
    return bytes < marked || block[marked - 1] == 0xfe;
}

static void beyond_4_gib(const struct check *check)
{
    long before_kb = resident_kb();
    unsigned char *block = take_or_skip(call.malloc(check->bytes));
    assert_true(call.malloc_usable_size(block) >= check->bytes);
    mark_places(block, check->bytes);
    assert_true(places_hold(block, check->bytes, check->bytes));
    assert_true(resident_kb() - before_kb < 64 * KIB);
    call.free(block);
    assert_true(resident_kb() - before_kb < 64 * KIB);
}

static void calloc_beyond_4_gib(const struct check *check)
{
    long before_kb = resident_kb();
    unsigned char *block = take_or_skip(call.calloc(check->bytes / 16, 16));
    assert_true(call.malloc_usable_size(block) >= check->bytes / 16 * 16);
    for (size_t at = 0; at < check->bytes / 16 * 16; at += GIB / 2) assert_int_equal(block[at], 0);
    long held_kb = resident_kb() - before_kb;
    /* Given back before it is judged: rows that fail must not fill the machine together. */
    call.free(block);
    assert_true(held_kb < 64 * KIB);
}

static void realloc_across_4_gib(const struct check *check)
{
    unsigned char *block = take_or_skip(call.malloc(check->bytes));
    mark_places(block, check->bytes);
    unsigned char *moved = call.realloc(block, check->other);
    if (moved == NULL) {
        assert_int_equal(errno, ENOMEM);
        assert_true(places_hold(block, check->bytes, check->bytes));
        call.free(block);
        skip();
    }
    assert_true(call.malloc_usable_size(moved) >= check->other);
    assert_true(places_hold(moved, check->other, check->bytes));
    call.free(moved);
}

static void aligned_beyond_4_gib(const struct check *check)
{
    unsigned char *block = take_or_skip(call.aligned_alloc(check->align_bytes, check->bytes));
    assert_true(is_aligned(block, check->align_bytes));
    mark_places(block, check->bytes);
    assert_true(places_hold(block, check->bytes, check->bytes));
    call.free(block);
}

int main(void)
{
    checks_begin();
    static const size_t sizes[] = {
        4 * GIB - 4096, 4 * GIB - 1,     4 * GIB, 4 * GIB + 1,     4 * GIB + 8, 4 * GIB + 24,
        4 * GIB + 4096, 4 * GIB + 14336, 5 * GIB, 6 * GIB + 12345, 8 * GIB,
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check_add((struct check){ .run = beyond_4_gib, .bytes = sizes[i] }, "malloc(%zu)",
                  sizes[i]);
        check_add((struct check){ .run = calloc_beyond_4_gib, .bytes = sizes[i] },
                  "calloc(%zu, 16)", sizes[i] / 16);
    }
    static const size_t moves[][2] = {
        { GIB, 5 * GIB },
        { 5 * GIB, GIB },
        { 4 * GIB, 4 * GIB + 1 },
        { 4 * GIB + 4096, 4096 },
        { 5 * GIB, 5 * GIB + 4096 },
        { 4 * GIB + 64, 6 * GIB },
    };
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++)
        check_add((struct check){ .run = realloc_across_4_gib,
                                  .bytes = moves[i][0],
                                  .other = moves[i][1] },
                  "realloc from %zu to %zu", moves[i][0], moves[i][1]);
    for (size_t align = 64; align <= GIB; align *= 256)
        check_add((struct check){ .run = aligned_beyond_4_gib,
                                  .align_bytes = align,
                                  .bytes = 4 * GIB + align },
                  "aligned_alloc(%zu, %zu)", align, 4 * GIB + align);
    int result = checks_run("contract huge");
    if (result == 0 && served_count == 0) skip_test("no block beyond 4 GiB was served");
    return result;
}
