/* control_names_test.c - what single names of the control tree say and do. */
/* SPDX-License-Identifier: MIT */
#include "control.h"

#include <errno.h>
#include <limits.h>

/* ---- arenas ---- */

static unsigned arena_count(void) { return read_unsigned("arenas.narenas"); }

/* The number of arenas is an old name for all of them. */
static void the_count_stands_for_all(const struct check *check)
{
    char name[64];

    (void)check;
    snprintf(name, sizeof name, "arena.%u.purge", arena_count());
    assert_int_equal(mallctl(name, NULL, NULL, NULL, 0), 0);
    new_epoch();
    snprintf(name, sizeof name, "stats.arenas.%u.pactive", arena_count());
    assert_int_equal(read_size(name), read_size("stats.arenas.4096.pactive"));
    snprintf(name, sizeof name, "arena.%u.purge", arena_count() + 1);
    assert_int_equal(mallctl(name, NULL, NULL, NULL, 0), ENOENT);
    snprintf(name, sizeof name, "stats.arenas.%u.pactive", arena_count() + 1);
    assert_int_equal(mallctl(name, NULL, NULL, NULL, 0), ENOENT);
}

static void some_arenas_have_not_been_made(const struct check *check)
{
    ssize_t decay = 5;
    char name[64];
    unsigned index;

    (void)check;
    assert_true(read_flag("arena.0.initialized"));
    for (index = 1; index < arena_count(); index++) {
        snprintf(name, sizeof name, "arena.%u.initialized", index);
        if (!read_flag(name)) break;
    }
    if (index == arena_count()) skip();
    snprintf(name, sizeof name, "arena.%u.dirty_decay_ms", index);
    assert_int_equal(mallctl(name, NULL, NULL, &decay, sizeof decay), EFAULT);
    snprintf(name, sizeof name, "stats.arenas.%u.pactive", index);
    assert_int_equal(mallctl(name, NULL, NULL, NULL, 0), ENOENT);
    snprintf(name, sizeof name, "arena.%u.purge", index);
    assert_int_equal(mallctl(name, NULL, NULL, NULL, 0), 0);
}

static void decay_times_are_one_value(const struct check *check)
{
    ssize_t before = (ssize_t)read_number("arenas.dirty_decay_ms", sizeof before), value = 1234,
            bad = -2;

    (void)check;
    assert_int_equal(mallctl("arenas.dirty_decay_ms", NULL, NULL, &value, sizeof value), 0);
    assert_int_equal(read_number("arena.0.dirty_decay_ms", sizeof before), 1234);
    assert_int_equal(read_number("opt.dirty_decay_ms", sizeof before), before);
    value = -1;
    assert_int_equal(mallctl("arena.4096.dirty_decay_ms", NULL, NULL, &value, sizeof value), 0);
    assert_true((ssize_t)read_number("arenas.dirty_decay_ms", sizeof before) == -1);
    assert_int_equal(mallctl("arenas.dirty_decay_ms", NULL, NULL, &bad, sizeof bad), EFAULT);
    assert_int_equal(mallctl("arena.0.muzzy_decay_ms", NULL, NULL, &bad, sizeof bad), EFAULT);
    assert_int_equal(mallctl("arenas.dirty_decay_ms", NULL, NULL, &before, sizeof before), 0);
}

static void arenas_have_names(const struct check *check)
{
    char text[64] = "", *into = text;
    const char *given = "one", *too_long = "0123456789012345678901234567890123456789";
    size_t length = sizeof into;

    (void)check;
    assert_int_equal(mallctl("arena.0.name", &into, &length, NULL, 0), 0);
    assert_string_equal(text, "auto_0");
    assert_int_equal(mallctl("arena.0.name", &into, &length, &given, sizeof given), 0);
    assert_string_equal(text, "auto_0");
    assert_int_equal(mallctl("arena.0.name", &into, &length, &too_long, sizeof too_long), 0);
    assert_string_equal(text, "one");
    assert_int_equal(mallctl("arena.0.name", &into, &length, NULL, 0), 0);
    assert_string_equal(text, "0123456789012345678901234567890");
    length = sizeof into / 2;
    assert_int_equal(mallctl("arena.0.name", &into, &length, NULL, 0), EINVAL);
    length = sizeof into;
    assert_int_equal(mallctl("arena.4096.name", &into, &length, NULL, 0), EINVAL);
}

static void the_precedence_takes_its_words(const struct check *check)
{
    const char *word = "disabled", *old = NULL;
    size_t length = sizeof old;

    (void)check;
    assert_int_equal(mallctl("arena.0.dss", &old, &length, &word, sizeof word), 0);
    assert_string_equal(old, "secondary");
    assert_string_equal(read_text("arena.4096.dss"), "disabled");
    word = "nonsense";
    assert_int_equal(mallctl("arena.0.dss", NULL, NULL, &word, sizeof word), EINVAL);
    assert_int_equal(mallctl("arena.0.dss", NULL, NULL, &old, sizeof old), 0);
    assert_int_equal(mallctl("arena.4097.dss", NULL, NULL, &old, sizeof old), EFAULT);
}

static void blocks_know_their_arena(const struct check *check)
{
    void *small = call.malloc(100), *large = call.malloc(1 << 20), *none = &small;
    unsigned char bytes[8];
    unsigned index = UINT_MAX;
    size_t length = sizeof index;

    (void)check;
    assert_int_equal(mallctl("arenas.lookup", &index, &length, &small, sizeof small), 0);
    assert_true(index < arena_count());
    assert_int_equal(mallctl("arenas.lookup", &index, &length, &large, sizeof large), 0);
    assert_true(index < arena_count());
    for (unsigned i = 0; i < 4;
         i++) { /* inside: of a small block, or in the first page of a large one */
        char *inside = (i < 2 ? (char *)small + 50 : (char *)large) + (i % 2 != 0 ? 9 : 0);
        assert_int_equal(mallctl("arenas.lookup", &index, &length, &inside, sizeof inside), 0);
    }
    for (size_t at = 64 << 10; at < 1 << 20; at += 64 << 10) {
        char *inside = (char *)large + at;
        assert_int_equal(mallctl("arenas.lookup", &index, &length, &inside, sizeof inside), EINVAL);
    }
    assert_int_equal(mallctl("arenas.lookup", &index, &length, &none, sizeof none), EINVAL);
    assert_int_equal(mallctl("arenas.lookup", &index, &length, NULL, 0), EINVAL);
    assert_int_equal(mallctl("arenas.lookup", NULL, NULL, &small, sizeof small), 0);
    /* Another length is answered as it is of other names. */
    assert_int_equal(mallctl("arenas.lookup", &index, &length, &small, sizeof small), 0);
    for (size_t other = 0; other <= sizeof bytes; other++) {
        if (other == sizeof index) continue;
        memset(bytes, 0x5a, sizeof bytes);
        length = other;
        assert_int_equal(mallctl("arenas.lookup", bytes, &length, &small, sizeof small), EINVAL);
        assert_int_equal(length, other < sizeof index ? other : sizeof index);
        assert_memory_equal(bytes, &index, length);
        for (size_t i = length; i < sizeof bytes; i++) assert_int_equal(bytes[i], 0x5a);
    }
    call.free(small);
    call.free(large);
}

/* ---- sizes ---- */

static void bins_are_the_sizes_that_blocks_have(const struct check *check)
{
    unsigned count = read_unsigned("arenas.nbins");
    size_t before = 0;

    (void)check;
    for (unsigned i = 0; i < count; i++) {
        char name[64];
        size_t bytes;
        snprintf(name, sizeof name, "arenas.bin.%u.size", i);
        bytes = read_size(name);
        assert_true(bytes > before);
        void *block = call.malloc(bytes), *next = call.malloc(before + 1);
        assert_int_equal(call.malloc_usable_size(block), bytes);
        assert_int_equal(call.malloc_usable_size(next), bytes);
        call.free(block);
        call.free(next);
        snprintf(name, sizeof name, "arenas.bin.%u.nregs", i);
        size_t blocks = read_unsigned(name);
        snprintf(name, sizeof name, "arenas.bin.%u.slab_size", i);
        assert_true(blocks * bytes <= read_size(name));
        before = bytes;
    }
    assert_int_equal(read_size("arenas.tcache_max"), before);
    assert_true(read_size("arenas.lextent.0.size") > before);
}

static void large_sizes_are_four_to_a_doubling(const struct check *check)
{
    unsigned count = read_unsigned("arenas.nlextents");
    size_t sizes[256];

    (void)check;
    assert_true(count <= 256);
    for (unsigned i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "arenas.lextent.%u.size", i);
        sizes[i] = read_size(name);
        assert_int_equal(sizes[i] % read_size("arenas.page"), 0);
        if (i >= 4) assert_true(sizes[i] == 2 * sizes[i - 4]);
        if (i >= 1) assert_true(sizes[i] > sizes[i - 1]);
    }
    assert_true(sizes[count - 1] > SIZE_MAX / 4);
}

/* ---- the background thread ---- */

static void limits_of_threads_are_numbers(const struct check *check)
{
    size_t none = 0, many = 5000, three = 3, before = read_size("max_background_threads");

    (void)check;
    assert_int_equal(mallctl("max_background_threads", NULL, NULL, &none, sizeof none), EINVAL);
    assert_int_equal(mallctl("max_background_threads", NULL, NULL, &many, sizeof many), EINVAL);
    assert_int_equal(mallctl("max_background_threads", NULL, NULL, &three, sizeof three), 0);
    assert_int_equal(read_size("max_background_threads"), 3);
    assert_int_equal(read_size("opt.max_background_threads"), before);
}

static void the_background_thread_can_be_forbidden(const struct check *check)
{
    bool off = false, old = false;
    size_t length = sizeof old;

    (void)check;
    assert_int_equal(mallctl("background_thread", &old, &length, &off, sizeof off), 0);
    assert_true(old);
    assert_false(read_flag("background_thread"));
    assert_false(read_flag("opt.background_thread")); /* nobody had asked for it */
    assert_int_equal(mallctl("background_thread", NULL, NULL, &old, sizeof old), 0);
    assert_true(read_flag("background_thread"));
    assert_false(read_flag("opt.background_thread"));
}

static void set_size(const char *name, size_t value)
{
    assert_int_equal(mallctl(name, NULL, NULL, &value, sizeof value), 0);
    assert_int_equal(read_size(name), value);
}

static void the_reserve_and_the_limits_obey(const struct check *check)
{
    const size_t bytes = (size_t)1 << 20;
    void *volatile block;
    size_t used;

    (void)check;
    set_size("reserve.min", bytes);
    assert_int_equal(read_size("reserve.cur"), bytes);
    assert_int_equal(read_size("reserve.max"), bytes);
    set_size("reserve.min", 0);
    assert_int_equal(read_size("reserve.cur"), 0);
    set_size("limit.soft", 64 * bytes);
    set_size("limit.soft", 0);
    set_size("limit.hard", 64 * bytes);
    assert_null(block = malloc(100 * bytes));
    set_size("limit.hard", 0);
    assert_int_equal(mallctl("arena.4096.purge", NULL, NULL, NULL, 0), 0);
    used = read_size("limit.used");
    assert_non_null(block = malloc(100 * bytes));
    assert_in_range(read_size("limit.used"), used + 100 * bytes, used + 101 * bytes);
    free(block);
}

static void the_version_is_one_of_jemalloc(const struct check *check)
{
    unsigned major = 0, minor = 0;

    (void)check;
    assert_int_equal(sscanf(read_text("version"), "%u.%u.", &major, &minor), 2);
    assert_int_equal(major, 5);
    assert_int_equal(minor, 3);
    assert_non_null(strstr(read_text("version"), "prairie"));
}

int main(void)
{
    checks_begin();
    ADD(the_count_stands_for_all);
    ADD(some_arenas_have_not_been_made);
    ADD(decay_times_are_one_value);
    ADD(arenas_have_names);
    ADD(the_precedence_takes_its_words);
    ADD(blocks_know_their_arena);
    ADD(bins_are_the_sizes_that_blocks_have);
    ADD(large_sizes_are_four_to_a_doubling);
    ADD(limits_of_threads_are_numbers);
    ADD(the_background_thread_can_be_forbidden);
    ADD(the_reserve_and_the_limits_obey);
    ADD(the_version_is_one_of_jemalloc);
    return checks_run("control_names");
}
