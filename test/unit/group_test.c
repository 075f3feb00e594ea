/* group_test.c - reading control groups of both versions, in a tree of the test's own. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/* In place of the fake kernel's. */
#define os_file_close close_text
#include "os/linux_group.c"
#include "os/linux_text.c"

#include "unit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char ground[] = "/tmp/prairie-group-XXXXXX"; /* trees stand in it */
static char tree[64], process_file[96], pressure_file[96];

static unsigned limits_read, texts_read; /* so often */

/* The library has these in linux_files.c, whose place the fake kernel takes here. */
long linux_open(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);

    limits_read += strstr(path, "memory.max") != NULL;
    return file >= 0 ? file : -errno;
}

size_t linux_read_text(int file, char *text, size_t room_bytes)
{
    ssize_t length = file >= 0 ? read(file, text, room_bytes - 1) : 0;

    if (file >= 0) (void)close(file);
    texts_read += file >= 0;
    if (length < 0) length = 0;
    text[length] = '\0';
    return (size_t)length;
}

void close_text(int file) { assert_int_equal(close(file), 0); }

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* A file below the tree; its folders are made. */
static void put(const char *name, const char *text)
{
    char path[2048];

    snprintf(path, sizeof path, "%s/%s", tree, name);
    for (char *at = path + strlen(tree) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
    write_file(path, text);
}

static void remove_folder(const char *path)
{
    char command[96];

    snprintf(command, sizeof command, "rm -r %s", path);
    if (system(command) != 0) fprintf(stderr, "%s is left\n", path);
}

static void remove_tree(void) { remove_folder(tree); }

static void start_tree(const char *process_text)
{
    snprintf(tree, sizeof tree, "%s/XXXXXX", ground);
    assert_non_null(mkdtemp(tree));
    snprintf(process_file, sizeof process_file, "%s/self", tree);
    snprintf(pressure_file, sizeof pressure_file, "%s/pressure", tree);
    group_tree = tree;
    group_of_process = group_of_thread = process_file;
    pressure_of_machine = pressure_file;
    write_file(process_file, process_text);
}

static void put_second(const char *group, const char *most, const char *high, const char *current)
{
    char name[128];

    snprintf(name, sizeof name, "%s/cgroup.procs", group);
    put(name, "1\n");
    snprintf(name, sizeof name, "%s/memory.max", group);
    put(name, most);
    snprintf(name, sizeof name, "%s/memory.high", group);
    put(name, high);
    snprintf(name, sizeof name, "%s/memory.current", group);
    put(name, current);
    snprintf(name, sizeof name, "%s/memory.stat", group);
    put(name, "anon 1\nfile 2\ninactive_anon 999\ninactive_file 1000\nactive_file 7\n");
}

static void expect_group(size_t limit_bytes, size_t room_bytes)
{
    struct os_group group = os_group_memory();

    remove_tree();
    assert_int_equal(group.limit_bytes, limit_bytes);
    assert_int_equal(group.room_bytes, room_bytes);
}

static void second_version(void **state)
{
    (void)state;
    start_tree("0::/shop/till\n");
    put("cgroup.procs", "");
    put_second("shop", "max\n", "max\n", "500000\n");
    put_second("shop/till", "1000000\n", "max\n", "300000\n");
    expect_group(1000000, 701000); /* the inactive part of the file cache can be dropped */
}

static void the_lower_of_two_limits(void **state)
{
    (void)state;
    start_tree("0::/shop\n");
    put_second("shop", "1000000\n", "800000\n", "300000\n");
    expect_group(800000, 501000);
}

static void the_tightest_of_nested_groups(void **state)
{
    (void)state;
    start_tree("0::/shop/till/drawer\n");
    put_second("shop", "900000\n", "max\n", "850000\n");
    put_second("shop/till", "1000000\n", "max\n", "300000\n");
    put_second("shop/till/drawer", "max\n", "max\n", "300000\n");
    put_second("shop/till/draw", "10\n", "max\n",
               "0\n"); /* others', though their names are like these */
    put_second("shop/ti", "10\n", "max\n", "0\n");
    put_second("sho", "10\n", "max\n", "0\n");
    expect_group(900000, 51000);
}

static void the_inner_of_two_that_are_as_tight(void **state)
{
    (void)state;
    start_tree("0::/shop/till\n");
    put_second("shop", "900000\n", "max\n", "800000\n");
    put_second("shop/till", "500000\n", "max\n", "400000\n");
    expect_group(500000, 101000);
}

static void no_limit_in_the_first_version(void **state)
{
    (void)state;
    start_tree("4:memory:/shop\n");
    put("memory/shop/cgroup.procs", "1\n");
    put("memory/shop/memory.limit_in_bytes", "9223372036854771712\n");
    put("memory/shop/memory.usage_in_bytes", "300000\n");
    expect_group(SIZE_MAX, SIZE_MAX);
}

static void nothing_is_left(void **state)
{
    (void)state;
    start_tree("0::/shop\n");
    put_second("shop", "100000\n", "max\n", "300000\n");
    expect_group(100000, 0);
}

static void first_version(void **state)
{
    (void)state;
    start_tree("5:cpu:/x\n4:memory:/shop\n0::/\n");
    put("memory/shop/cgroup.procs", "1\n");
    put("memory/shop/memory.limit_in_bytes", "1000000\n");
    put("memory/shop/memory.usage_in_bytes", "300000\n");
    put("memory/shop/memory.stat", "cache 1\ninactive_file 5\ntotal_inactive_file 2000\n");
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
    expect_group(1000000, 702000);
}

/* The highest group is also told of a first thread that has ended: there another thread knows. */
static void the_first_version_when_the_first_thread_has_ended(void **state)
{
    static char thread_file[96];

    (void)state;
    for (int knows = 0; knows <= 1; knows++) {
        start_tree("5:cpu:/\n4:memory:/\n");
        snprintf(thread_file, sizeof thread_file, "%s/thread", tree);
        group_of_thread = thread_file;
        if (knows) write_file(thread_file, "5:cpu:/\n4:memory:/shop\n");
        put("memory/shop/cgroup.procs", "1\n");
        put("memory/shop/memory.limit_in_bytes", "1000\n");
        put("memory/shop/memory.usage_in_bytes", "300\n");
        put("memory/memory.limit_in_bytes", "9000\n");
        put("memory/memory.usage_in_bytes", "300\n");
        expect_group(knows ? 1000 : 9000, knows ? 700 : 8700);
    }
}

/* A dozen long lines, as nodes of containers have, and memory's among the last. */
static void a_long_text_of_the_first_version(void **state)
{
    char text[6000];
    size_t length = 0;

    (void)state;
    for (unsigned i = 0; i < 20; i++)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%u:other:/%0200u\n", 30 - i, i);
    (void)snprintf(text + length, sizeof text - length, "4:memory:/shop\n0::/\n");
    start_tree(text);
    put("memory/shop/cgroup.procs", "1\n");
    put("memory/shop/memory.limit_in_bytes", "1000000\n");
    put("memory/shop/memory.usage_in_bytes", "300000\n");
    expect_group(1000000, 700000);
}

/* Its list of processes can be opened, and not be read; here it is a folder. */
static void a_group_of_threads(void **state)
{
    (void)state;
    start_tree("0::/shop/till\n");
    put_second("shop", "1000000\n", "max\n", "300000\n");
    put("shop/till/cgroup.procs/x", "");
    expect_group(1000000, 701000);
}

/* ---- processor time ---- */

static void expect_cores(unsigned cores)
{
    unsigned told = os_core_quota();

    remove_tree();
    assert_int_equal(told, cores);
}

static void a_part_of_a_core_counts_as_one_more(void **state)
{
    const struct {
        const char *text;
        unsigned cores;
    } quotas[] = { { "200000 100000\n", 2 }, { "200001 100000\n", 3 }, { "1000 100000\n", 1 },
                   { "max 100000\n", 0 },    { "0 100000\n", 0 },      { "100000\n", 0 } };

    (void)state;
    for (unsigned i = 0; i < sizeof quotas / sizeof quotas[0]; i++) {
        start_tree("0::/shop\n");
        put("cgroup.procs", "");
        put("shop/cgroup.procs", "1\n");
        put("shop/cpu.max", quotas[i].text);
        expect_cores(quotas[i].cores);
    }
}

static void the_least_of_nested_groups_counts(void **state)
{
    (void)state;
    start_tree("0::/shop/till/drawer\n");
    put("shop/till/drawer/cgroup.procs", "1\n");
    put("shop/cpu.max", "300000 100000\n");
    put("shop/till/cpu.max", "max 100000\n");
    put("shop/till/drawer/cpu.max", "800000 100000\n");
    expect_cores(3);
}

static void processor_time_of_the_first_version(void **state)
{
    const char *const lines[] = { "4:cpu,cpuacct:/shop\n0::/\n", "4:cpu:/shop\n0::/\n",
                                  "4:cpuacct,cpu:/shop\n" };

    (void)state;
    for (unsigned i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        start_tree(lines[i]);
        put("cpu/shop/cgroup.procs", "1\n");
        put("cpu/shop/cpu.cfs_quota_us", "150000\n");
        put("cpu/shop/cpu.cfs_period_us", "100000\n");
        put("cpu/cpu.cfs_quota_us", "-1\n");
        put("cpu/cpu.cfs_period_us", "100000\n");
        expect_cores(2);
    }
}

static void without_groups_all_cores_are_there(void **state)
{
    (void)state;
    start_tree("");
    expect_cores(0);
}

/* For want of descriptors. Where there is nothing to be opened nothing failed. */
static void what_cannot_be_opened_is_no_answer(void **state)
{
    const struct rlimit none = { 0, 0 };
    struct os_group group;

    (void)state;
    start_tree("0::/shop\n");
    group = os_group_memory();
    assert_int_equal(group.limit_bytes, SIZE_MAX);
    assert_false(group.failed);
    put_second("shop", "1000000\n", "max\n", "300000\n");
    assert_false(os_group_memory().failed);
    assert_int_equal(remove(process_file), 0); /* as after a chroot */
    assert_true(os_group_memory().failed);
    write_file(process_file, "0::/shop\n");
    assert_false(os_group_memory().failed);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    group = os_group_memory();
    assert_int_equal(group.limit_bytes, SIZE_MAX);
    assert_true(group.failed);
}

/* What cannot be opened, and is there: a link to itself. */
static void bar(const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", tree, name);
    assert_int_equal(remove(path), 0);
    assert_int_equal(symlink(path, path), 0);
}

/* Room is what the limit leaves of all that is used, and of nothing else. */
static void what_is_used_is_known_or_the_group_is_not(void **state)
{
    static const char *const files[] = { "shop/memory.current", "shop/memory.stat" };

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(files); i++) {
        struct os_group group;

        start_tree("0::/shop\n");
        put_second("shop", "1000000\n", "max\n", "300000\n");
        bar(files[i]);
        group = os_group_memory();
        remove_tree();
        assert_int_equal(group.limit_bytes, SIZE_MAX);
        assert_true(group.failed);
    }
}

/* Of the outer one much more may be left. */
static void an_outer_group_is_not_taken_for_one_that_is_not_known_now(void **state)
{
    struct os_group group;

    (void)state;
    start_tree("0::/shop/till\n");
    put_second("shop", "9000000\n", "max\n", "300000\n");
    put_second("shop/till", "1000000\n", "max\n", "300000\n");
    bar("shop/till/memory.current");
    group = os_group_memory();
    remove_tree();
    assert_int_equal(group.limit_bytes, SIZE_MAX);
    assert_true(group.failed);
}

/* There may be many, of whom the kernel would make a list. */
static void who_is_in_a_group_is_not_read(void **state)
{
    (void)state;
    start_tree("0::/shop\n");
    put_second("shop", "1000000\n", "max\n", "300000\n");
    expect_group(1000000, 701000);
    assert_int_equal(texts_read, 5);
}

/* A container sees its own group as the tree, while the path is the one outside. */
static void a_container_of_the_first_version(void **state)
{
    (void)state;
    start_tree("4:memory:/outside/of/it\n");
    put("memory/cgroup.procs", "1\n");
    put("memory/memory.limit_in_bytes", "1000000\n");
    put("memory/memory.usage_in_bytes", "300000\n");
    expect_group(1000000, 700000);
}

static void a_container_of_the_second_version(void **state)
{
    (void)state;
    start_tree("0::/\n");
    put_second(".", "1000000\n", "max\n", "300000\n");
    expect_group(1000000, 701000);
    assert_int_equal(limits_read, 1);
}

static void a_group_may_have_nothing_at_all(void **state)
{
    (void)state;
    start_tree("0::/shop\n");
    put_second("shop", "0\n", "max\n", "0\n");
    expect_group(0, 0);
    start_tree("0::/shop\n");
    put_second("shop", "9", "max\n", "0\n"); /* whose line has no end */
    expect_group(9, 9);
}

static void what_is_no_number_is_no_limit(void **state)
{
    static const char *const texts[] = { "-1\n", "many\n", " 5\n", ":\n", "/\n" };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        start_tree("0::/shop\n");
        put_second("shop", texts[i], "max\n", "5\n");
        expect_group(SIZE_MAX, SIZE_MAX);
    }
}

static void what_can_be_dropped_need_not_be_told(void **state)
{
    (void)state;
    start_tree("0::/shop\n");
    put_second("shop", "1000\n", "max\n", "300\n");
    put("shop/memory.stat", "anon 1\nfile 2\n");
    expect_group(1000, 700);
}

/* As long as that no group's name is, and one byte more: the tree is not taken for the group. */
static void a_name_fits_or_there_is_no_group(void **state)
{
    char process_text[3 * GROUP_NAME_BYTES], name[2 * GROUP_NAME_BYTES];
    static const char file[] = "/memory.limit_in_bytes";

    (void)state;
    for (int longer = 0; longer <= 1; longer++) {
        size_t length;

        start_tree("");
        /* In parts, none of which is longer than a file's name may be. */
        length = GROUP_NAME_BYTES - sizeof file - strlen(tree) - strlen("/memory") + (size_t)longer;
        for (size_t at = 0; at < length; at++)
            name[at] = at % 100 == 0 && at < length - 1 ? '/' : 'x';
        name[length] = '\0';
        snprintf(process_text, sizeof process_text, "4:memory:%s\n", name);
        write_file(process_file, process_text);
        snprintf(process_text, sizeof process_text, "memory%s/cgroup.procs", name);
        put(process_text, "1\n");
        snprintf(process_text, sizeof process_text, "memory%s%s", name, file);
        put(process_text, "1000\n");
        put("memory/memory.limit_in_bytes", "9000\n");
        expect_group(longer ? 9000 : 1000, longer ? 9000 : 1000);
    }
}

static void no_limit_anywhere(void **state)
{
    (void)state;
    start_tree("0::/shop\n");
    put_second("shop", "max\n", "max\n", "300000\n");
    expect_group(SIZE_MAX, SIZE_MAX);
}

static void files_that_are_not_there_or_say_nothing(void **state)
{
    static char long_path[2000];

    (void)state;
    start_tree("");
    expect_group(SIZE_MAX, SIZE_MAX);
    start_tree("nonsense");
    expect_group(SIZE_MAX, SIZE_MAX);
    start_tree("0::/shop\n");
    put("shop/cgroup.procs", "");
    put("shop/memory.max", "");
    put("shop/memory.high", "many\n");
    expect_group(SIZE_MAX, SIZE_MAX);
    start_tree("0::/shop\n");
    put("shop/memory.max", "1000\n"); /* nobody tells what is used */
    put("shop/cgroup.procs", "1\n");
    expect_group(1000, 1000);
    memset(long_path, 'x', sizeof long_path - 2);
    memcpy(long_path, "0::/", 4);
    start_tree(long_path);
    put_second(".", "1000\n", "max\n", "300\n");
    expect_group(SIZE_MAX, SIZE_MAX);
}

static void stalls_of_the_group_or_of_the_machine(void **state)
{
    static const char text[] = "some avg10=0.00 avg60=0.00 avg300=0.00 total=4711\n"
                               "full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n";
    uint64_t none, machine, group;

    (void)state;
    start_tree("0::/shop\n");
    none = os_stalled_us();
    put("pressure", text);
    machine = os_stalled_us();
    put_second("shop", "max\n", "max\n", "1\n");
    put("shop/memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=99\n");
    group = os_stalled_us();
    remove_tree();
    assert_int_equal(none, 0);
    assert_int_equal(machine, 4711);
    assert_int_equal(group, 99);
}

/* A number of the machine's, or of a group above, would look like a wait. */
static void stalls_are_of_the_group_or_not_known(void **state)
{
    static const char *const files[] = { "shop/memory.pressure", "shop/cgroup.procs" };

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(files); i++) {
        uint64_t group, none;

        start_tree("0::/shop\n");
        put("pressure", "some avg10=0.00 total=4711\n");
        put("memory.pressure", "some avg10=0.00 total=4711\n");
        put_second("shop", "max\n", "max\n", "1\n");
        put("shop/memory.pressure", "some avg10=0.00 total=99\n");
        group = os_stalled_us();
        bar(files[i]);
        none = os_stalled_us();
        remove_tree();
        assert_int_equal(group, 99);
        assert_true(none == UINT64_MAX);
    }
}

/* Where there are no groups there may be no file that tells of them. */
static void stalls_of_the_machine_without_groups(void **state)
{
    uint64_t machine;

    (void)state;
    start_tree("");
    assert_int_equal(remove(process_file), 0);
    put("pressure", "some avg10=0.00 total=4711\n");
    machine = os_stalled_us();
    remove_tree();
    assert_int_equal(machine, 4711);
}

/* Which the first version's groups do not tell. */
static void stalls_of_the_machine_where_groups_tell_none(void **state)
{
    uint64_t machine, nothing;

    (void)state;
    start_tree("4:memory:/shop\n");
    put("memory/shop/cgroup.procs", "1\n");
    put("memory/shop/memory.pressure", "some avg10=0.00 total=99\n");
    put("pressure", "some avg10=0.00 total=4711\n");
    machine = os_stalled_us();
    put("pressure", "nonsense\n");
    nothing = os_stalled_us();
    remove_tree();
    assert_int_equal(machine, 4711);
    assert_int_equal(nothing, 0);
}

/* Tests are processes of their own: the ground is cleared when they have ended, however they
 * end. */
int main(int argc, char **argv)
{
    static const struct unit_test tests[] = {
        UNIT_TEST(second_version),
        UNIT_TEST(the_lower_of_two_limits),
        UNIT_TEST(the_tightest_of_nested_groups),
        UNIT_TEST(nothing_is_left),
        UNIT_TEST(first_version),
        UNIT_TEST(the_first_version_when_the_first_thread_has_ended),
        UNIT_TEST(a_container_of_the_first_version),
        UNIT_TEST(a_container_of_the_second_version),
        UNIT_TEST(a_group_may_have_nothing_at_all),
        UNIT_TEST(what_is_no_number_is_no_limit),
        UNIT_TEST(what_can_be_dropped_need_not_be_told),
        UNIT_TEST(a_name_fits_or_there_is_no_group),
        UNIT_TEST(no_limit_anywhere),
        UNIT_TEST(a_long_text_of_the_first_version),
        UNIT_TEST(a_group_of_threads),
        UNIT_TEST(a_part_of_a_core_counts_as_one_more),
        UNIT_TEST(the_least_of_nested_groups_counts),
        UNIT_TEST(processor_time_of_the_first_version),
        UNIT_TEST(without_groups_all_cores_are_there),
        UNIT_TEST(what_cannot_be_opened_is_no_answer),
        UNIT_TEST(what_is_used_is_known_or_the_group_is_not),
        UNIT_TEST(an_outer_group_is_not_taken_for_one_that_is_not_known_now),
        UNIT_TEST(who_is_in_a_group_is_not_read),
        UNIT_TEST(stalls_are_of_the_group_or_not_known),
        UNIT_TEST(stalls_of_the_machine_without_groups),
        UNIT_TEST(no_limit_in_the_first_version),
        UNIT_TEST(the_inner_of_two_that_are_as_tight),
        UNIT_TEST(stalls_of_the_machine_where_groups_tell_none),
        UNIT_TEST(files_that_are_not_there_or_say_nothing),
        UNIT_TEST(stalls_of_the_group_or_of_the_machine),
    };
    int code;

    if (mkdtemp(ground) == NULL) {
        perror(ground);
        return 1;
    }
    code = unit_run(argc, argv, tests, sizeof tests / sizeof tests[0]);
    remove_folder(ground);
    return code;
}
