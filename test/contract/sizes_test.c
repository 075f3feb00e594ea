/* sizes_test.c - every door at every limit of size: a whole, aligned, writable block, and errno
 * kept. */
/* SPDX-License-Identifier: MIT */
#include "checks.h"

/* Full contents are stamped up to here; larger blocks are touched page by page. */
enum { STAMP_BYTES_MAX = 256 * KIB };

static void fill(void *block, size_t bytes, uint64_t key)
{
    if (bytes <= STAMP_BYTES_MAX) stamp(block, bytes, key);
    else touch_pages(block, bytes);
}

static bool fill_holds(const void *block, size_t bytes, uint64_t key)
{
    return bytes > STAMP_BYTES_MAX || stamp_holds(block, bytes, key);
}

/* Three blocks of one size at a time, each filled to its last usable byte, must not touch each
 * other. Of the largest there is only one: three would do nothing but fault pages in. */
static void served(const struct check *check)
{
    const struct door *door = check->door;
    unsigned char *block[3];
    size_t usable[3];
    int count = check->bytes <= 2 * MIB ? 3 : 1;

    for (int i = 0; i < count; i++) {
        errno = SENTINEL;
        block[i] = door->take(check->bytes);
        assert_non_null(block[i]);
        assert_int_equal(errno, SENTINEL);
        assert_true(is_aligned(block[i], align_promised(check->bytes)));
        assert_true(is_aligned(block[i], door->align_bytes));
        usable[i] = call.malloc_usable_size(block[i]);
        assert_true(usable[i] >= check->bytes);
        if (door->is_zeroed) assert_true(bytes_are(block[i], 0, check->bytes));
        fill(block[i], usable[i], (uint64_t)i);
    }
    if (count == 3)
        assert_true(block[0] != block[1] && block[1] != block[2] && block[0] != block[2]);
    for (int i = 0; i < count; i++) {
        assert_true(fill_holds(block[i], usable[i], (uint64_t)i));
        errno = SENTINEL;
        call.free(block[i]);
        assert_int_equal(errno, SENTINEL);
    }
}

/* A size that the machine may be too small for: a sound block or a clean refusal, and soon. */
static void served_or_refused(const struct check *check)
{
    double best_ms = 1e9;
    for (int round = 0; round < 3; round++) {
        errno = SENTINEL;
        double start_ms = processor_ms();
        void *block = check->door->take(check->bytes);
        double spent_ms = processor_ms() - start_ms;
        if (spent_ms < best_ms) best_ms = spent_ms;
        if (block == NULL) {
            assert_int_equal(errno, ENOMEM);
            continue;
        }
        assert_int_equal(errno, SENTINEL);
        assert_true(is_aligned(block, 16) && is_aligned(block, check->door->align_bytes));
        assert_true(call.malloc_usable_size(block) >= check->bytes);
        touch_ends(block, check->bytes);
        call.free(block);
    }
    /* Clearing a block that was used before takes its time; clearing one beyond all memory
     * would not end. */
    if (check->door->is_zeroed && check->bytes < 0x1p40) return;
    if (best_ms > ABSURD_MS_MAX) print_message("%.1f ms\n", best_ms);
    assert_true(best_ms <= ABSURD_MS_MAX);
}

/* Every way out takes a block of every size, keeps errno, and leaves the memory for reuse. */
static void given_back(const struct check *check)
{
    for (int i = 0; i < 20; i++) {
        void *block = check->align_bytes > 1 ? call.aligned_alloc(check->align_bytes, check->bytes)
                                             : call.malloc(check->bytes);
        assert_non_null(block);
        touch_ends(block, check->bytes);
        errno = SENTINEL;
        check->exit_door->give(block, check->align_bytes, check->bytes);
        assert_int_equal(errno, SENTINEL);
    }
    void *other = call.malloc(check->bytes);
    assert_non_null(other);
    call.free(other);
}

static void null_is_given_back(const struct check *check)
{
    errno = SENTINEL;
    check->exit_door->give(NULL, 16, check->bytes);
    assert_int_equal(errno, SENTINEL);
}

/* Blocks of no bytes are blocks all the same: distinct while alive, and each can be given back. */
static void zero_bytes_are_unique(const struct check *check)
{
    enum { COUNT = 1000 };
    void *block[COUNT];
    for (int i = 0; i < COUNT; i++) {
        block[i] = check->door->take(0);
        assert_non_null(block[i]);
        for (int j = 0; j < i; j++) assert_true(block[i] != block[j]);
    }
    for (int i = 0; i < COUNT; i++) call.free(block[i]);
}

static void calloc_of_nothing(const struct check *check)
{
    errno = SENTINEL;
    void *first = call.calloc(check->bytes, check->other);
    void *second = call.calloc(check->bytes, check->other);
    assert_non_null(first);
    assert_non_null(second);
    assert_true(first != second);
    assert_int_equal(errno, SENTINEL);
    call.free(first);
    call.free(second);
}

/* pvalloc hands out whole pages, also for a request of nothing. */
static void whole_pages(const struct check *check)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t expected = check->bytes > 0 ? (check->bytes + page - 1) / page * page : page;
    void *block = call.pvalloc(check->bytes);
    assert_non_null(block);
    assert_true(is_aligned(block, page));
    assert_true(call.malloc_usable_size(block) >= expected);
    fill(block, expected, 1);
    call.free(block);
}

static void null_has_no_bytes(const struct check *check)
{
    (void)check;
    errno = SENTINEL;
    assert_int_equal(call.malloc_usable_size(NULL), 0);
    assert_int_equal(errno, SENTINEL);
}

static void add_ways_out(void)
{
    static const size_t bytes[] = { 0,    1,     8,     16,    17,      100,
                                    4096, 14336, 14337, 65536, 1 << 20, 40 << 20 };
    for (size_t e = 0; e < exit_door_count; e++) {
        struct check check = { .exit_door = &exit_doors[e], .align_bytes = 1 };
        for (size_t s = 0; s < sizeof bytes / sizeof bytes[0]; s++) {
            if (strcmp(exit_doors[e].name, "free_aligned_sized") == 0) break;
            check.run = given_back;
            check.bytes = bytes[s];
            check_add(check, "malloc(%zu) then %s", bytes[s], exit_doors[e].name);
        }
        for (size_t align = 16; align <= 1 << 20 && strcmp(exit_doors[e].name, "free_sized") != 0;
             align *= 16) {
            check.run = given_back;
            check.align_bytes = align;
            check.bytes = 3 * align;
            check_add(check, "aligned_alloc(%zu, %zu) then %s", align, 3 * align,
                      exit_doors[e].name);
        }
        check.run = null_is_given_back;
        check.bytes = 24;
        check_add(check, "%s takes NULL", exit_doors[e].name);
    }
}

static void add_sizes(const struct door *door)
{
    struct sizes limits = sizes_at_limits();
    struct sizes doubtful = sizes_doubtful();
    for (size_t s = 0; s < limits.count; s++)
        check_add((struct check){ .run = served, .door = door, .bytes = limits.bytes[s] },
                  "%s serves %zu bytes", door->name, limits.bytes[s]);
    for (size_t s = 0; s < doubtful.count; s++) {
        /* An allocator that clears by hand would eat the machine here instead of failing a
         * check. */
        bool clears_too_much =
            door->is_zeroed && doubtful.bytes[s] > (size_t)1 << 28 && doubtful.bytes[s] < 0x1p40;
        if (!clears_too_much)
            check_add((struct check){ .run = served_or_refused,
                                      .door = door,
                                      .bytes = doubtful.bytes[s] },
                      "%s serves or refuses %zu bytes", door->name, doubtful.bytes[s]);
    }
    check_add((struct check){ .run = zero_bytes_are_unique, .door = door },
              "%s of 0 bytes is unique", door->name);
}

int main(void)
{
    checks_begin();
    for (size_t d = 0; d < door_count; d++) add_sizes(&doors[d]);
    add_ways_out();
    static const size_t nothing[][2] = {
        { 0, 0 }, { 0, 1 }, { 1, 0 }, { 0, SIZE_MAX }, { SIZE_MAX, 0 }
    };
    for (size_t i = 0; i < 5; i++)
        check_add((struct check){ .run = calloc_of_nothing,
                                  .bytes = nothing[i][0],
                                  .other = nothing[i][1] },
                  "calloc(%zu, %zu) is unique", nothing[i][0], nothing[i][1]);
    static const size_t pages[] = { 0, 1, 4095, 4096, 4097, 8191, 8192, 65535, 65537, 1048575 };
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        check_add((struct check){ .run = whole_pages, .bytes = pages[i] },
                  "pvalloc(%zu) is whole pages", pages[i]);
    check_add((struct check){ .run = null_has_no_bytes }, "malloc_usable_size(NULL) is 0");
    return checks_run("contract sizes");
}
