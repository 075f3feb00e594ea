/* jemalloc_arenas_test.c - manual arenas and caches through the control names, with jemalloc's
 * answers. */
/* SPDX-License-Identifier: MIT */
#include "arenas.h"

#include <pthread.h>
#include <sys/wait.h>

static unsigned create_cache(void) { return read_unsigned("tcache.create"); }
static int write_cache(const char *name, unsigned cache)
{
    return control(name, NULL, NULL, &cache, sizeof cache);
}

static void arenas_are_numbered_after_the_automatic_ones(const struct check *check)
{
    unsigned count = read_unsigned("arenas.narenas"), first = create_arena();
    unsigned second = create_arena();
    bool is_there = false;
    size_t length = sizeof is_there;

    (void)check;
    assert_int_equal(first, count);
    assert_int_equal(second, count + 1);
    assert_int_equal(read_unsigned("arenas.narenas"), count + 2);
    assert_int_equal(control(of_arena(second, "initialized"), &is_there, &length, NULL, 0), 0);
    assert_true(is_there);
    assert_int_equal(call_arena(second, "destroy"), 0);
    assert_int_equal(control(of_arena(second, "initialized"), &is_there, &length, NULL, 0), 0);
    assert_false(is_there);
    assert_int_equal(create_arena(), second);
    assert_int_equal(call_arena(first, "destroy"), 0);
    assert_int_equal(call_arena(second, "destroy"), 0);
}

/* Of large blocks, all steps together. */
static size_t large_count(unsigned arena)
{
    size_t sum = 0;

    for (unsigned i = 0; i < read_unsigned("arenas.nlextents"); i++) {
        char name[80];
        snprintf(name, sizeof name, "stats.arenas.%u.lextents.%u.curlextents", arena, i);
        sum += read_size(name);
    }
    return sum;
}

static void large_blocks_are_counted_with_their_arena(const struct check *check)
{
    unsigned arena = create_arena();
    int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE;
    size_t first, all;
    void *blocks[3];

    (void)check;
    next_epoch();
    first = large_count(0);
    all = large_count(4096);
    assert_int_equal(large_count(arena), 0);
    for (unsigned i = 0; i < 3; i++) blocks[i] = take(50000u << i, flags);
    next_epoch();
    assert_int_equal(large_count(arena), 3);
    assert_int_equal(large_count(0), first);
    assert_int_equal(large_count(4096), all + 3);
    for (unsigned i = 0; i < 3; i++) give(blocks[i], flags);
    next_epoch();
    assert_int_equal(large_count(arena), 0);
    assert_int_equal(call_arena(arena, "destroy"), 0);
}

/* Each arena counts what was taken and given in it, and no other does. */
static void large_calls_are_counted_with_their_arena(const struct check *check)
{
    unsigned arena = create_arena();
    int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE;
    size_t taken = stat(arena, "large.nmalloc"), given = stat(arena, "large.ndalloc");
    size_t first = stat(0, "large.nmalloc"), all = stat(4096, "large.nmalloc");
    size_t all_given = stat(4096, "large.ndalloc");
    void *blocks[3];

    (void)check;
    assert_int_equal(taken, given);
    for (unsigned i = 0; i < 3; i++) blocks[i] = take(50000u << i, flags);
    give(blocks[0], flags);
    assert_int_equal(stat(arena, "large.nmalloc"), taken + 3);
    assert_int_equal(stat(arena, "large.ndalloc"), given + 1);
    assert_int_equal(stat(0, "large.nmalloc"), first);
    assert_int_equal(stat(4096, "large.nmalloc"), all + 3);
    assert_int_equal(stat(4096, "large.ndalloc"), all_given + 1);
    assert_int_equal(call_arena(arena, "destroy"), 0);
}

static void lookup_tells_the_arena(const struct check *check)
{
    unsigned arena = create_arena(), index;
    size_t length = sizeof index;
    void *block = take(check->bytes, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE);
    void *other = call.malloc(check->bytes), *empty = call.malloc(0), *none = NULL, *stack = &arena;

    assert_int_equal(arena_of(block), arena);
    assert_int_not_equal(arena_of(other), arena);
    assert_int_not_equal(arena_of(empty), arena);
    call.free(block);
    call.free(other);
    call.free(empty);
    assert_int_equal(control("arenas.lookup", &index, &length, &none, sizeof none), EINVAL);
    assert_int_equal(control("arenas.lookup", &index, &length, &stack, sizeof stack), EINVAL);
    assert_int_equal(control("arenas.lookup", &index, &length, NULL, 0), EINVAL);
    assert_int_equal(call_arena(arena, "destroy"), 0);
}

/* A large block that is of the arena which the call names is resized where it is; one of another
 * arena moves. */
static void resizing_stays_in_the_arena(const struct check *check)
{
    void *(*resize)(void *, size_t, int) =
        (void *(*)(void *, size_t, int))dlsym(RTLD_DEFAULT, "rallocx");
    unsigned arena[2] = { create_arena(), create_arena() };
    int flags = MALLOCX_ARENA(arena[0]) | (int)check->other;
    int automatic = MALLOCX_ARENA(0) | (int)check->other;
    enum { WHOLE = 2 << 20, HALF = WHOLE / 2 };
    char *block = take(WHOLE, flags), *moved;

    stamp(block, HALF, 4);
    assert_ptr_equal(resize(block, HALF, flags), block);
    assert_ptr_equal(resize(block, WHOLE, flags), block);
    assert_int_equal(arena_of(block), arena[0]);
    moved = resize(block, HALF, MALLOCX_ARENA(arena[1]) | (int)check->other);
    assert_int_equal(arena_of(moved), arena[1]);
    block = resize(moved, WHOLE, automatic);
    assert_int_equal(arena_of(block), 0);
    assert_ptr_equal(resize(block, HALF, automatic), block);
    moved = resize(block, WHOLE, flags);
    assert_int_equal(arena_of(moved), arena[0]);
    errno = SENTINEL;
    expect_refused(resize(moved, HALF, MALLOCX_ARENA(4093)));
    assert_true(stamp_holds(moved, HALF, 4));
    give(moved, flags);
    for (int i = 0; i < 2; i++) assert_int_equal(call_arena(arena[i], "destroy"), 0);
}

/* What a reset frees leaves the statistics; other arenas keep theirs. */
static void reset_frees_everything(const struct check *check)
{
    unsigned arena = create_arena();
    int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE;
    char small[80], large[80];
    void *mine = call.malloc(check->bytes);

    stamp(mine, check->bytes, 5);
    snprintf(small, sizeof small, "stats.arenas.%u.small.allocated", arena);
    snprintf(large, sizeof large, "stats.arenas.%u.large.allocated", arena);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1000; i++) {
            assert_non_null(take(check->bytes, flags));
            if (i % 100 == 0) assert_non_null(take(100000, flags));
        }
        next_epoch();
        assert_true(read_size(small) >= 1000 * check->bytes);
        assert_true(read_size(large) >= 10 * 100000);
        assert_int_equal(call_arena(arena, round == 2 ? "destroy" : "reset"), 0);
        next_epoch();
        if (round == 2) break;
        assert_int_equal(read_size(small), 0);
        assert_int_equal(read_size(large), 0);
    }
    assert_true(stamp_holds(mine, check->bytes, 5));
    call.free(mine);
}

static void automatic_arenas_stay(const struct check *check)
{
    (void)check;
    assert_int_equal(call_arena(0, "reset"), EFAULT);
    assert_int_equal(call_arena(0, "destroy"), EFAULT);
    assert_int_equal(call_arena(MALLCTL_ARENAS_ALL, "destroy"), EFAULT);
    assert_int_equal(control("arena.99999.destroy", NULL, NULL, NULL, 0), ENOENT);
    errno = SENTINEL;
    expect_refused(take(100, MALLOCX_ARENA(4093)));
}

static void create_keeps_to_the_protocol(const struct check *check)
{
    uint64_t wide = 0;
    size_t length = sizeof wide;

    (void)check;
    assert_int_equal(control("arenas.create", &wide, &length, NULL, 0), EINVAL);
    assert_int_equal(length, 0);
    length = sizeof wide;
    assert_int_equal(control("tcache.create", &wide, &length, NULL, 0), EINVAL);
    assert_int_equal(length, 0);
    assert_int_equal(control("tcache.flush", &wide, &length, NULL, 0), EPERM);
    assert_int_equal(control("tcache.destroy", NULL, NULL, &wide, sizeof wide), EINVAL);
    /* Without a number none is meant, not the first one. */
    assert_int_equal(control("tcache.flush", NULL, NULL, NULL, 0), EINVAL);
    assert_int_equal(control("tcache.destroy", NULL, NULL, NULL, 0), EINVAL);
    assert_int_equal(control("tcache.destroy", NULL, NULL, NULL, sizeof(unsigned)), EINVAL);
    assert_int_equal(write_cache("tcache.flush", 4000), EFAULT);
    assert_int_equal(write_cache("tcache.destroy", 100000), EFAULT);
}

static void caches_serve_what_they_are_given(const struct check *check)
{
    unsigned cache = create_cache(), other = create_cache();
    void *block[200];

    assert_int_not_equal(cache, other);
    for (int i = 0; i < 200; i++) {
        block[i] = take(check->bytes, MALLOCX_TCACHE(cache));
        stamp(block[i], check->bytes, (uint64_t)i);
    }
    for (int i = 0; i < 200; i++) {
        assert_true(stamp_holds(block[i], check->bytes, (uint64_t)i));
        give(block[i], MALLOCX_TCACHE(cache));
    }
    if (check->bytes <= 14336)
        assert_ptr_equal(take(check->bytes, MALLOCX_TCACHE(cache)), block[199]);
    assert_int_equal(write_cache("tcache.flush", cache), 0);
    assert_int_equal(write_cache("tcache.destroy", cache), 0);
    assert_int_equal(write_cache("tcache.destroy", cache), EFAULT);
    assert_int_equal(create_cache(), cache);
    assert_int_equal(write_cache("tcache.destroy", cache), 0);
    assert_int_equal(write_cache("tcache.destroy", other), 0);
}

/* As a server does for its scripts: an arena with a cache of its own, both of which end. */
static void arena_with_a_cache(const struct check *check)
{
    unsigned arena = create_arena(), cache = create_cache();
    int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE(cache);
    void *block[300];

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 300; i++) {
            block[i] = take(check->bytes + (size_t)i, flags);
            assert_int_equal(arena_of(block[i]), arena);
        }
        for (int i = round; i < 300; i++) give(block[i], flags);
    }
    assert_int_equal(write_cache("tcache.destroy", cache), 0);
    assert_int_equal(call_arena(arena, "destroy"), 0);
}

/* A cache of no arena takes blocks of automatic ones; it has none of them any more once a call
 * names a manual arena. */
static void a_cache_that_was_filled_from_none(const struct check *check)
{
    unsigned arena = create_arena(), cache = create_cache();
    int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE(cache);
    void *block[8];

    for (int i = 0; i < 8; i++) block[i] = call.malloc(check->bytes);
    for (int i = 0; i < 8; i++) give(block[i], MALLOCX_TCACHE(cache));
    for (int i = 0; i < 8; i++) {
        block[i] = take(check->bytes, flags);
        assert_int_equal(arena_of(block[i]), arena);
    }
    for (int i = 0; i < 8; i++) give(block[i], flags);
    assert_int_equal(write_cache("tcache.destroy", cache), 0);
    assert_int_equal(call_arena(arena, "destroy"), 0);
}

struct binding {
    unsigned arena, seen, block_arena;
    int destroy_error;
};

static void *bind_thread(void *argument)
{
    struct binding *binding = argument;
    size_t length = sizeof binding->seen;
    unsigned before = read_unsigned("thread.arena");
    void *block;

    must(control("thread.arena", &binding->seen, &length, &binding->arena, sizeof binding->arena)
         == 0);
    must(binding->seen == before);
    binding->seen = read_unsigned("thread.arena");
    block = call.malloc(100);
    binding->block_arena = arena_of(block);
    binding->destroy_error = call_arena(binding->arena, "destroy");
    call.free(block);
    return NULL;
}

static void threads_are_bound(const struct check *check)
{
    struct binding binding = { .arena = create_arena() };
    unsigned none = 99999;
    pthread_t thread;

    (void)check;
    assert_int_equal(pthread_create(&thread, NULL, bind_thread, &binding), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(binding.seen, binding.arena);
    assert_int_equal(binding.block_arena, binding.arena);
    assert_int_equal(binding.destroy_error, EFAULT);
    assert_int_equal(call_arena(binding.arena, "destroy"), 0);
    assert_int_equal(control("thread.arena", NULL, NULL, &none, sizeof none), EFAULT);
}

static void write_enabled(bool enabled)
{
    must(control("thread.tcache.enabled", NULL, NULL, &enabled, sizeof enabled) == 0);
}

static void expect_home(unsigned arena, void *block)
{
    must(block != NULL && arena_of(block) == arena);
    call.free(block);
}

static void *go_without_a_cache(void *argument)
{
    struct binding *binding = argument;
    uint64_t *taken = NULL, before;
    size_t length = sizeof taken;

    must(control("thread.allocatedp", &taken, &length, NULL, 0) == 0);
    must(control("thread.arena", NULL, NULL, &binding->arena, sizeof binding->arena) == 0);
    for (int round = 0; round < 4; round++) {
        write_enabled(round % 2 != 0);
        must(read_unsigned("thread.arena") == binding->arena);
        for (size_t bytes = 1; bytes < 1000000; bytes *= 5) {
            before = *taken;
            expect_home(binding->arena, call.malloc(bytes));
            must(*taken >= before + bytes);
            expect_home(binding->arena, call.calloc(1, bytes));
            expect_home(binding->arena, call.realloc(call.malloc(bytes), bytes * 4));
        }
    }
    write_enabled(false);
    binding->destroy_error = call_arena(binding->arena, "destroy");
    return NULL;
}

static void a_thread_without_a_cache_is_bound(const struct check *check)
{
    struct binding binding = { .arena = create_arena() };
    pthread_t thread;

    (void)check;
    assert_int_equal(pthread_create(&thread, NULL, go_without_a_cache, &binding), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(binding.destroy_error, EFAULT);
    assert_int_equal(call_arena(binding.arena, "destroy"), 0);
}

static void *cross_free(void *block)
{
    call.free(block);
    return NULL;
}

/* Another thread's plain free takes a block straight home. */
static void blocks_go_home_from_other_threads(const struct check *check)
{
    unsigned arena = create_arena();
    char name[80];
    void *block = take(check->bytes, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE);
    pthread_t thread;

    snprintf(name, sizeof name, "stats.arenas.%u.%s.allocated", arena,
             check->bytes <= 14336 ? "small" : "large");
    next_epoch();
    assert_true(read_size(name) >= check->bytes);
    assert_int_equal(pthread_create(&thread, NULL, cross_free, block), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    next_epoch();
    assert_int_equal(read_size(name), 0);
    assert_int_equal(call_arena(arena, "destroy"), 0);
}

static void the_thread_cache_can_be_switched_off(const struct check *check)
{
    bool off = false, on = true, was = false;
    size_t length = sizeof was;
    void *block;

    (void)check;
    block = call.malloc(100);
    assert_int_equal(control("thread.tcache.enabled", &was, &length, &off, sizeof off), 0);
    assert_true(was);
    call.free(block);
    block = call.malloc(100);
    call.free(block);
    assert_int_equal(control("thread.tcache.enabled", &was, &length, &on, sizeof on), 0);
    assert_false(was);
    assert_int_equal(control("thread.tcache.enabled", &was, &length, NULL, 0), 0);
    assert_true(was);
    assert_int_equal(control("thread.tcache.flush", NULL, NULL, NULL, 0), 0);
    assert_int_equal(control("thread.tcache.flush", &was, &length, NULL, 0), EPERM);
}

/* In the child of a fork arenas and caches go on. */
static void a_child_goes_on(const struct check *check)
{
    unsigned arena = create_arena(), cache = create_cache();
    int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE(cache), status = 1;
    void *block = take(100, flags);
    pid_t child;

    (void)check;
    give(take(100, flags), flags);
    child = fork();
    if (child == 0) {
        give(block, flags);
        for (int i = 0; i < 100; i++) give(take(100, flags), i % 2 ? flags : 0);
        _exit(write_cache("tcache.destroy", cache) != 0 || call_arena(arena, "destroy") != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    give(block, flags);
    assert_int_equal(write_cache("tcache.destroy", cache), 0);
    assert_int_equal(call_arena(arena, "destroy"), 0);
}

int main(void)
{
    static const size_t bytes[] = { 8, 100, 1024, 5000, 14336, 20000, 300000 };

    arena_checks_begin();
    check_add((struct check){ .run = arenas_are_numbered_after_the_automatic_ones },
              "arenas.create numbers after the automatic ones");
    check_add((struct check){ .run = large_blocks_are_counted_with_their_arena },
              "large blocks are counted with their arena");
    check_add((struct check){ .run = large_calls_are_counted_with_their_arena },
              "large calls are counted with their arena");
    check_add((struct check){ .run = resizing_stays_in_the_arena }, "rallocx in an arena");
    check_add((struct check){ .run = resizing_stays_in_the_arena, .other = MALLOCX_TCACHE_NONE },
              "rallocx in an arena without a cache");
    check_add((struct check){ .run = automatic_arenas_stay }, "automatic arenas stay");
    check_add((struct check){ .run = create_keeps_to_the_protocol }, "protocol of create");
    check_add((struct check){ .run = threads_are_bound }, "thread.arena");
    check_add((struct check){ .run = a_thread_without_a_cache_is_bound },
              "thread.arena without a cache");
    check_add((struct check){ .run = the_thread_cache_can_be_switched_off },
              "thread.tcache.enabled and flush");
    check_add((struct check){ .run = a_child_goes_on }, "arenas and caches after a fork");
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        struct check check = { .bytes = bytes[i] };
        check.run = lookup_tells_the_arena;
        check_add(check, "arenas.lookup of %zu bytes", bytes[i]);
        check.run = caches_serve_what_they_are_given;
        check_add(check, "tcache.create serves %zu bytes", bytes[i]);
        check.run = arena_with_a_cache;
        check_add(check, "an arena with a cache serves %zu bytes", bytes[i]);
        check.run = a_cache_that_was_filled_from_none;
        check_add(check, "a cache that was filled from no arena, %zu bytes", bytes[i]);
        check.run = blocks_go_home_from_other_threads;
        check_add(check, "blocks of %zu bytes go home", bytes[i]);
        check.run = reset_frees_everything;
        if (bytes[i] <= 14336) check_add(check, "reset frees blocks of %zu bytes", bytes[i]);
    }
    return checks_run("contract jemalloc_arenas");
}
