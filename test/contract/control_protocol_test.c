/* control_protocol_test.c - every name of the control tree has its type, and keeps the protocol. */
/* SPDX-License-Identifier: MIT */
#include "control.h"
#include "control_leaves.h"

#include <errno.h>

enum { DIFFERENT_BYTES = 3, PATH_MAX_PARTS = 7 };

static const char *full_name(const struct check *check)
{
    static char name[128];

    if (check->text == NULL) return ((const struct leaf *)check->data)->name;
    snprintf(name, sizeof name, "stats.arenas.%s.%s", check->text,
             ((const struct leaf *)check->data)->name);
    return name;
}

static int without_right(const struct leaf *leaf) { return leaf->rights == ANY ? 0 : EPERM; }

static void reading_gives_the_value_and_its_length(const struct check *check)
{
    const struct leaf *leaf = check->data;
    const char *name = full_name(check);
    unsigned char value[16] = { 0x5a };
    size_t length = leaf->bytes;

    if ((leaf->rights & R) == 0) {
        length = 8;
        assert_int_equal(mallctl(name, value, &length, NULL, 0), without_right(leaf));
        assert_int_equal(length, 8);
        assert_int_equal(value[0], 0x5a);
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
    int expected = (leaf->rights & W) != 0 ? EINVAL : without_right(leaf);

    assert_int_equal(mallctl(full_name(check), NULL, NULL, &value, DIFFERENT_BYTES), expected);
    if ((leaf->rights & W) == 0)
        assert_int_equal(mallctl(full_name(check), NULL, NULL, NULL, 8), without_right(leaf));
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

/* Who reads another length gets the error, and has written nothing. */
static void a_call_that_fails_writes_nothing(const struct check *check)
{
    ssize_t before = 0, now = 0, other = 1234;
    size_t length = sizeof before;
    unsigned char wrong[16];

    (void)check;
    assert_int_equal(mallctl("arenas.dirty_decay_ms", &before, &length, NULL, 0), 0);
    length = sizeof before / 2;
    assert_int_equal(mallctl("arenas.dirty_decay_ms", wrong, &length, &other, sizeof other),
                     EINVAL);
    length = sizeof now;
    assert_int_equal(mallctl("arenas.dirty_decay_ms", &now, &length, NULL, 0), 0);
    assert_int_equal(now, before);
    assert_int_not_equal(now, other);
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
        "stats.arenas.4098.uptime",
        "stats.arenas.4098.dss",
        "stats.arenas.4098.dirty_decay_ms",
        "arenas.bin.1000.size",
        "arenas.lextent.1000.size",
        "stats.arenas.0.bins.1000.curregs",
        "stats.arenas.0.small.resident",
        "opt.nonsense",
        "opt.bin_shards",
        "opt.slab_sizes",
        "opt.lg_tcache_max",
        "opt.malloc_conf.nonsense",
        "stats.mutexes.prof.num_owner_switch",
        "stats.mutexes.prof_dump.num_ops",
        "prof.stats.bins.0.live",
        "prof.log_start",
        "experimental.prof_recent.alloc_max",
        "experimental.utilization.query",
        "experimental.utilization.batch_query",
        "stats.arenas.0.mutexes.large.num_ops",
        "stats.arenas.0.extent_avail",
        "stats.arenas.0.uptime_ns",
        "lock.num_ops",
        "lock",
        "stats.arenas.0.small.nrequests",
        "stats.arenas.0.bins.0.nrequests",
        "stats.arenas.0.bins.0.nreslabs",
        "stats.arenas.0.lextents.0.nmalloc",
        "stats.arenas.0.lextents.0.ndalloc",
        "stats.arenas.0.lextents.0.nrequests",
        "stats.arenas.0.lextents.1000.curlextents",
        "stats.arenas.0.extents.1000.ndirty",
        "stats.arenas.0.extents.0.npinned",
        "stats.arenas.0.hpa_shard.npurges",
        "Version",
        "version ",
        "arenas.bin.18446744073709551616.size",
        "arenas.bin.0000000000000000000000000000000000000000000000000000000000001.size",
        "arenas.bin.0001x.size",
        "a.b.c.d.e.f.g.h.i",
    };
    static const struct {
        const char *name;
        size_t parts;
    } partial[] = { { "arenas", 1 },
                    { "arenas.bin", 2 },
                    { "arenas.bin.0", 3 },
                    { "arena.0", 2 },
                    { "arenas.bin.00000000000000000000000000000000000000001", 3 },
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
    ADD(a_call_that_fails_writes_nothing);
    ADD(numbers_in_a_path_may_be_patched);
    ADD(a_path_is_cut_at_the_room_there_is);
    ADD(a_length_without_a_buffer_reads_nothing);
    ADD(errno_is_kept);
    return checks_run("control_protocol");
}
