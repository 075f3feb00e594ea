/* absurd_test.c - every function with arguments that make no sense: refused or served, at once. */
/* SPDX-License-Identifier: MIT */
/*
 * Sizes and alignments of malloc and its kin are refuse_test.c's and align_test.c's. Here are those
 * of the functions with flags, of new, of the reserve and its limits, and of what tells about the
 * heap. No argument makes a call take longer than ABSURD_MS_MAX; a refusal is NULL with ENOMEM.
 */
#include "control.h"

#include <jemalloc/jemalloc.h>
#include <limits.h>

enum { RANDOM_FLAGS = 200, ROUNDS = 5, SIZE_BITS = 8 * sizeof(size_t) };

static void *named(const char *name)
{
    void *address = dlsym(RTLD_DEFAULT, name);

    if (address == NULL) give_up("%s is not there", name);
    return address;
}

/* Runs the statement some times; the quickest has to be quick. */
#define AT_ONCE(statement)                              \
    do {                                                \
        double best_ms = 1e9;                           \
        for (int round = 0; round < ROUNDS; round++) {  \
            double start_ms = processor_ms(), spent_ms; \
            statement;                                  \
            spent_ms = processor_ms() - start_ms;       \
            if (spent_ms < best_ms) best_ms = spent_ms; \
        }                                               \
        assert_true(best_ms <= ABSURD_MS_MAX);          \
    } while (0)

static const size_t sizes[] = {
    0,
    1,
    100,
    14336,
    14337,
    MIB,
    (size_t)1 << (SIZE_BITS - 17),
    (size_t)1 << (SIZE_BITS - 2),
    (size_t)PTRDIFF_MAX - 4096,
    PTRDIFF_MAX,
    (size_t)PTRDIFF_MAX + 1,
    SIZE_MAX - 65536,
    SIZE_MAX - 4096,
    SIZE_MAX - 15,
    SIZE_MAX,
};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* A block or a clean refusal. */
static void judge_new(void *block, size_t bytes, size_t align, void (*give)(void *, size_t))
{
    if (block == NULL) {
        assert_int_equal(errno, ENOMEM);
        return;
    }
    assert_true(bytes < PTRDIFF_MAX);
    assert_true(is_aligned(block, align));
    assert_true(call.malloc_usable_size(block) >= bytes);
    touch_ends(block, bytes);
    give(block, align);
}

static void give_free(void *block, size_t align)
{
    (void)align;
    call.free(block);
}

static void judge(void *block, size_t bytes, size_t align)
{
    judge_new(block, bytes, align, give_free);
}

/* ---- flags ---- */

static void flags_of_mallocx(const struct check *check)
{
    void *(*function)(size_t, int) = (void *(*)(size_t, int))named("mallocx");
    int flags = (int)check->other;
    size_t align = (size_t)1 << (flags & 63);

    for (size_t i = 0; i < SIZES; i++)
        AT_ONCE(errno = SENTINEL; judge(function(sizes[i], flags), sizes[i], align));
}

static void flags_of_rallocx(const struct check *check)
{
    void *(*function)(void *, size_t, int) = (void *(*)(void *, size_t, int))named("rallocx");
    int flags = (int)check->other;

    for (size_t i = 0; i < SIZES; i++) {
        char *block = call.malloc(100), *moved;
        assert_non_null(block);
        stamp(block, 100, i);
        errno = SENTINEL;
        AT_ONCE(if ((moved = function(block, sizes[i], flags)) != NULL) block = moved);
        if (moved == NULL) assert_int_equal(errno, ENOMEM);
        assert_true(stamp_holds(block, moved == NULL || sizes[i] > 100 ? 100 : sizes[i], i));
        call.free(block);
    }
}

static void flags_of_others(const struct check *check)
{
    size_t (*xallocx)(void *, size_t, size_t, int) =
        (size_t(*)(void *, size_t, size_t, int))named("xallocx");
    size_t (*sallocx)(const void *, int) = (size_t(*)(const void *, int))named("sallocx");
    size_t (*nallocx)(size_t, int) = (size_t(*)(size_t, int))named("nallocx");
    int flags = (int)check->other;
    char *block = call.malloc(50000);

    assert_non_null(block);
    for (size_t i = 0; i < SIZES; i++) {
        size_t bytes = 0;
        AT_ONCE(bytes = nallocx(sizes[i], flags));
        assert_true(bytes == 0 || bytes >= sizes[i]);
        AT_ONCE(bytes = sallocx(block, flags));
        assert_int_equal(bytes, call.malloc_usable_size(block));
        AT_ONCE(bytes = xallocx(block, sizes[i], SIZE_MAX - sizes[i], flags));
        assert_int_equal(bytes, call.malloc_usable_size(block));
        touch_ends(block, bytes);
        if (bytes < 50000) AT_ONCE(bytes = xallocx(block, 50000, 0, 0));
    }
    call.free(block);
}

static void add_flags(int flags)
{
    struct check check = { .other = (size_t)flags };

    check.run = flags_of_mallocx;
    check_add(check, "mallocx with flags 0x%x", (unsigned)flags);
    check.run = flags_of_rallocx;
    check_add(check, "rallocx with flags 0x%x", (unsigned)flags);
    check.run = flags_of_others;
    check_add(check, "xallocx, sallocx and nallocx with flags 0x%x", (unsigned)flags);
}

static void add_all_flags(uint64_t seed)
{
    for (int bits = 0; bits < SIZE_BITS; bits++) add_flags(MALLOCX_LG_ALIGN(bits));
    add_flags(MALLOCX_LG_ALIGN(SIZE_BITS - 1) | MALLOCX_ZERO);
    add_flags(MALLOCX_TCACHE_NONE | MALLOCX_LG_ALIGN(SIZE_BITS - 1));
    add_flags(MALLOCX_TCACHE(0) | MALLOCX_ZERO); /* caches and arenas that nobody made */
    add_flags(MALLOCX_TCACHE(4000));
    add_flags(MALLOCX_ARENA(4000));
    add_flags(MALLOCX_ARENA(4094) | MALLOCX_TCACHE(4093));
    add_flags(INT_MAX);
    add_flags(INT_MIN);
    add_flags(-1);
    for (int i = 0; i < RANDOM_FLAGS; i++) add_flags((int)(unsigned)random_next(&seed));
}

/* ---- new ---- */

#if SIZE_MAX > UINT32_MAX
#define SIZE_LETTER "m"
#else
#define SIZE_LETTER "j"
#endif

/* check->text gives, check->data takes back. */
typedef void take_back(void *block, size_t align);

static void sizes_of_new(const struct check *check)
{
    void *(*function)(size_t, const void *) = (void *(*)(size_t, const void *))named(check->text);
    take_back *give = (take_back *)named(check->data);

    for (size_t i = 0; i < SIZES; i++)
        AT_ONCE(errno = ENOMEM; judge_new(function(sizes[i], ""), sizes[i], 1, give));
}

static void alignments_of_new(const struct check *check)
{
    void *(*function)(size_t, size_t, const void *) =
        (void *(*)(size_t, size_t, const void *))named(check->text);
    take_back *give = (take_back *)named(check->data);

    for (size_t i = 0; i < SIZES; i++)
        for (unsigned bits = 0; bits < SIZE_BITS; bits++) {
            size_t align = (size_t)1 << bits;
            AT_ONCE(errno = ENOMEM;
                    judge_new(function(sizes[i], align, ""), sizes[i], align, give));
        }
}

static void add_new(void)
{
    static const struct check checks[] = {
        { .run = sizes_of_new, .text = "_Znw" SIZE_LETTER "RKSt9nothrow_t", .data = "_ZdlPv" },
        { .run = sizes_of_new, .text = "_Zna" SIZE_LETTER "RKSt9nothrow_t", .data = "_ZdaPv" },
        { .run = alignments_of_new,
          .text = "_Znw" SIZE_LETTER "St11align_val_tRKSt9nothrow_t",
          .data = "_ZdlPvSt11align_val_t" },
        { .run = alignments_of_new,
          .text = "_Zna" SIZE_LETTER "St11align_val_tRKSt9nothrow_t",
          .data = "_ZdaPvSt11align_val_t" },
    };

    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        check_add(checks[i], "%s", checks[i].text);
}

/* ---- limits, and what tells about the heap ---- */

static void limits_of_any_size(const struct check *check)
{
    void (*set)(size_t) = (void (*)(size_t))named(check->text);

    for (size_t i = 0; i < SIZES; i++) {
        AT_ONCE(set(sizes[i]));
        AT_ONCE(errno = SENTINEL; judge(call.malloc(100000), 100000, 1));
        set(0);
    }
    AT_ONCE(judge(call.malloc(100000), 100000, 1));
}

static void anything_trimmed_or_set(const struct check *check)
{
    int (*trim)(size_t) = (int (*)(size_t))named("malloc_trim");
    int (*set)(int, int) = (int (*)(int, int))named("mallopt");
    static const int numbers[] = { INT_MIN, -100, -8, -4, -1, 0, 1, 1000, INT_MAX };

    (void)check;
    for (size_t i = 0; i < SIZES; i++) AT_ONCE((void)trim(sizes[i]));
    for (size_t key = 0; key < sizeof numbers / sizeof numbers[0]; key++)
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
            AT_ONCE((void)set(numbers[key], numbers[i]));
}

static void statistics_of_any_length(const struct check *check)
{
    bool (*read_stats)(void *) = (bool (*)(void *))named("prairie_stats_read");
    static size_t room[1024];

    (void)check;
    for (size_t i = 0; i < SIZES; i++) {
        room[0] = sizes[i];
        AT_ONCE((void)read_stats(room));
    }
}

static void names_of_any_kind(const struct check *check)
{
    static char longest[MIB + 1];
    static const char *const names[] = { "",
                                         ".",
                                         "..",
                                         "arena",
                                         "arena.",
                                         "arena..purge",
                                         "arena.99999999999999999999.purge",
                                         "stats.arenas.-1.x",
                                         "arena.4294967296.reset",
                                         "opt.%s%n",
                                         "tcache.destroy." };

    (void)check;
    memset(longest, 'a', MIB);
    for (size_t i = 0; i <= sizeof names / sizeof names[0]; i++) {
        const char *name = i == 0 ? longest : names[i - 1];
        size_t length = SIZE_MAX, path[8], depth = 8;
        uint64_t value = 0;
        int error = 0;

        AT_ONCE(error = mallctl(name, &value, &length, NULL, 0));
        assert_int_not_equal(error, 0);
        AT_ONCE(error = mallctlnametomib(name, path, &depth));
    }
    memset(longest, '0', MIB);
    memcpy(longest, "arena.", 6);
    AT_ONCE(assert_int_not_equal(mallctl(longest, NULL, NULL, NULL, 0), 0));
    memset(longest, '.', MIB);
    AT_ONCE(assert_int_not_equal(mallctl(longest, NULL, NULL, NULL, 0), 0));
}

static void paths_of_any_number(const struct check *check)
{
    (void)check;
    for (size_t i = 0; i < SIZES; i++) {
        size_t path[8] = { sizes[i], sizes[(i + 1) % SIZES], sizes[(i + 2) % SIZES] };
        for (size_t depth = 0; depth < 4; depth++) {
            uint64_t value = 0;
            size_t length = sizeof value;
            AT_ONCE((void)mallctlbymib(path, depth, &value, &length, NULL, 0));
        }
    }
}

int main(void)
{
    uint64_t seed = seed_of_run();

    checks_begin();
    add_all_flags(seed);
    add_new();
    check_add((struct check){ .run = limits_of_any_size, .text = "prairie_limit_soft_set" },
              "soft limits of any size");
    check_add((struct check){ .run = limits_of_any_size, .text = "prairie_limit_hard_set" },
              "hard limits of any size");
    check_add((struct check){ .run = anything_trimmed_or_set }, "malloc_trim and mallopt");
    check_add((struct check){ .run = statistics_of_any_length }, "statistics of any length");
    check_add((struct check){ .run = names_of_any_kind }, "names of any kind");
    check_add((struct check){ .run = paths_of_any_number }, "paths of any number");
    return checks_run("contract absurd");
}
