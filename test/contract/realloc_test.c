/* realloc_test.c - contents survive every change of size, in both directions, aligned blocks
 * included. */
/* SPDX-License-Identifier: MIT */
#include "checks.h"

/* Sizes on both sides of the small/large limit and well into the sizes that are moved by
 * mapping. */
static struct sizes ends;

static void collect_ends(void)
{
    static const size_t large[] = {
        14 * KIB + 1, 16 * KIB,  20 * KIB - 1, 32 * KIB,        64 * KIB + 1,
        100000,       128 * KIB, 200000,       256 * KIB - 1,   512 * KIB,
        MIB,          MIB + 1,   2 * MIB,      3 * MIB + 12345, 8 * MIB,
    };
    ends = sizes_of_classes();
    sizes_add(&ends, 1);
    sizes_add(&ends, 100);
    sizes_add(&ends, 5000);
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) sizes_add(&ends, large[i]);
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Long contents are compared in full only where they are cheap, else at both ends and in the
 * middle. */
static void mark(unsigned char *block, size_t bytes, uint64_t key)
{
    if (bytes <= 64 * KIB) {
        stamp(block, bytes, key);
        return;
    }
    stamp(block, 16 * KIB, key);
    for (size_t at = 16 * KIB; at < bytes; at += 1021) block[at] = (unsigned char)(at * 13 + key);
}

static bool mark_holds(const unsigned char *block, size_t bytes, size_t marked, uint64_t key)
{
    size_t common = smaller(bytes, marked);
    if (marked <= 64 * KIB) return stamp_holds(block, common, key);
    if (!stamp_holds(block, smaller(common, 16 * KIB), key)) return false;
    for (size_t at = 16 * KIB; at < common; at += 1021)
        if (block[at] != (unsigned char)(at * 13 + key)) return false;
    return true;
}

static void to_every_size(const struct check *check)
{
    size_t from = check->bytes;
    for (size_t i = 0; i < ends.count; i++) {
        size_t to = ends.bytes[i];
        unsigned char *neighbour = call.malloc(from);
        unsigned char *block = call.malloc(from);
        unsigned char *other = call.malloc(from);
        assert_true(neighbour != NULL && block != NULL && other != NULL);
        mark(neighbour, from, 1);
        mark(block, from, 2);
        mark(other, from, 3);
        errno = SENTINEL;
        unsigned char *moved = call.realloc(block, to);
        assert_non_null(moved);
        assert_int_equal(errno, SENTINEL);
        assert_true(is_aligned(moved, align_promised(to)));
        assert_true(call.malloc_usable_size(moved) >= to);
        assert_true(mark_holds(moved, to, from, 2));
        mark(moved, to, 4);
        assert_true(mark_holds(neighbour, from, from, 1) && mark_holds(other, from, from, 3));
        assert_true(mark_holds(moved, to, to, 4));
        call.free(neighbour);
        call.free(moved);
        call.free(other);
    }
}

/* Blocks from the aligning functions are ordinary blocks to realloc; the new one need not be
 * aligned. */
static void from_aligned(const struct check *check)
{
    static const size_t changes[] = { 1, 40, 500, 4096, 14336, 20000, 70000, 300000, 2 * MIB };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        unsigned char *block = call.aligned_alloc(check->align_bytes, check->bytes);
        assert_non_null(block);
        assert_true(is_aligned(block, check->align_bytes));
        mark(block, check->bytes, 9);
        unsigned char *moved = call.realloc(block, changes[i]);
        assert_non_null(moved);
        assert_true(is_aligned(moved, align_promised(changes[i])));
        assert_true(mark_holds(moved, changes[i], check->bytes, 9));
        mark(moved, changes[i], 10);
        assert_true(mark_holds(moved, changes[i], changes[i], 10));
        call.free(moved);
    }
}

/* One block grows (or shrinks) step by step, as buffers do. */
static void grows_by_steps(const struct check *check)
{
    size_t bytes = 1;
    unsigned char *block = call.malloc(bytes);
    block[0] = 0;
    while (bytes < check->bytes) {
        size_t grown = check->other == 0 ? bytes * 2 : bytes + bytes / check->other + 1;
        block = call.realloc(block, grown);
        assert_non_null(block);
        for (size_t at = 0; at < bytes; at += bytes / 16 + 1)
            assert_int_equal(block[at], (unsigned char)(at * 3));
        for (size_t at = 0; at < grown; at++) block[at] = (unsigned char)(at * 3);
        bytes = grown;
    }
    while (bytes > 1) {
        bytes = bytes / 3 + 1;
        if (bytes == 2) bytes = 1;
        block = call.realloc(block, bytes);
        assert_non_null(block);
        for (size_t at = 0; at < bytes; at += bytes / 64 + 1)
            assert_int_equal(block[at], (unsigned char)(at * 3));
    }
    call.free(block);
}

/* Several buffers growing in turn cannot grow in place for ever: neighbours have to be
 * respected. */
static void grow_in_turn(const struct check *check)
{
    enum { COUNT = 6 };
    unsigned char *block[COUNT] = { NULL };
    for (size_t bytes = check->bytes; bytes <= check->other; bytes += bytes / 2) {
        for (size_t i = 0; i < COUNT; i++) {
            size_t before = bytes == check->bytes ? 0 : (bytes * 2 + 2) / 3;
            block[i] = call.realloc(block[i], bytes);
            assert_non_null(block[i]);
            for (size_t at = 0; at + 2 < before; at += 509)
                assert_int_equal(block[i][at], (unsigned char)(at + i));
            for (size_t at = 0; at < bytes; at++) block[i][at] = (unsigned char)(at + i);
        }
    }
    for (int i = 0; i < COUNT; i++) call.free(block[i]);
}

static void to_same_size(const struct check *check)
{
    void *block = call.malloc(check->bytes);
    stamp(block, check->bytes, 7);
    for (int i = 0; i < 100; i++) {
        block = call.realloc(block, check->bytes);
        assert_non_null(block);
        assert_true(stamp_holds(block, check->bytes, 7));
    }
    assert_true(call.malloc_usable_size(block) >= check->bytes);
    call.free(block);
}

/* A program may use what malloc_usable_size says and ask for exactly that much later. */
static void to_usable_size(const struct check *check)
{
    void *block = call.malloc(check->bytes);
    size_t usable = call.malloc_usable_size(block);
    stamp(block, usable, 8);
    block = call.realloc(block, usable);
    assert_non_null(block);
    assert_true(stamp_holds(block, usable, 8));
    call.free(block);
}

/* realloc(p, 0) gives the block back and says NULL: the memory must not be lost. */
static void to_zero(const struct check *check)
{
    void *warm = call.malloc(check->bytes);
    touch_pages(warm, check->bytes);
    call.free(warm);
    long before_kb = resident_kb();
    size_t rounds = 64 * (size_t)MIB / (check->bytes + 64);
    for (size_t i = 0; i < rounds; i++) {
        void *block = call.malloc(check->bytes);
        assert_non_null(block);
        touch_pages(block, check->bytes);
        errno = SENTINEL;
        assert_null(call.realloc(block, 0));
        assert_int_equal(errno, SENTINEL);
    }
    assert_true(resident_kb() - before_kb < 16 * KIB);
}

/* Shrinking a large block gives most of its memory back for others. */
static void shrinking_releases(const struct check *check)
{
    enum { COUNT = 40 };
    void *block[COUNT];
    long before_kb = resident_kb();
    for (int i = 0; i < COUNT; i++) {
        block[i] = call.malloc(check->bytes);
        assert_non_null(block[i]);
        touch_pages(block[i], check->bytes);
        block[i] = call.realloc(block[i], 100);
        assert_non_null(block[i]);
    }
    long held_kb = resident_kb() - before_kb;
    for (int i = 0; i < COUNT; i++) call.free(block[i]);
    assert_true(held_kb < (long)(check->bytes / KIB) * COUNT / 4);
}

int main(void)
{
    checks_begin();
    collect_ends();
    for (size_t i = 0; i < ends.count; i++) {
        check_add((struct check){ .run = to_every_size, .bytes = ends.bytes[i] },
                  "realloc from %zu to every size and back", ends.bytes[i]);
        check_add((struct check){ .run = to_same_size, .bytes = ends.bytes[i] },
                  "realloc from %zu to the same", ends.bytes[i]);
        check_add((struct check){ .run = to_usable_size, .bytes = ends.bytes[i] },
                  "realloc from %zu to its usable size", ends.bytes[i]);
    }
    static const size_t bytes[] = { 1, 24, 100, 1000, 5000, 14336, 14337, 60000, 400000 };
    for (size_t align = 8; align <= MIB; align *= 2)
        for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
            check_add(
                (struct check){ .run = from_aligned, .align_bytes = align, .bytes = bytes[i] },
                "realloc of aligned_alloc(%zu, %zu)", align, bytes[i]);
    for (size_t divisor = 0; divisor <= 8; divisor += 2)
        check_add((struct check){ .run = grows_by_steps, .other = divisor, .bytes = 6 * MIB },
                  "realloc in steps of 1/%zu up to 6 MiB and down again", divisor);
    check_add((struct check){ .run = grow_in_turn, .bytes = 64, .other = 100000 },
              "small buffers grow in turn");
    check_add((struct check){ .run = grow_in_turn, .bytes = 20000, .other = 4 * MIB },
              "large buffers grow in turn");
    static const size_t freed[] = { 16, 1000, 14336, 14337, 100000, MIB };
    for (size_t i = 0; i < sizeof freed / sizeof freed[0]; i++)
        check_add((struct check){ .run = to_zero, .bytes = freed[i] },
                  "realloc(%zu bytes, 0) frees", freed[i]);
    check_add((struct check){ .run = shrinking_releases, .bytes = MIB },
              "shrinking 1 MiB to 100 bytes gives back");
    check_add((struct check){ .run = shrinking_releases, .bytes = 100000 },
              "shrinking 100 kB to 100 bytes gives back");
    return checks_run("contract realloc");
}
