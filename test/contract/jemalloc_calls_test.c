/* jemalloc_calls_test.c - control names that do something for the calling thread or for one arena:
 * peaks, the largest block that a thread holds, many blocks in one call, arenas with wishes, and
 * what destroyed ones leave behind. */
/* SPDX-License-Identifier: MIT */
#include "control.h"

#include <jemalloc/jemalloc.h>

#include <errno.h>
#include <pthread.h>

static void *(*take)(size_t, int);
static void (*give)(void *, int);
static size_t (*size_of)(size_t, int);

static size_t of_arena(unsigned arena, const char *leaf)
{
    char name[80];

    snprintf(name, sizeof name, "stats.arenas.%u.%s", arena, leaf);
    return read_size(name);
}

static int call_arena(unsigned arena, const char *leaf)
{
    char name[80];

    snprintf(name, sizeof name, "arena.%u.%s", arena, leaf);
    return mallctl(name, NULL, NULL, NULL, 0);
}

static bool is_initialized(unsigned arena)
{
    char name[80];

    snprintf(name, sizeof name, "arena.%u.initialized", arena);
    return read_flag(name);
}

/* ---- peaks ---- */

static uint64_t peak(void) { return read_number("thread.peak.read", 8); }

static void reset_peak(void)
{
    assert_int_equal(mallctl("thread.peak.reset", NULL, NULL, NULL, 0), 0);
}

/* Every block counts, small or large: a peak of a few bytes is one. */
static void the_peak_is_exact(const struct check *check)
{
    uint64_t bytes = size_of(check->bytes, 0);
    void *blocks[40];

    (void)peak(); /* from now on calls are counted */
    reset_peak();
    assert_int_equal(peak(), 0);
    for (unsigned i = 0; i < 40; i++) {
        blocks[i] = call.malloc(check->bytes);
        assert_int_equal(peak(), (i + 1) * bytes);
    }
    for (unsigned i = 0; i < 40; i++) call.free(blocks[i]);
    assert_int_equal(peak(), 40 * bytes);
    for (unsigned i = 0; i < 39; i++) blocks[i] = call.malloc(check->bytes);
    assert_int_equal(peak(), 40 * bytes);
    reset_peak();
    assert_int_equal(peak(), 0);
    for (unsigned i = 0; i < 39; i++) call.free(blocks[i]);
    assert_int_equal(peak(), 0);
    for (unsigned i = 0; i < 39; i++) blocks[i] = call.malloc(check->bytes);
    assert_int_equal(peak(), 0); /* no more than at the reset */
    blocks[39] = call.malloc(check->bytes);
    assert_int_equal(peak(), bytes);
    for (unsigned i = 0; i < 40; i++) call.free(blocks[i]);
}

/* In place the old and the new size are never held at once; a block that moves from between others
 * is held twice, and leaves room for its neighbours to grow. */
static void a_large_block_that_grows_counts_once_or_twice(const struct check *check)
{
    static const unsigned order[] = { 1, 3, 5, 7, 0, 2, 4, 6 };
    size_t before = 1 << 20, after = 2 << 20;
    char *row[9];
    unsigned moved = 0;

    (void)check;
    (void)peak();
    for (unsigned i = 0; i < 9; i++) row[i] = call.malloc(before);
    for (unsigned i = 0; i < 8; i++) {
        char *old = row[order[i]], *grown;

        reset_peak();
        grown = call.realloc(old, after);
        assert_int_equal(peak(), grown == old ? after - before : after);
        moved += grown != old;
        row[order[i]] = grown;
    }
    assert_in_range(moved, 1, 7);
    for (unsigned i = 0; i < 9; i++) call.free(row[i]);
}

static void *see_no_peak(void *unused)
{
    assert_int_equal(peak(), 0);
    return unused;
}

static void peaks_are_of_the_thread(const struct check *check)
{
    pthread_t thread;
    void *volatile block = call.malloc(1 << 20);

    (void)check;
    call.free(block);
    assert_int_equal(pthread_create(&thread, NULL, see_no_peak, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ---- what threads hold ---- */

static void set_cache_max(size_t bytes)
{
    assert_int_equal(mallctl("thread.tcache.max", NULL, NULL, &bytes, sizeof bytes), 0);
}

static size_t blocks_held_at_most(size_t bytes)
{
    size_t blocks = SIZE_MAX, length = sizeof blocks;

    assert_int_equal(
        mallctl("thread.tcache.ncached_max.read_sizeclass", &blocks, &length, &bytes, sizeof bytes),
        0);
    return blocks;
}

/* Does a block wait in the thread's cache once it is freed? */
static bool is_held(size_t bytes)
{
    size_t before, after;
    void *volatile block = call.malloc(bytes);

    new_epoch();
    before = of_arena(4096, "tcache_bytes");
    call.free(block);
    new_epoch();
    after = of_arena(4096, "tcache_bytes");
    return after > before;
}

static void *hold_all(void *unused)
{
    assert_int_equal(read_size("thread.tcache.max"), read_size("arenas.tcache_max"));
    assert_true(is_held(5000));
    return unused;
}

static void a_thread_holds_what_it_may(const struct check *check)
{
    static const size_t sizes[] = { 8, 100, 1000, 1024, 1025, 2000, 5000, 14336 };
    size_t all = read_size("arenas.tcache_max");
    void *blocks[200];
    pthread_t thread;

    (void)check;
    assert_int_equal(read_size("thread.tcache.max"), all);
    for (unsigned i = 0; i < 200; i++) blocks[i] = call.malloc(3000);
    for (unsigned i = 0; i < 200; i++) call.free(blocks[i]);
    set_cache_max(1000); /* goes up to the class */
    assert_int_equal(read_size("thread.tcache.max"), size_of(1000, 0));
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(is_held(sizes[i]), sizes[i] <= 1024);
        assert_int_equal(blocks_held_at_most(sizes[i]) != 0, sizes[i] <= 1024);
    }
    assert_int_equal(blocks_held_at_most(50000), 0);
    assert_int_equal(pthread_create(&thread, NULL, hold_all, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    set_cache_max(0);
    assert_int_equal(read_size("thread.tcache.max"), 8);
    set_cache_max((size_t)64 << 20);
    assert_int_equal(read_size("thread.tcache.max"), all);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) assert_true(is_held(sizes[i]));
}

static void the_number_of_held_blocks_is_told(const struct check *check)
{
    size_t bytes = ((size_t)8 << 20) + 1, blocks = 7, length = sizeof blocks;
    const char *name = "thread.tcache.ncached_max.read_sizeclass";

    (void)check;
    assert_true(blocks_held_at_most(8) >= blocks_held_at_most(1024));
    assert_true(blocks_held_at_most(1024) >= blocks_held_at_most(14336));
    assert_true(blocks_held_at_most(14336) >= 2);
    assert_in_range(blocks_held_at_most(20000), 1, 100);
    assert_in_range(blocks_held_at_most(50000), 0, blocks_held_at_most(20000));
    assert_int_equal(blocks_held_at_most(1 << 20), 0);
    assert_int_equal(mallctl(name, &blocks, &length, &bytes, sizeof bytes), EINVAL);
    assert_int_equal(mallctl(name, &blocks, &length, NULL, 0), EINVAL);
    assert_int_equal(mallctl(name, &blocks, &length, &bytes, 2), EINVAL);
    bytes = 100;
    assert_int_equal(mallctl(name, NULL, NULL, &bytes, sizeof bytes), 0);
    length = 2;
    assert_int_equal(mallctl(name, &blocks, &length, &bytes, sizeof bytes), EINVAL);
}

/* ---- many blocks at once ---- */

struct batch {
    void **blocks;
    size_t count, size;
    int flags;
};

static size_t take_batch(struct batch batch)
{
    size_t taken = SIZE_MAX, length = sizeof taken;

    assert_int_equal(mallctl("experimental.batch_alloc", &taken, &length, &batch, sizeof batch), 0);
    return taken;
}

static void batches_are_blocks(const struct check *check)
{
    enum { COUNT = 1000 };
    static void *blocks[COUNT];
    size_t bytes = size_of(check->bytes, MALLOCX_ALIGN(64));
    struct batch batch = { blocks, COUNT, check->bytes, MALLOCX_ALIGN(64) | MALLOCX_ZERO };

    assert_int_equal(take_batch(batch), COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(call.malloc_usable_size(blocks[i]), bytes);
        assert_true(is_aligned(blocks[i], 64));
        for (size_t j = 0; j < check->bytes; j++) assert_int_equal(((char *)blocks[i])[j], 0);
        memset(blocks[i], (int)i, check->bytes);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(*(unsigned char *)blocks[i], i & 255);
        call.free(blocks[i]);
    }
}

static void batches_keep_to_the_protocol(const struct check *check)
{
    void *blocks[10] = { NULL };
    struct batch batch = { blocks, 10, PTRDIFF_MAX, 0 };
    size_t taken = 7, length = sizeof taken;

    (void)check;
    errno = 4711;
    assert_int_equal(take_batch(batch), 0);
    assert_int_equal(errno, 4711);
    batch.count = 0;
    batch.size = 8;
    assert_int_equal(take_batch(batch), 0);
    assert_int_equal(mallctl("experimental.batch_alloc", &taken, &length, NULL, 0), EINVAL);
    assert_int_equal(mallctl("experimental.batch_alloc", &taken, &length, &batch, sizeof batch - 8),
                     EINVAL);
    assert_int_equal(mallctl("experimental.batch_alloc", NULL, NULL, &batch, sizeof batch), EINVAL);
    length = 2;
    assert_int_equal(mallctl("experimental.batch_alloc", &taken, &length, &batch, sizeof batch),
                     EINVAL);
    assert_int_equal(length, 0);
}

/* ---- arenas ---- */

struct wish {
    extent_hooks_t *hooks;
    bool records_from_hooks;
};

static unsigned asked_of_hook;
static extent_hooks_t *default_hooks;

static void *ask(extent_hooks_t *hooks, void *address, size_t size, size_t align, bool *zero,
                 bool *commit, unsigned arena)
{
    (void)hooks;
    asked_of_hook++;
    return default_hooks->alloc(default_hooks, address, size, align, zero, commit, arena);
}

static void arenas_come_with_wishes(const struct check *check)
{
    static extent_hooks_t hooks;
    struct wish wish = { NULL, true };
    size_t length = sizeof default_hooks, four = sizeof(unsigned);
    unsigned arena = 0;
    void *block;

    (void)check;
    assert_int_equal(mallctl("arena.0.extent_hooks", &default_hooks, &length, NULL, 0), 0);
    hooks = *default_hooks;
    hooks.alloc = ask;
    wish.hooks = &hooks;
    assert_int_equal(mallctl("experimental.arenas_create_ext", &arena, &four, &wish, sizeof wish),
                     0);
    block = take(100000, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE);
    assert_true(block != NULL && asked_of_hook > 0);
    give(block, MALLOCX_TCACHE_NONE);
    assert_int_equal(call_arena(arena, "destroy"), 0);
    assert_int_equal(mallctl("experimental.arenas_create_ext", &arena, &four, NULL, 0), 0);
    assert_int_equal(call_arena(arena, "destroy"), 0);
    assert_int_equal(
        mallctl("experimental.arenas_create_ext", &arena, &four, &wish, sizeof wish / 2), EINVAL);
    assert_int_equal(mallctl("experimental.arenas_create_ext", NULL, NULL, NULL, 0), EINVAL);
    four = 8;
    assert_int_equal(mallctl("experimental.arenas_create_ext", &arena, &four, NULL, 0), EINVAL);
    assert_int_equal(four, 0);
}

/* Without an epoch, and the same as after one. */
static void active_pages_are_seen_at_once(const struct check *check)
{
    unsigned arena = read_unsigned("arenas.create");
    const volatile size_t *active = NULL;
    size_t length = sizeof active, page = read_size("arenas.page");
    int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE;
    void *small[100], *large;
    char name[80];

    (void)check;
    snprintf(name, sizeof name, "experimental.arenas.%u.pactivep", arena);
    assert_int_equal(mallctl(name, (void *)&active, &length, NULL, 0), 0);
    assert_int_equal(*active, 0);
    large = take(10 * page, flags);
    assert_int_equal(*active, 10);
    for (unsigned i = 0; i < 100; i++) small[i] = take(1000, flags);
    assert_true(*active > 10 + 100 * 1000 / page);
    new_epoch();
    assert_int_equal(*active, of_arena(arena, "pactive"));
    large = take(1, flags) != NULL ? large : NULL;
    give(large, flags);
    for (unsigned i = 0; i < 100; i++) give(small[i], flags);
    new_epoch();
    assert_int_equal(*active, of_arena(arena, "pactive"));
    assert_int_equal(call_arena(arena, "reset"), 0);
    assert_int_equal(*active, 0);
    assert_int_equal(call_arena(arena, "destroy"), 0);
    assert_int_equal(mallctl(name, (void *)&active, &length, NULL, 0), ENOENT);
    assert_int_equal(mallctl("experimental.arenas.0.pactivep", (void *)&active, &length, NULL, 0),
                     0);
    assert_int_equal(
        mallctl("experimental.arenas.4096.pactivep", (void *)&active, &length, NULL, 0), EFAULT);
    length = 2;
    assert_int_equal(mallctl("experimental.arenas.0.pactivep", (void *)&active, &length, NULL, 0),
                     EINVAL);
}

struct past {
    size_t small, large, slabs;
};

static struct past past_now(void)
{
    struct past past = { of_arena(4097, "small.nmalloc"), of_arena(4097, "large.nmalloc"), 0 };

    for (unsigned bin = 0; bin < read_unsigned("arenas.nbins"); bin++) {
        char leaf[40];
        snprintf(leaf, sizeof leaf, "bins.%u.nslabs", bin);
        past.slabs += of_arena(4097, leaf);
    }
    return past;
}

static unsigned destroy_used_arena(void)
{
    unsigned arena = read_unsigned("arenas.create");
    int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE;

    for (unsigned i = 0; i < 100; i++) {
        void *block = take(100, flags);
        assert_non_null(take(100000, flags));
        if (i % 2 != 0) give(block, flags);
    }
    assert_int_equal(call_arena(arena, "destroy"), 0);
    return arena;
}

/* No epoch is needed in between. */
static void destroyed_arenas_leave_their_counts(const struct check *check)
{
    static const char *const nothing[] = { "pactive",         "pdirty",          "mapped",
                                           "resident",        "small.allocated", "large.allocated",
                                           "bins.3.curslabs", "tcache_bytes",    "base",
                                           "uptime",          "bins.3.curregs" };
    struct past before, after;
    size_t all_before;
    unsigned arena;

    (void)check;
    (void)destroy_used_arena();
    assert_true(is_initialized(4097));
    before = past_now();
    new_epoch();
    all_before = of_arena(4096, "large.nmalloc");
    arena = destroy_used_arena();
    after = past_now();
    assert_int_equal(after.small, before.small + 100);
    assert_int_equal(after.large, before.large + 100);
    assert_true(after.slabs > before.slabs);
    assert_int_equal(of_arena(4097, "small.ndalloc"), after.small);
    assert_int_equal(of_arena(4097, "large.ndalloc"), after.large);
    for (unsigned i = 0; i < sizeof nothing / sizeof *nothing; i++)
        assert_int_equal(of_arena(4097, nothing[i]), 0);
    assert_int_equal((ssize_t)of_arena(4097, "dirty_decay_ms"), -1);
    assert_string_equal((const char *)of_arena(4097, "dss"), "N/A");
    new_epoch();
    assert_int_equal(of_arena(4096, "large.nmalloc"), all_before); /* they are of no arena now */

    /* The next one of that number begins anew, and is there at once. */
    assert_false(is_initialized(arena));
    assert_int_equal(read_unsigned("arenas.create"), arena);
    assert_true(is_initialized(arena));
    new_epoch();
    assert_int_equal(of_arena(arena, "small.nmalloc"), 0);
    assert_int_equal(of_arena(arena, "large.nmalloc"), 0);
    assert_int_equal(call_arena(arena, "destroy"), 0);
    assert_int_equal(call_arena(4097, "purge"), 0);
    assert_int_equal(call_arena(4097, "destroy"), EFAULT);
}

static int set_grow_limit(unsigned arena, size_t bytes)
{
    char name[80];

    snprintf(name, sizeof name, "arena.%u.retain_grow_limit", arena);
    return mallctl(name, NULL, NULL, &bytes, sizeof bytes);
}

static void limits_of_growth_are_lengths(const struct check *check)
{
    size_t page = read_size("arenas.page"), limit = read_size("arena.0.retain_grow_limit");

    (void)check;
    assert_int_equal(set_grow_limit(0, 0), EFAULT);
    assert_int_equal(set_grow_limit(0, page - 1), EFAULT);
    assert_int_equal(set_grow_limit(0, SIZE_MAX), EFAULT);
    assert_int_equal(read_size("arena.0.retain_grow_limit"), limit);
    assert_int_equal(set_grow_limit(0, page), 0);
    assert_int_equal(read_size("arena.0.retain_grow_limit"), page);
    assert_int_equal(set_grow_limit(0, 5 * page + 1), 0);
    assert_int_equal(read_size("arena.0.retain_grow_limit"), 5 * page);
    assert_int_equal(set_grow_limit(0, SIZE_MAX - 1), 0);
    assert_int_equal(read_size("arena.0.retain_grow_limit"), limit);
    assert_int_equal(set_grow_limit(4096, page), EFAULT);
    assert_int_equal(set_grow_limit(4097, page), EFAULT);
    assert_int_equal(set_grow_limit(read_unsigned("arenas.narenas"), page), EFAULT);
}

int main(void)
{
    static const size_t sizes[] = { 8, 100, 1000, 5000, 14336, 20000, 1 << 20 };

    checks_begin();
    take = (void *(*)(size_t, int))dlsym(RTLD_DEFAULT, "mallocx");
    give = (void (*)(void *, int))dlsym(RTLD_DEFAULT, "dallocx");
    size_of = (size_t(*)(size_t, int))dlsym(RTLD_DEFAULT, "nallocx");
    must(take != NULL && give != NULL && size_of != NULL);
    ADD(a_thread_holds_what_it_may);
    ADD(the_number_of_held_blocks_is_told);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_add((struct check){ .run = the_peak_is_exact, .bytes = sizes[i] },
                  "the peak is exact: %zu", sizes[i]);
    ADD(a_large_block_that_grows_counts_once_or_twice);
    ADD(peaks_are_of_the_thread);
    for (size_t i = 0; i < 4; i++)
        check_add((struct check){ .run = batches_are_blocks, .bytes = sizes[i] },
                  "batches are blocks: %zu", sizes[i]);
    ADD(batches_keep_to_the_protocol);
    ADD(arenas_come_with_wishes);
    ADD(active_pages_are_seen_at_once);
    ADD(destroyed_arenas_leave_their_counts);
    ADD(limits_of_growth_are_lengths);
    return checks_run("jemalloc_calls");
}
