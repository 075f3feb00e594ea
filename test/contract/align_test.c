/* align_test.c - every alignment from 1 to the highest power, the ones that are none, and sizes up
 * to the end of memory. */
/* SPDX-License-Identifier: MIT */
#include "checks.h"

/* Up to here a request has to be served whatever the machine. */
enum { ALIGN_BYTES_SURE = 16 * MIB, SIZE_BYTES_SURE = MIB };
enum { CLEARED_BYTES_MAX = 64 * MIB };

struct aligner {
    const char *name;
    int (*take)(void **block, size_t align_bytes, size_t bytes);
    size_t align_bytes_min;
};

/* All answer like posix_memalign: 0 or an error number, and check how errno is treated on the
 * way. */
static int answer(void **block)
{
    int error = errno;
    if (*block != NULL) assert_int_equal(error, SENTINEL);
    errno = SENTINEL;
    return *block != NULL ? 0 : error;
}

static int take_aligned_alloc(void **block, size_t align_bytes, size_t bytes)
{
    *block = call.aligned_alloc(align_bytes, bytes);
    return answer(block);
}

static int take_memalign(void **block, size_t align_bytes, size_t bytes)
{
    *block = call.memalign(align_bytes, bytes);
    return answer(block);
}

static int take_posix_memalign(void **block, size_t align_bytes, size_t bytes)
{
    *block = &call;
    int error = call.posix_memalign(block, align_bytes, bytes);
    assert_int_equal(errno, SENTINEL);
    if (error != 0) assert_ptr_equal(*block, &call);
    if (error != 0) *block = NULL;
    return error;
}

static const struct aligner aligners[] = {
    { "aligned_alloc", take_aligned_alloc, 1 },
    { "memalign", take_memalign, 1 },
    { "posix_memalign", take_posix_memalign, sizeof(void *) },
};
enum { ALIGNER_COUNT = sizeof aligners / sizeof aligners[0] };

/* A hardened process gives large blocks as zeros. To clear one that was used before takes the
 * processor up to a ms for each MiB. */
static bool may_be_cleared(size_t bytes)
{
    return flavour_is_hardened() && bytes <= CLEARED_BYTES_MAX;
}

/* One request, answered within the time that any request may take; blocks are checked and given
 * back. */
static int ask(const struct aligner *aligner, size_t align_bytes, size_t bytes)
{
    double best_ms = 1e9;
    int error = 0;
    for (int round = 0; round < 3; round++) {
        void *block = NULL;
        errno = SENTINEL;
        double start_ms = processor_ms();
        error = aligner->take(&block, align_bytes, bytes);
        double spent_ms = processor_ms() - start_ms;
        if (error == 0 && may_be_cleared(bytes)) spent_ms -= (double)bytes / MIB;
        if (spent_ms < best_ms) best_ms = spent_ms;
        if (error != 0) continue;
        assert_true(is_aligned(block, align_bytes));
        assert_true(is_aligned(block, align_promised(bytes)));
        assert_true(call.malloc_usable_size(block) >= bytes);
        touch_ends(block, bytes);
        call.free(block);
    }
    if (best_ms > ABSURD_MS_MAX)
        print_message("align %zu size %zu: %.1f ms\n", align_bytes, bytes, best_ms);
    assert_true(best_ms <= ABSURD_MS_MAX);
    return error;
}

/* `other` is the index of the aligner in these rows. */
static void power_of_two(const struct check *check)
{
    const struct aligner *aligner = &aligners[check->other];
    size_t align = check->align_bytes;
    int error = ask(aligner, align, check->bytes);

    if (align < aligner->align_bytes_min) assert_int_equal(error, EINVAL);
    else if (check->bytes >= PTRDIFF_MAX || check->bytes > SIZE_MAX - align)
        assert_int_equal(error, ENOMEM);
    else if (align >= 0x1p48) assert_int_equal(error, ENOMEM);
    else if (align <= ALIGN_BYTES_SURE && check->bytes <= SIZE_BYTES_SURE)
        assert_int_equal(error, 0);
    else assert_true(error == 0 || error == ENOMEM);
}

static void no_power_of_two(const struct check *check)
{
    const struct aligner *aligner = &aligners[check->other];
    size_t align = check->align_bytes;
    if (aligner->take != take_memalign) {
        assert_int_equal(ask(aligner, align, check->bytes), EINVAL);
        return;
    }
    /* memalign may refuse, or round the alignment up like the C library does. */
    size_t rounded = 1;
    while (rounded < align && rounded <= SIZE_MAX / 4) rounded *= 2;
    errno = SENTINEL;
    void *block = call.memalign(align, check->bytes);
    if (block == NULL) {
        assert_true(errno == EINVAL || errno == ENOMEM);
        return;
    }
    assert_int_equal(errno, SENTINEL);
    assert_true(is_aligned(block, rounded));
    touch_ends(block, check->bytes);
    call.free(block);
}

/* Many aligned blocks alive at once neither overlap nor lose their contents. */
static void crowd(const struct check *check)
{
    enum { COUNT = 24 };
    size_t align = check->align_bytes;
    size_t bytes[COUNT];
    void *block[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        bytes[i] = check->bytes * (i % 3) / 2 + i;
        assert_int_equal(aligners[i % ALIGNER_COUNT].take(&block[i], align, bytes[i]), 0);
        assert_true(is_aligned(block[i], align));
        stamp(block[i], bytes[i], i);
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(stamp_holds(block[i], bytes[i], i));
        call.free(block[i]);
    }
}

static void add_powers_of_two(size_t aligner)
{
    for (unsigned shift = 0; shift < sizeof(size_t) * 8; shift++) {
        size_t align = (size_t)1 << shift;
        size_t sizes[] = {
            0,
            1,
            align / 2 + 1,
            align,
            align + 1,
            100,
            4096,
            14336,
            14337,
            MIB,
            (size_t)PTRDIFF_MAX - align + 1,
            PTRDIFF_MAX,
            SIZE_MAX / 2 + 2,
            SIZE_MAX - align - 4096,
            SIZE_MAX - align,
            SIZE_MAX - align + 1,
            SIZE_MAX - align + 2,
            SIZE_MAX - align / 2,
            SIZE_MAX - 4096,
            SIZE_MAX - 1,
            SIZE_MAX,
        };
        struct sizes distinct = { .count = 0 };
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) sizes_add(&distinct, sizes[s]);
        for (size_t s = 0; s < distinct.count; s++)
            check_add((struct check){ .run = power_of_two,
                                      .other = aligner,
                                      .align_bytes = align,
                                      .bytes = distinct.bytes[s] },
                      "%s(2^%u, %zu)", aligners[aligner].name, shift, distinct.bytes[s]);
    }
}

static void add_no_powers_of_two(size_t aligner)
{
    static const size_t aligns[] = { 0,
                                     3,
                                     5,
                                     6,
                                     7,
                                     12,
                                     24,
                                     48,
                                     96,
                                     1000,
                                     4095,
                                     4097,
                                     6144,
                                     (size_t)3 << 20,
                                     SIZE_MAX / 2 + 2,
                                     SIZE_MAX - 1,
                                     SIZE_MAX };
    static const size_t sizes[] = { 0, 1, 64, 5000, 100000 };
    for (size_t a = 0; a < sizeof aligns / sizeof aligns[0]; a++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            check_add((struct check){ .run = no_power_of_two,
                                      .other = aligner,
                                      .align_bytes = aligns[a],
                                      .bytes = sizes[s] },
                      "%s(%zu, %zu) is no alignment", aligners[aligner].name, aligns[a], sizes[s]);
}

/* What a plain request may rely on, for every size up to 1 KiB in one row per 64. */
static void natural(const struct check *check)
{
    for (size_t bytes = check->bytes; bytes < check->bytes + 64; bytes++) {
        void *block[8];
        for (int i = 0; i < 8; i++) {
            block[i] = call.malloc(bytes);
            assert_non_null(block[i]);
            assert_true(is_aligned(block[i], align_promised(bytes)));
        }
        for (int i = 0; i < 8; i++) call.free(block[i]);
    }
}

int main(void)
{
    checks_begin();
    for (size_t aligner = 0; aligner < ALIGNER_COUNT; aligner++) {
        add_powers_of_two(aligner);
        add_no_powers_of_two(aligner);
    }
    for (size_t align = 8; align <= MIB; align *= 2) {
        check_add((struct check){ .run = crowd, .align_bytes = align, .bytes = align },
                  "24 blocks aligned to %zu, about as large", align);
        check_add((struct check){ .run = crowd, .align_bytes = align, .bytes = 200 },
                  "24 small blocks aligned to %zu", align);
    }
    for (size_t bytes = 0; bytes < 1024; bytes += 64)
        check_add((struct check){ .run = natural, .bytes = bytes },
                  "malloc of %zu to %zu bytes is aligned for its size", bytes, bytes + 63);
    return checks_run("contract align");
}
