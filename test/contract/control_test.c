/* control_test.c - every name of the control tree has its type, and keeps the protocol. */
/* SPDX-License-Identifier: MIT */
#include "control.h"

#include <errno.h>
#include <limits.h>

enum { R = 1, W = 2, RW = 3 };

/* As documented: names, the bytes of their values (0: nothing goes in or out), what may be done. */
static const struct leaf {
    const char *name;
    size_t bytes;
    int rights;
} leaves[] = {
    { "version", 8, R },
    { "epoch", 8, RW },
    { "background_thread", 1, RW },
    { "max_background_threads", 8, RW },
    { "thread.idle", 0, 0 },
    { "approximate_stats.active", 8, R },
    { "config.cache_oblivious", 1, R },
    { "config.debug", 1, R },
    { "config.fill", 1, R },
    { "config.lazy_lock", 1, R },
    { "config.malloc_conf", 8, R },
    { "config.opt_safety_checks", 1, R },
    { "config.prof", 1, R },
    { "config.prof_libgcc", 1, R },
    { "config.prof_libunwind", 1, R },
    { "config.prof_frameptr", 1, R },
    { "config.stats", 1, R },
    { "config.utrace", 1, R },
    { "config.xmalloc", 1, R },
    { "opt.abort", 1, R },
    { "opt.abort_conf", 1, R },
    { "opt.background_thread", 1, R },
    { "opt.cache_oblivious", 1, R },
    { "opt.confirm_conf", 1, R },
    { "opt.debug_double_free_max_scan", 4, R },
    { "opt.dirty_decay_ms", 8, R },
    { "opt.disable_large_size_classes", 1, R },
    { "opt.dss", 8, R },
    { "opt.experimental_infallible_new", 1, R },
    { "opt.experimental_tcache_gc", 1, R },
    { "opt.hpa", 1, R },
    { "opt.hpa_dirty_mult", 4, R },
    { "opt.hpa_hugify_style", 8, R },
    { "opt.hpa_sec_nshards", 8, R },
    { "opt.hpa_slab_max_alloc", 8, R },
    { "opt.huge_arena_pac_thp", 1, R },
    { "opt.junk", 8, R },
    { "opt.lg_extent_max_active_fit", 8, R },
    { "opt.lg_tcache_flush_small_div", 4, R },
    { "opt.lg_tcache_nslots_mul", 8, R },
    { "opt.max_background_threads", 8, R },
    { "opt.metadata_thp", 8, R },
    { "opt.mutex_max_spin", 8, R },
    { "opt.muzzy_decay_ms", 8, R },
    { "opt.narenas", 4, R },
    { "opt.oversize_threshold", 8, R },
    { "opt.percpu_arena", 8, R },
    { "opt.process_madvise_max_batch", 8, R },
    { "opt.retain", 1, R },
    { "opt.stats_interval", 8, R },
    { "opt.stats_interval_opts", 8, R },
    { "opt.stats_print", 1, R },
    { "opt.stats_print_opts", 8, R },
    { "opt.tcache", 1, R },
    { "opt.tcache_gc_delay_bytes", 8, R },
    { "opt.tcache_gc_incr_bytes", 8, R },
    { "opt.tcache_max", 8, R },
    { "opt.tcache_nslots_large", 4, R },
    { "opt.tcache_nslots_small_max", 4, R },
    { "opt.tcache_nslots_small_min", 4, R },
    { "opt.thp", 8, R },
    { "opt.trust_madvise", 1, R },
    { "opt.xmalloc", 1, R },
    { "opt.zero", 1, R },
    { "opt.zero_realloc", 8, R },
    { "arenas.narenas", 4, R },
    { "arenas.dirty_decay_ms", 8, RW },
    { "arenas.muzzy_decay_ms", 8, RW },
    { "arenas.quantum", 8, R },
    { "arenas.page", 8, R },
    { "arenas.hugepage", 8, R },
    { "arenas.tcache_max", 8, R },
    { "arenas.nbins", 4, R },
    { "arenas.nhbins", 4, R },
    { "arenas.nlextents", 4, R },
    { "arenas.bin.0.size", 8, R },
    { "arenas.bin.1.nregs", 4, R },
    { "arenas.bin.2.slab_size", 8, R },
    { "arenas.bin.3.nshards", 4, R },
    { "arenas.lextent.0.size", 8, R },
    { "arena.0.initialized", 1, R },
    { "limit.hard", 8, RW },
    { "limit.soft", 8, RW },
    { "reserve.cur", 8, R },
    { "reserve.max", 8, R },
    { "reserve.min", 8, RW },
    { "arena.0.purge", 0, 0 },
    { "arena.0.decay", 0, 0 },
    { "arena.4096.purge", 0, 0 },
    { "arena.4096.decay", 0, 0 },
    { "arena.4096.initialized", 1, R },
    { "arena.4097.initialized", 1, R },
    { "arena.0.dss", 8, RW },
    { "arena.0.oversize_threshold", 8, RW },
    { "arena.0.dirty_decay_ms", 8, RW },
    { "arena.0.muzzy_decay_ms", 8, RW },
    { "arena.0.retain_grow_limit", 8, RW },
    { "stats.allocated", 8, R },
    { "stats.active", 8, R },
    { "stats.metadata", 8, R },
    { "stats.metadata_edata", 8, R },
    { "stats.metadata_rtree", 8, R },
    { "stats.metadata_thp", 8, R },
    { "stats.resident", 8, R },
    { "stats.mapped", 8, R },
    { "stats.retained", 8, R },
    { "stats.zero_reallocs", 8, R },
    { "stats.background_thread.num_threads", 8, R },
    { "stats.background_thread.num_runs", 8, R },
    { "stats.background_thread.run_interval", 8, R },
    { "stats.mutexes.ctl.num_ops", 8, R },
    { "stats.mutexes.ctl.num_wait", 8, R },
    { "stats.mutexes.ctl.num_spin_acq", 8, R },
};

/* Of an arena, after "stats.arenas.N."; read for the first one and for all. */
static const struct leaf arena_leaves[] = {
    { "nthreads", 4, R },
    { "uptime", 8, R },
    { "dss", 8, R },
    { "dirty_decay_ms", 8, R },
    { "muzzy_decay_ms", 8, R },
    { "pactive", 8, R },
    { "pdirty", 8, R },
    { "pmuzzy", 8, R },
    { "mapped", 8, R },
    { "retained", 8, R },
    { "base", 8, R },
    { "internal", 8, R },
    { "metadata_edata", 8, R },
    { "metadata_rtree", 8, R },
    { "metadata_thp", 8, R },
    { "tcache_bytes", 8, R },
    { "tcache_stashed_bytes", 8, R },
    { "resident", 8, R },
    { "abandoned_vm", 8, R },
    { "dirty_npurge", 8, R },
    { "dirty_nmadvise", 8, R },
    { "dirty_purged", 8, R },
    { "muzzy_npurge", 8, R },
    { "muzzy_nmadvise", 8, R },
    { "muzzy_purged", 8, R },
    { "small.allocated", 8, R },
    { "small.nmalloc", 8, R },
    { "small.ndalloc", 8, R },
    { "small.nfills", 8, R },
    { "small.nflushes", 8, R },
    { "large.allocated", 8, R },
    { "large.nmalloc", 8, R },
    { "large.ndalloc", 8, R },
    { "large.nrequests", 8, R },
    { "mutexes.extents_dirty.num_ops", 8, R },
    { "mutexes.base.num_wait", 8, R },
    { "bins.0.nmalloc", 8, R },
    { "bins.0.ndalloc", 8, R },
    { "bins.3.curregs", 8, R },
    { "bins.3.nfills", 8, R },
    { "bins.3.nflushes", 8, R },
    { "bins.3.nslabs", 8, R },
    { "bins.3.curslabs", 8, R },
    { "bins.3.nonfull_slabs", 8, R },
    { "bins.3.mutex.num_ops", 8, R },
};

enum { DIFFERENT_BYTES = 3, PATH_MAX_PARTS = 7 };

static const char *full_name(const struct check *check)
{
    static char name[128];

    if (check->text == NULL) return ((const struct leaf *)check->data)->name;
    snprintf(name, sizeof name, "stats.arenas.%s.%s", check->text,
             ((const struct leaf *)check->data)->name);
    return name;
}

static void reading_gives_the_value_and_its_length(const struct check *check)
{
    const struct leaf *leaf = check->data;
    const char *name = full_name(check);
    unsigned char value[16];
    size_t length = leaf->bytes;

    if ((leaf->rights & R) == 0) {
        length = 8;
        assert_int_equal(mallctl(name, value, &length, NULL, 0), EPERM);
        assert_int_equal(length, 8);
        return;
    }
    assert_int_equal(mallctl(name, value, &length, NULL, 0), 0);
    assert_int_equal(length, leaf->bytes);
    /* Another length: the error, what fits, and how much that was. */
    for (size_t other = 0; other <= sizeof value; other++) {
        unsigned char wrong[16];
        if (other == leaf->bytes) continue;
        memset(wrong, 0x5a, sizeof wrong);
        length = other;
        assert_int_equal(mallctl(name, wrong, &length, NULL, 0), EINVAL);
        assert_int_equal(length, other < leaf->bytes ? other : leaf->bytes);
        for (size_t i = length; i < sizeof wrong; i++) assert_int_equal(wrong[i], 0x5a);
    }
}

static void writing_needs_the_right(const struct check *check)
{
    const struct leaf *leaf = check->data;
    uint64_t value = 0;
    int expected = (leaf->rights & W) != 0 ? EINVAL : EPERM;

    assert_int_equal(mallctl(full_name(check), NULL, NULL, &value, DIFFERENT_BYTES), expected);
    if ((leaf->rights & W) == 0)
        assert_int_equal(mallctl(full_name(check), NULL, NULL, NULL, 8), EPERM);
}

/* What was read may be written back. */
static void writing_back_is_accepted(const struct check *check)
{
    const struct leaf *leaf = check->data;
    uint64_t value = 0;
    size_t length = leaf->bytes;

    if (leaf->rights != RW) return;
    assert_int_equal(mallctl(full_name(check), &value, &length, NULL, 0), 0);
    assert_int_equal(mallctl(full_name(check), NULL, NULL, &value, leaf->bytes), 0);
    length = leaf->bytes;
    assert_int_equal(mallctl(full_name(check), &value, &length, &value, leaf->bytes), 0);
    assert_int_equal(length, leaf->bytes);
}

static void nothing_may_be_asked_of_anything(const struct check *check)
{
    assert_int_equal(mallctl(full_name(check), NULL, NULL, NULL, 0), 0);
}

static void the_path_leads_to_the_same(const struct check *check)
{
    const struct leaf *leaf = check->data;
    const char *name = full_name(check);
    size_t path[PATH_MAX_PARTS + 1], parts = PATH_MAX_PARTS, expected = 1, length = leaf->bytes;
    unsigned char by_name[16] = { 0 }, by_path[16] = { 0 };

    for (const char *at = name; *at != '\0'; at++) expected += *at == '.';
    assert_int_equal(mallctlnametomib(name, path, &parts), 0);
    assert_int_equal(parts, expected);
    if (leaf->bytes == 0) {
        assert_int_equal(mallctlbymib(path, parts, NULL, NULL, NULL, 0), 0);
        return;
    }
    assert_int_equal(mallctl(name, by_name, &length, NULL, 0), 0);
    assert_int_equal(mallctlbymib(path, parts, by_path, &length, NULL, 0), 0);
    /* Some numbers move on meanwhile. */
    if (strstr(name, "mutex") == NULL) assert_memory_equal(by_name, by_path, sizeof by_name);
    assert_int_equal(mallctlbymib(path, parts - 1, by_path, &length, NULL, 0), ENOENT);
    path[parts] = 0;
    assert_int_equal(mallctlbymib(path, parts + 1, by_path, &length, NULL, 0), ENOENT);
    path[0] = 99;
    assert_int_equal(mallctlbymib(path, parts, by_path, &length, NULL, 0), ENOENT);
}

/* ---- names that nobody has ---- */

static void is_unknown(const struct check *check)
{
    uint64_t value;
    size_t length = sizeof value, path[PATH_MAX_PARTS], parts = PATH_MAX_PARTS;

    assert_int_equal(mallctl(check->text, &value, &length, NULL, 0), ENOENT);
    assert_int_equal(mallctl(check->text, NULL, NULL, &value, sizeof value), ENOENT);
    assert_int_equal(mallctl(check->text, NULL, NULL, NULL, 0), ENOENT);
    assert_int_equal(mallctlnametomib(check->text, path, &parts), ENOENT);
    assert_int_equal(parts, PATH_MAX_PARTS);
}

/* A part of a name has a path, and no value. */
static void is_partial(const struct check *check)
{
    uint64_t value;
    size_t length = sizeof value, path[PATH_MAX_PARTS], parts = PATH_MAX_PARTS;

    assert_int_equal(mallctl(check->text, &value, &length, NULL, 0), ENOENT);
    assert_int_equal(mallctlnametomib(check->text, path, &parts), 0);
    assert_int_equal(parts, check->bytes);
    assert_int_equal(mallctlbymib(path, parts, &value, &length, NULL, 0), ENOENT);
}

/* ---- paths ---- */

static void numbers_in_a_path_may_be_patched(const struct check *check)
{
    size_t path[PATH_MAX_PARTS], parts = PATH_MAX_PARTS, size, length = sizeof size;
    unsigned count = read_unsigned("arenas.nbins");

    (void)check;
    assert_int_equal(mallctlnametomib("arenas.bin.0.size", path, &parts), 0);
    assert_int_equal(parts, 4);
    assert_int_equal(path[2], 0);
    for (unsigned i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "arenas.bin.%u.size", i);
        path[2] = i;
        assert_int_equal(mallctlbymib(path, parts, &size, &length, NULL, 0), 0);
        assert_int_equal(size, read_size(name));
    }
    path[2] = count;
    assert_int_equal(mallctlbymib(path, parts, &size, &length, NULL, 0), ENOENT);
    path[2] = SIZE_MAX;
    assert_int_equal(mallctlbymib(path, parts, &size, &length, NULL, 0), ENOENT);
}

static void a_path_is_cut_at_the_room_there_is(const struct check *check)
{
    size_t path[PATH_MAX_PARTS] = { 77, 77, 77, 77 }, parts = 2;

    (void)check;
    assert_int_equal(mallctlnametomib("arenas.bin.3.size", path, &parts), 0);
    assert_int_equal(parts, 2);
    assert_true(path[0] != 77 && path[1] != 77 && path[2] == 77);
    parts = 0;
    assert_int_equal(mallctlnametomib("version", path, &parts), 0);
    assert_int_equal(parts, 0);
    assert_int_equal(mallctlbymib(path, 0, NULL, NULL, NULL, 0), ENOENT);
}

/* ---- what reading without a place to read into means ---- */

static void a_length_without_a_buffer_reads_nothing(const struct check *check)
{
    size_t length = 8;
    uint64_t value = 7;

    (void)check;
    assert_int_equal(mallctl("epoch", NULL, &length, NULL, 0), 0);
    assert_int_equal(length, 8);
    assert_int_equal(mallctl("epoch", &value, NULL, NULL, 0), 0);
    assert_int_equal(value, 7);
    assert_int_equal(mallctl("epoch", NULL, NULL, NULL, 8), 0);
}

static void errno_is_kept(const struct check *check)
{
    (void)check;
    errno = 4711;
    assert_int_equal(mallctl("no.such.name", NULL, NULL, NULL, 0), ENOENT);
    new_epoch();
    assert_int_equal(errno, 4711);
}

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
    int64_t decay = 5;
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
    int64_t before = (int64_t)read_number("arenas.dirty_decay_ms", 8), value = 1234, bad = -2;

    (void)check;
    assert_int_equal(mallctl("arenas.dirty_decay_ms", NULL, NULL, &value, sizeof value), 0);
    assert_int_equal(read_number("arena.0.dirty_decay_ms", 8), 1234);
    assert_int_equal(read_number("opt.dirty_decay_ms", 8), before);
    value = -1;
    assert_int_equal(mallctl("arena.4096.dirty_decay_ms", NULL, NULL, &value, sizeof value), 0);
    assert_true((int64_t)read_number("arenas.dirty_decay_ms", 8) == -1);
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
    length = 4;
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
}

static void blocks_know_their_arena(const struct check *check)
{
    void *small = call.malloc(100), *large = call.malloc(1 << 20), *none = &small;
    unsigned index = UINT_MAX;
    size_t length = sizeof index;

    (void)check;
    assert_int_equal(mallctl("arenas.lookup", &index, &length, &small, sizeof small), 0);
    assert_true(index < arena_count());
    assert_int_equal(mallctl("arenas.lookup", &index, &length, &large, sizeof large), 0);
    assert_true(index < arena_count());
    assert_int_equal(mallctl("arenas.lookup", &index, &length, &none, sizeof none), EINVAL);
    assert_int_equal(mallctl("arenas.lookup", &index, &length, NULL, 0), EINVAL);
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
    assert_true(sizes[count - 1] > (size_t)1 << 62);
}

/* ---- the helper ---- */

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

static void the_helper_can_be_forbidden(const struct check *check)
{
    bool off = false, old = false;
    size_t length = sizeof old;

    (void)check;
    assert_int_equal(mallctl("background_thread", &old, &length, &off, sizeof off), 0);
    assert_true(old);
    assert_false(read_flag("background_thread"));
    assert_true(read_flag("opt.background_thread"));
    assert_int_equal(mallctl("background_thread", NULL, NULL, &old, sizeof old), 0);
    assert_true(read_flag("background_thread"));
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
    assert_non_null(block = malloc(100 * bytes));
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

#define ADD(check_function) check_add((struct check){ .run = check_function }, #check_function)

static void add_leaf(const struct leaf *leaf, const char *arena)
{
    static const struct {
        void (*run)(const struct check *);
        const char *name;
    } checks[] = {
        { reading_gives_the_value_and_its_length, "reading" },
        { writing_needs_the_right, "writing" },
        { writing_back_is_accepted, "writing back" },
        { nothing_may_be_asked_of_anything, "asking nothing" },
        { the_path_leads_to_the_same, "path" },
    };

    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        check_add((struct check){ .run = checks[i].run, .data = leaf, .text = arena }, "%s%s%s: %s",
                  arena != NULL ? "stats.arenas." : "", arena != NULL ? arena : "", leaf->name,
                  checks[i].name);
}

int main(void)
{
    static const char *const unknown[] = {
        "nonsense",
        "stats.nonsense",
        "stats.allocated.more",
        "stats.arenas.",
        "epoch.",
        ".epoch",
        ".",
        "",
        "stats.arenas.x.pactive",
        "arena.x.purge",
        "arena.-1.purge",
        "arena. 0.purge",
        "arena.99999.purge",
        "arena.4098.purge",
        "stats.arenas.4097.pactive",
        "stats.arenas.4098.pactive",
        "arenas.bin.1000.size",
        "arenas.lextent.1000.size",
        "stats.arenas.0.bins.1000.curregs",
        "stats.arenas.0.small.resident",
        "opt.nonsense",
        "opt.bin_shards",
        "opt.slab_sizes",
        "opt.lg_tcache_max",
        "opt.malloc_conf.nonsense",
        "stats.mutexes.ctl.max_wait_time",
        "stats.arenas.0.hpa_shard.npurges",
        "Version",
        "version ",
        "arenas.bin.18446744073709551616.size",
        "a.b.c.d.e.f.g.h.i",
    };
    static const struct {
        const char *name;
        size_t parts;
    } partial[] = { { "arenas", 1 },
                    { "arenas.bin", 2 },
                    { "arenas.bin.0", 3 },
                    { "arena.0", 2 },
                    { "stats.arenas", 2 },
                    { "stats.arenas.0", 3 },
                    { "stats.arenas.0.bins.3", 5 },
                    { "opt", 1 },
                    { "stats.mutexes", 2 } };

    checks_begin();
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) add_leaf(&leaves[i], NULL);
    for (size_t i = 0; i < sizeof arena_leaves / sizeof *arena_leaves; i++) {
        add_leaf(&arena_leaves[i], "0");
        add_leaf(&arena_leaves[i], "4096");
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        check_add((struct check){ .run = is_unknown, .text = unknown[i] }, "unknown: '%s'",
                  unknown[i]);
    for (size_t i = 0; i < sizeof partial / sizeof *partial; i++)
        check_add(
            (struct check){ .run = is_partial, .text = partial[i].name, .bytes = partial[i].parts },
            "partial: %s", partial[i].name);
    ADD(numbers_in_a_path_may_be_patched);
    ADD(a_path_is_cut_at_the_room_there_is);
    ADD(a_length_without_a_buffer_reads_nothing);
    ADD(errno_is_kept);
    ADD(the_count_stands_for_all);
    ADD(some_arenas_have_not_been_made);
    ADD(decay_times_are_one_value);
    ADD(arenas_have_names);
    ADD(the_precedence_takes_its_words);
    ADD(blocks_know_their_arena);
    ADD(bins_are_the_sizes_that_blocks_have);
    ADD(large_sizes_are_four_to_a_doubling);
    ADD(limits_of_threads_are_numbers);
    ADD(the_helper_can_be_forbidden);
    ADD(the_reserve_and_the_limits_obey);
    ADD(the_version_is_one_of_jemalloc);
    return checks_run("control");
}
