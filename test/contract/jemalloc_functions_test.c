/* jemalloc_functions_test.c - the seven functions with flags: sizes told before and after,
 * alignment, zeros, resizing in place and not, refusals, and the ways through no cache. */
/* SPDX-License-Identifier: MIT */
#include "checks.h"

#include <jemalloc/jemalloc.h>

static struct {
    void *(*mallocx)(size_t, int);
    void *(*rallocx)(void *, size_t, int);
    size_t (*xallocx)(void *, size_t, size_t, int);
    size_t (*sallocx)(const void *, int);
    void (*dallocx)(void *, int);
    void (*sdallocx)(void *, size_t, int);
    size_t (*nallocx)(size_t, int);
} x;

static void fetch(void)
{
    x.mallocx = (void *(*)(size_t, int))dlsym(RTLD_DEFAULT, "mallocx");
    x.rallocx = (void *(*)(void *, size_t, int))dlsym(RTLD_DEFAULT, "rallocx");
    x.xallocx = (size_t(*)(void *, size_t, size_t, int))dlsym(RTLD_DEFAULT, "xallocx");
    x.sallocx = (size_t(*)(const void *, int))dlsym(RTLD_DEFAULT, "sallocx");
    x.dallocx = (void (*)(void *, int))dlsym(RTLD_DEFAULT, "dallocx");
    x.sdallocx = (void (*)(void *, size_t, int))dlsym(RTLD_DEFAULT, "sdallocx");
    x.nallocx = (size_t(*)(size_t, int))dlsym(RTLD_DEFAULT, "nallocx");
    must(x.mallocx && x.rallocx && x.xallocx && x.sallocx && x.dallocx && x.sdallocx && x.nallocx);
}

/* The numbers that programs were compiled with. */
static void flags_are_encoded_as_known(const struct check *check)
{
    (void)check;
    assert_int_equal(MALLOCX_LG_ALIGN(12), 12);
    assert_int_equal(MALLOCX_ALIGN(1), 0);
    assert_int_equal(MALLOCX_ALIGN(4096), 12);
    assert_int_equal(MALLOCX_ALIGN(1ull << 40), 40);
    assert_int_equal(MALLOCX_ZERO, 0x40);
    assert_int_equal(MALLOCX_TCACHE_NONE, 0x100);
    assert_int_equal(MALLOCX_TCACHE(0), 0x200);
    assert_int_equal(MALLOCX_TCACHE(5), 0x700);
    assert_int_equal(MALLOCX_ARENA(0), 0x100000);
    assert_int_equal((unsigned)MALLOCX_ARENA(4094), 0xfff00000u);
    assert_int_equal(MALLCTL_ARENAS_ALL, 4096);
    assert_int_equal(MALLCTL_ARENAS_DESTROYED, 4097);
    assert_int_equal(sizeof(extent_hooks_t), 9 * sizeof(void *));
    assert_int_equal(offsetof(extent_hooks_t, merge), 8 * sizeof(void *));
}

static void told_before_is_told_after(size_t bytes, int flags)
{
    size_t told = x.nallocx(bytes, flags);
    void *block = x.mallocx(bytes, flags);
    assert_non_null(block);
    if (told < bytes || x.sallocx(block, flags) != told || call.malloc_usable_size(block) != told)
        fail_msg("%zu bytes with flags %#x: nallocx %zu, sallocx %zu, usable %zu", bytes, flags,
                 told, x.sallocx(block, flags), call.malloc_usable_size(block));
    assert_true(is_aligned(block, (size_t)1 << (flags & 63)));
    touch_ends(block, told);
    x.sdallocx(block, bytes, flags);
}

static void every_size_is_told(const struct check *check)
{
    for (size_t bytes = 1; bytes <= 20000; bytes++)
        told_before_is_told_after(bytes, (int)check->other);
    for (size_t bytes = 20480; bytes <= (size_t)17 * MIB; bytes += bytes / 64 / 4096 * 4096 + 4096)
        for (int away = -1; away <= 1; away++)
            told_before_is_told_after((size_t)((ptrdiff_t)bytes + away), (int)check->other);
}

enum { ADDRESS_BITS = 8 * sizeof(size_t) };
#define LARGEST_CLASS ((size_t)7 << (ADDRESS_BITS - 4))

static void other_sizes_are_told_as_0(const struct check *check)
{
    (void)check;
    assert_int_equal(x.nallocx(LARGEST_CLASS, 0), LARGEST_CLASS);
    assert_int_equal(x.nallocx(LARGEST_CLASS + 1, 0), 0);
    assert_int_equal(x.nallocx((size_t)PTRDIFF_MAX + 1, 0), 0);
    assert_int_equal(x.nallocx(SIZE_MAX, 0), 0);
    assert_int_equal(x.nallocx(1, MALLOCX_LG_ALIGN(ADDRESS_BITS - 1)), 0);
    assert_int_equal(x.nallocx(SIZE_MAX, MALLOCX_ALIGN(4096)), 0);
}

static void absurd_requests_are_refused(const struct check *check)
{
    static const size_t bytes[] = { ADDRESS_BITS > 32 ? LARGEST_CLASS : SIZE_MAX / 4 * 3,
                                    (size_t)PTRDIFF_MAX + 1, SIZE_MAX - 4096, SIZE_MAX };
    void *block = x.mallocx(100, 0);
    stamp(block, 100, 1);
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        errno = SENTINEL;
        expect_refused(x.mallocx(bytes[i], (int)check->other));
        errno = SENTINEL;
        expect_refused(x.rallocx(block, bytes[i], (int)check->other));
        assert_int_equal(x.xallocx(block, bytes[i], 0, 0), x.sallocx(block, 0));
        assert_int_equal(x.xallocx(block, 100, bytes[i], 0), x.sallocx(block, 0));
        assert_true(stamp_holds(block, 100, 1));
    }
    errno = SENTINEL;
    expect_refused(x.mallocx(1, MALLOCX_LG_ALIGN(ADDRESS_BITS - 1)));
    x.dallocx(block, 0);
}

/* Any size from the request to the usable one may be told when a block comes back. */
static void every_size_in_between_frees(const struct check *check)
{
    int flags = (int)check->other;
    for (size_t bytes = 1; bytes <= 6000; bytes += 1 + bytes / 7) {
        size_t usable = x.nallocx(bytes, flags);
        for (size_t told = bytes; told <= usable; told += 1 + (usable - bytes) / 5) {
            void *block = x.mallocx(bytes, flags);
            errno = SENTINEL;
            x.sdallocx(block, told, flags);
            assert_int_equal(errno, SENTINEL);
        }
    }
}

static bool is_zero(const unsigned char *byte, size_t from, size_t to)
{
    return from >= to || bytes_are(byte + from, 0, to - from);
}

/* Dirty memory lies ready; what is asked for with zeros is clean over its whole usable size. */
static void zeros_when_asked(const struct check *check)
{
    for (size_t bytes = 1; bytes <= (size_t)3 * MIB; bytes = bytes * 3 / 2 + 1) {
        void *dirty[4];
        for (int i = 0; i < 4; i++) {
            dirty[i] = x.mallocx(bytes, (int)check->other);
            memset(dirty[i], 0xa5, x.sallocx(dirty[i], 0));
        }
        for (int i = 0; i < 4; i++) x.dallocx(dirty[i], (int)check->other);
        unsigned char *block = x.mallocx(bytes, (int)check->other | MALLOCX_ZERO);
        assert_true(is_zero(block, 0, x.sallocx(block, 0)));
        memset(block, 0xa5, x.sallocx(block, 0));
        x.sdallocx(block, bytes, (int)check->other | MALLOCX_ZERO);
    }
}

/* rallocx gives the very size that nallocx tells, keeps the contents, and zeroes what is new when
 * asked. */
/* Size 0 has no bytes, and its address never comes back as a block that has. */
static void size_0_stays_apart(const struct check *check)
{
    (void)check;
    for (int align = 1; align <= 512; align *= 2) {
        int flags = MALLOCX_ALIGN((size_t)align);

        for (unsigned i = 0; i < 40; i++) {
            void *warm = x.mallocx((size_t)align, flags), *block;
            x.dallocx(warm, flags);
            block = x.mallocx(0, flags);
            must(block != NULL && (uintptr_t)block % (unsigned)align == 0);
            x.sdallocx(block, 0, flags);
            warm = x.mallocx((size_t)align, flags);
            memset(warm, 1, x.sallocx(warm, flags));
            must(x.sallocx(warm, flags) >= (size_t)align);
        }
    }
    x.dallocx(x.rallocx(x.mallocx(0, 0), 0, MALLOCX_ZERO), 0);
}

/* A block of any size that becomes one of none: its memory is others' from then on, and nothing
 * else's. */
static void resizing_to_nothing(const struct check *check)
{
    enum { BLOCKS = 4 };
    char *block[BLOCKS], *none;

    for (int i = 0; i < BLOCKS; i++) {
        block[i] = x.mallocx(check->bytes, 0);
        must(block[i] != NULL);
        stamp(block[i], check->bytes, (uint64_t)i);
    }
    none = x.rallocx(block[1], 0, (int)check->other);
    must(none != NULL);
    must(x.sallocx(none, 0) <= 16); /* those of the first class stay where they are */
    block[1] = x.mallocx(check->bytes, 0);
    stamp(block[1], check->bytes, 1);
    for (int i = 0; i < BLOCKS; i++) {
        must(stamp_holds(block[i], check->bytes, (uint64_t)i));
        x.dallocx(block[i], 0);
    }
    x.dallocx(none, 0);
}

static void resizing_keeps_contents(const struct check *check)
{
    static const size_t bytes[] = { 1,     100,   700,    1000,    1025,     8000,
                                    14336, 14337, 200000, 1 << 20, 19 << 18, 64 };
    enum { COUNT = sizeof bytes / sizeof bytes[0] };
    int flags = (int)check->other;
    for (size_t from = 0; from < COUNT; from++) {
        for (size_t to = 0; to < COUNT; to++) {
            size_t kept = bytes[from] < bytes[to] ? bytes[from] : bytes[to], old;
            unsigned char *block = x.mallocx(bytes[from], flags);
            old = x.sallocx(block, 0);
            memset(block, 0x77, old);
            stamp(block, bytes[from], from);
            block = x.rallocx(block, bytes[to], flags | MALLOCX_ZERO);
            assert_non_null(block);
            assert_true(is_aligned(block, (size_t)1 << (flags & 63)));
            assert_int_equal(x.sallocx(block, 0), x.nallocx(bytes[to], flags));
            assert_true(is_zero(block, old, x.sallocx(block, 0)));
            block = x.rallocx(block, bytes[from], flags);
            assert_true(stamp_holds(block, kept < bytes[from] ? 0 : kept, from));
            x.sdallocx(block, bytes[from], flags);
        }
    }
}

static void small_blocks_stay_in_their_class(const struct check *check)
{
    (void)check;
    for (size_t bytes = 1; bytes <= 14336; bytes += 1 + bytes / 3) {
        void *block = x.mallocx(bytes, 0);
        size_t usable = x.sallocx(block, 0);
        assert_int_equal(x.xallocx(block, 1, 0, 0), usable);
        assert_int_equal(x.xallocx(block, bytes, 0, 0), usable);
        assert_int_equal(x.xallocx(block, usable + 1, 0, 0), usable);
        assert_int_equal(x.xallocx(block, bytes, SIZE_MAX - bytes, 0), usable);
        assert_int_equal(x.xallocx(block, SIZE_MAX, SIZE_MAX, 0), usable);
        x.sdallocx(block, bytes, 0);
    }
}

/* Shrinks to pages, grows into what it gave up, and no farther than asked. */
static void large_blocks_grow_and_shrink_in_place(const struct check *check)
{
    (void)check;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *block = x.mallocx(4 * MIB, 0);
    stamp(block, 1 * MIB, 3);
    assert_int_equal(x.xallocx(block, 1 * MIB, 0, 0), 1 * MIB);
    assert_int_equal(x.xallocx(block, 3 * MIB, 0, 0), 3 * MIB);
    assert_int_equal(x.xallocx(block, 2 * MIB, page, 0), 2 * MIB + page);
    assert_int_equal(x.xallocx(block, 1 * MIB, 3 * MIB, 0), 4 * MIB);
    assert_int_equal(x.xallocx(block, 1 * MIB + 1, 0, 0), x.nallocx(1 * MIB + 1, 0));
    memset(block + MIB, 0xa5, page);
    assert_int_equal(x.xallocx(block, 3 * MIB, 0, MALLOCX_ZERO), 3 * MIB);
    assert_true(is_zero(block, MIB + page, 3 * MIB));
    assert_true(stamp_holds(block, 1 * MIB, 3));
    assert_int_equal(call.malloc_usable_size(block), 3 * MIB);
    assert_int_equal(x.xallocx(block, 100, 0, 0), 3 * MIB); /* no large block is that small */
    x.sdallocx(block, 3 * MIB, 0);
}

/* With a neighbour in the way it takes what it can, or nothing. Blocks that are shorter than a
 * mapping of their own would be: where the heap has no numbers left, those have no neighbours. */
static void a_neighbour_is_in_the_way(const struct check *check)
{
    enum { COUNT = 64, BYTES = 320 * KIB };
    char *block[COUNT];
    bool found = false;

    (void)check;
    for (int i = 0; i < COUNT; i++) block[i] = x.mallocx(BYTES, 0);
    for (int i = 0; i < COUNT && !found; i++)
        for (int j = 0; j < COUNT && !found; j++) {
            if (block[j] != block[i] + BYTES) continue;
            found = true;
            assert_int_equal(x.xallocx(block[i], 384 * KIB, 0, 0), BYTES);
            assert_int_equal(x.xallocx(block[j], 128 * KIB, 0, 0), 128 * KIB);
            stamp(block[j], 128 * KIB, 9);
            assert_int_equal(x.xallocx(block[i], BYTES, 64 * MIB, 0), BYTES);
            assert_true(stamp_holds(block[j], 128 * KIB, 9));
        }
    assert_true(found);
    for (int i = 0; i < COUNT; i++) x.dallocx(block[i], 0);
}

/* An alignment that a block does not have is not had in place. */
static void alignment_is_asked_of_xallocx(const struct check *check)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), half = page > 32 * KIB ? page : 32 * KIB;
    char *block = x.mallocx(2 * half, MALLOCX_ALIGN(page));
    int beyond = CHAR_BIT * (int)sizeof(size_t) - 1;

    (void)check;
    while (!is_aligned(block, (size_t)1 << beyond)) beyond--;
    assert_int_equal(x.xallocx(block, half, 0, MALLOCX_LG_ALIGN(beyond + 1)), 2 * half);
    assert_int_equal(x.xallocx(block, half, 0, MALLOCX_LG_ALIGN(beyond)), half);
    x.dallocx(block, 0);
}

/* What is aligned to more than a page, and stays so where it is, is not copied for that: it shrinks
 * where it is, and grows into what it gave up. */
static void aligned_blocks_are_resized_in_place(const struct check *check)
{
    int flags = MALLOCX_LG_ALIGN((int)check->other);
    size_t bytes = check->bytes, half = bytes / 2;
    char *block = x.mallocx(bytes, flags);

    stamp(block, bytes, 6);
    assert_ptr_equal(x.rallocx(block, half, flags), block);
    assert_int_equal(x.sallocx(block, flags), half);
    assert_ptr_equal(x.rallocx(block, bytes, flags | MALLOCX_ZERO), block);
    assert_int_equal(x.sallocx(block, flags), bytes);
    assert_true(stamp_holds(block, half, 6));
    assert_true(is_zero((unsigned char *)block, half, bytes));
    x.sdallocx(block, bytes, flags);
}

/* Past the caches a block goes to its slab and comes from there: the lower of two is given out
 * next, whichever was freed last. */
static void without_a_cache_the_lower_block_comes_back(const struct check *check)
{
    enum { COUNT = 100 };
    char *block[COUNT];
    int last = COUNT - 1;

    for (int i = 0; i < COUNT; i++) block[i] = x.mallocx(check->bytes, MALLOCX_TCACHE_NONE);
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < i; j++) assert_true(block[i] != block[j]);
    while (last > 0 && block[last] != block[last - 1] + x.sallocx(block[last], 0)) last--;
    assert_true(last > 0 || check->bytes > 14336);
    if (last > 0) {
        x.sdallocx(block[last - 1], check->bytes, MALLOCX_TCACHE_NONE);
        x.dallocx(block[last], MALLOCX_TCACHE_NONE);
        char *next = x.mallocx(check->bytes, MALLOCX_TCACHE_NONE);
        if (check->bytes <= 100)
            assert_ptr_equal(next, block[last - 1]); /* its slab is still open */
        block[last - 1] = next;
        block[last] = x.mallocx(check->bytes, MALLOCX_TCACHE_NONE);
    }
    for (int i = 0; i < COUNT; i++) x.dallocx(block[i], MALLOCX_TCACHE_NONE);
    x.dallocx(NULL, MALLOCX_TCACHE_NONE);
}

/* Blocks go from one family to the other. */
static void families_mix(const struct check *check)
{
    for (int round = 0; round < 50; round++) {
        void *block = x.mallocx(check->bytes, 0);
        call.free(block);
        block = call.malloc(check->bytes);
        x.sdallocx(block, check->bytes, 0);
        block = call.realloc(x.mallocx(check->bytes, 0), check->bytes + 1);
        x.sdallocx(block, check->bytes + 1, 0);
        block = x.rallocx(call.calloc(1, check->bytes), 2 * check->bytes, 0);
        call.free_sized(block, 2 * check->bytes);
        block = x.mallocx(check->bytes, MALLOCX_TCACHE_NONE);
        x.dallocx(block, 0);
        block = call.aligned_alloc(256, check->bytes);
        x.sdallocx(block, check->bytes, MALLOCX_ALIGN(256));
    }
}

int main(void)
{
    static const int lg_aligns[] = { 0, 3, 4, 5, 6, 8, 10, 11, 12, 13, 16, 21 };
    static const size_t bytes[] = { 1, 16, 100, 1024, 1025, 8192, 14336, 20000, 300000 };

    checks_begin();
    fetch();
    check_add((struct check){ .run = flags_are_encoded_as_known }, "flags are encoded as known");
    for (size_t i = 0; i < sizeof lg_aligns / sizeof lg_aligns[0]; i++) {
        struct check check = { .other = (size_t)lg_aligns[i] };
        check.run = every_size_is_told;
        check_add(check, "nallocx tells every size, aligned to 2^%d", lg_aligns[i]);
        check.run = every_size_in_between_frees;
        check_add(check, "sdallocx takes every size in between, aligned to 2^%d", lg_aligns[i]);
        check.run = resizing_keeps_contents;
        if (i % 4 == 0) check_add(check, "rallocx keeps contents, aligned to 2^%d", lg_aligns[i]);
        check.run = zeros_when_asked;
        check_add(check, "MALLOCX_ZERO, aligned to 2^%d", lg_aligns[i]);
    }
    check_add((struct check){ .run = zeros_when_asked, .other = (size_t)MALLOCX_TCACHE_NONE },
              "MALLOCX_ZERO without a cache");
    check_add(
        (struct check){ .run = every_size_in_between_frees, .other = (size_t)MALLOCX_TCACHE_NONE },
        "sdallocx without a cache");
    check_add((struct check){ .run = size_0_stays_apart }, "size 0 stays apart");
    check_add((struct check){ .run = other_sizes_are_told_as_0 }, "nallocx of absurd sizes is 0");
    check_add((struct check){ .run = absurd_requests_are_refused }, "absurd sizes are refused");
    check_add(
        (struct check){ .run = absurd_requests_are_refused, .other = (size_t)MALLOCX_TCACHE_NONE },
        "absurd sizes are refused without a cache");
    check_add((struct check){ .run = small_blocks_stay_in_their_class },
              "xallocx of small blocks stays in the class");
    check_add((struct check){ .run = large_blocks_grow_and_shrink_in_place },
              "xallocx of large blocks grows and shrinks");
    check_add((struct check){ .run = a_neighbour_is_in_the_way }, "xallocx beside a neighbour");
    check_add((struct check){ .run = alignment_is_asked_of_xallocx }, "xallocx and alignment");
    for (size_t lg_align = 13; lg_align <= 21; lg_align += 4)
        for (size_t mib = 1; mib <= 16; mib *= 16)
            check_add((struct check){ .run = aligned_blocks_are_resized_in_place,
                                      .bytes = mib * MIB,
                                      .other = lg_align },
                      "rallocx in place of %zu MiB, aligned to 2^%zu", mib, lg_align);
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        struct check check = { .bytes = bytes[i] };
        check.run = families_mix;
        check_add(check, "blocks of %zu bytes go between the families", bytes[i]);
        check.run = without_a_cache_the_lower_block_comes_back;
        check_add(check, "blocks of %zu bytes without a cache", bytes[i]);
        check.run = resizing_to_nothing;
        check_add(check, "rallocx of %zu bytes to 0", bytes[i]);
        check.other = (size_t)MALLOCX_TCACHE_NONE;
        check_add(check, "rallocx of %zu bytes to 0 without a cache", bytes[i]);
    }
    return checks_run("contract jemalloc_functions");
}
