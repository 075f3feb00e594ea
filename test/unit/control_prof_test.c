/* control_prof_test.c - the names in the control tree that samples have: which calls are served,
 * and with which errors the others come back. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "control_values.h"
#include "control_tree.h"
#include "unit.h"

#include <errno.h>
#include <pthread.h>

static int write_text(const char *name, const char *text)
{
    return control_by_name(name, NULL, NULL, (void *)(uintptr_t)&text, sizeof text);
}

static const char *read_text(const char *name)
{
    const char *text = NULL;
    size_t length = sizeof text;

    assert_int_equal(control_by_name(name, (void *)(uintptr_t)&text, &length, NULL, 0), 0);
    return text;
}

static void *read_pointer(const char *name)
{
    void *value = NULL;
    size_t length = sizeof value;

    assert_int_equal(control_by_name(name, (void *)(uintptr_t)&value, &length, NULL, 0), 0);
    return value;
}

static int write_pointer(const char *name, const void *value)
{
    return control_by_name(name, NULL, NULL, (void *)(uintptr_t)&value, sizeof value);
}

static void start_profile(void)
{
    options_parse("prof:true,prof_active:false,lg_prof_sample:20", "test");
    prairie_free(prairie_malloc(1));
    assert_true(profile_start());
}

/* ---- the calling thread ---- */

static const char name_leaf[] = "thread.prof.name", thread_leaf[] = "thread.prof.active";

static void a_thread_has_the_name_it_was_given(void **state)
{
    static const char *const good[] = { "one", "a\tb", " ~", "" };
    static const char *const bad[] = { "a\nb", "\x1f", "\x7f", "\x80" };

    (void)state;
    start_profile();
    assert_string_equal(read_text(name_leaf), "");
    for (unsigned i = 0; i < ARRAY_COUNT(good); i++) {
        assert_int_equal(write_text(name_leaf, good[i]), 0);
        assert_string_equal(read_text(name_leaf), good[i]);
    }
    assert_int_equal(write_text(name_leaf, "kept"), 0);
    for (unsigned i = 0; i < ARRAY_COUNT(bad); i++)
        assert_int_equal(write_text(name_leaf, bad[i]), EINVAL);
    assert_int_equal(write_text(name_leaf, NULL), EINVAL);
    assert_string_equal(read_text(name_leaf), "kept");
}

static void a_name_is_read_or_written_but_not_both(void **state)
{
    const char *text = "both", *old = NULL;
    size_t length = sizeof old;

    (void)state;
    start_profile();
    assert_int_equal(control_by_name(name_leaf, (void *)(uintptr_t)&old, &length,
                                     (void *)(uintptr_t)&text, sizeof text),
                     EPERM);
    assert_int_equal(control_by_name(name_leaf, (void *)(uintptr_t)&old, &length, NULL, 1), EPERM);
    assert_null(old);
    assert_string_equal(read_text(name_leaf), "");
}

/* A thread keeps the name that it has when there is no place for another. */
static void names_run_out(void **state)
{
    char name[32];
    unsigned count = 0;

    (void)state;
    start_profile();
    do snprintf(name, sizeof name, "thread %u", count);
    while (write_text(name_leaf, name) == 0 && count++ < 100000);
    assert_int_equal(write_text(name_leaf, name), EAGAIN);
    snprintf(name, sizeof name, "thread %u", count - 1);
    assert_string_equal(read_text(name_leaf), name);
    assert_int_equal(write_text(name_leaf, ""), 0);
    assert_string_equal(read_text(name_leaf), "");
}

static void a_thread_may_be_left_out(void **state)
{
    struct sampler *sampler;

    (void)state;
    start_profile();
    sampler = sampler_here();
    assert_non_null(sampler);
    assert_true(read_flag(thread_leaf));
    assert_int_equal(write_flag(thread_leaf, false), 0);
    assert_false(read_flag(thread_leaf));
    assert_true(sampler->is_off);
    assert_int_equal(write_flag(thread_leaf, true), 0);
    assert_true(read_flag(thread_leaf));
    assert_false(sampler->is_off);
}

/* After its end a thread has no cache, and what it takes is not sampled. */
static void a_thread_at_its_end_has_neither(void **state)
{
    (void)state;
    start_profile();
    assert_int_equal(write_text(name_leaf, "gone"), 0);
    fake_thread_end();
    assert_string_equal(read_text(name_leaf), "");
    assert_int_equal(write_text(name_leaf, "again"), EAGAIN);
    assert_false(read_flag(thread_leaf));
    assert_int_equal(write_flag(thread_leaf, true), EAGAIN);
}

/* ---- all threads ---- */

static void switches_are_what_they_were_set_to(void **state)
{
    static const char *const leaf[] = { "prof.active", "prof.gdump", "prof.thread_active_init" };

    (void)state;
    start_profile();
    for (unsigned i = 0; i < ARRAY_COUNT(leaf); i++) {
        for (unsigned value = 0; value < 2; value++) {
            assert_int_equal(write_flag(leaf[i], value != 0), 0);
            assert_int_equal(read_flag(leaf[i]), value);
        }
    }
    assert_true(RELAXED_LOAD(sampling_active));
    assert_true(RELAXED_LOAD(profile.gdump));
    assert_true(threads_sampling_at_birth());
}

/* Without samples: to switch off what is off is no mistake. */
static void without_samples_all_is_off(void **state)
{
    static const char *const leaf[] = { "prof.active", "prof.gdump", "prof.thread_active_init" };
    size_t lg_sample = 10;

    (void)state;
    prairie_free(prairie_malloc(1));
    for (unsigned i = 0; i < ARRAY_COUNT(leaf); i++) {
        assert_false(read_flag(leaf[i]));
        assert_int_equal(write_flag(leaf[i], false), 0);
        assert_int_equal(write_flag(leaf[i], true), ENOENT);
        assert_false(read_flag(leaf[i]));
    }
    assert_false(read_flag(thread_leaf));
    assert_int_equal(write_flag(thread_leaf, false), ENOENT);
    assert_int_equal(write_text(name_leaf, "name"), ENOENT);
    assert_int_equal(write_text("prof.prefix", "prefix"), ENOENT);
    assert_int_equal(write_text("prof.dump", "file"), ENOENT);
    assert_int_equal(control_by_name("prof.reset", NULL, NULL, &lg_sample, sizeof lg_sample),
                     ENOENT);
    assert_int_equal(write_pointer("experimental.hooks.prof_dump", leaf), ENOENT);
    assert_null(read_pointer("experimental.hooks.prof_dump"));
}

static void a_reset_may_change_the_period(void **state)
{
    size_t lg_sample = 12, beyond = 64, last = 63;

    (void)state;
    start_profile();
    assert_int_equal(read_size("prof.lg_sample"), 20);
    assert_int_equal(control_by_name("prof.reset", NULL, NULL, NULL, 0), 0);
    assert_int_equal(read_size("prof.lg_sample"), 20);
    assert_int_equal(control_by_name("prof.reset", NULL, NULL, &lg_sample, sizeof lg_sample), 0);
    assert_int_equal(read_size("prof.lg_sample"), 12);
    assert_int_equal(sampler_period(), 4096);
    assert_int_equal(control_by_name("prof.reset", NULL, NULL, &lg_sample, sizeof lg_sample / 2),
                     EINVAL);
    assert_int_equal(control_by_name("prof.reset", NULL, NULL, &last, sizeof last), 0);
    assert_int_equal(read_size("prof.lg_sample"), 63);
    assert_int_equal(control_by_name("prof.reset", NULL, NULL, &lg_sample, sizeof lg_sample), 0);
    assert_int_equal(control_by_name("prof.reset", NULL, NULL, &beyond, sizeof beyond), 0);
    assert_int_equal(read_size("prof.lg_sample"), 63);
}

/* To a name that is told, or to one that begins with the prefix. */
static void a_dump_goes_where_it_is_told(void **state)
{
    static char room[64 * KiB];
    const char *name = "profile.heap", *old = NULL;
    size_t length = sizeof old;

    (void)state;
    start_profile();
    fake_file(room, sizeof room);
    assert_int_equal(write_text("prof.dump", name), 0);
    assert_true(fake_file_bytes() > 0);
    assert_int_equal(
        control_by_name("prof.dump", NULL, NULL, (void *)(uintptr_t)&name, sizeof name / 2),
        EINVAL);
    assert_int_equal(control_by_name("prof.dump", (void *)(uintptr_t)&old, &length, NULL, 0),
                     EPERM);
    assert_int_equal(control_by_name("prof.dump", (void *)(uintptr_t)&old, NULL, NULL, 0), EPERM);
    assert_int_equal(control_by_name("prof.dump", NULL, &length, NULL, 0), EPERM);
    assert_int_equal(write_text("prof.prefix", NULL), EINVAL);
    assert_int_equal(control_by_name("prof.prefix", NULL, NULL, NULL, 0), EINVAL);
    assert_int_equal(write_text("prof.prefix", ""), 0);
    assert_int_equal(control_by_name("prof.dump", NULL, NULL, NULL, 0), EFAULT);
    assert_int_equal(write_text("prof.prefix", "other"), 0);
    assert_string_equal(profile.prefix, "other");
}

static void a_prefix_that_is_too_long_changes_nothing(void **state)
{
    static char longest[768 + 1];

    (void)state;
    start_profile();
    memset(longest, 'x', 768);
    assert_int_equal(write_text("prof.prefix", "kept"), 0);
    assert_int_equal(write_text("prof.prefix", longest), EINVAL);
    assert_string_equal(profile.prefix, "kept");
    longest[767] = '\0';
    assert_int_equal(write_text("prof.prefix", longest), 0);
    assert_string_equal(profile.prefix, longest);
}

/* What is read back is what is obeyed. */
static void stacks_are_as_deep_as_the_option_says(void **state)
{
    (void)state;
    assert_int_equal(option_rows[OPTION_PROF_BT_MAX].most, UNWIND_DEPTH_MAX);
    options_parse("prof_bt_max:256", "test");
    assert_int_equal(option_value(OPTION_PROF_BT_MAX), UNWIND_DEPTH_MAX);
    assert_string_equal(fake_error_text(), "");
}

static void start_with_prefix(size_t length)
{
    char text[1000] = "prof_prefix:";

    memset(text + strlen(text), 'x', length);
    options_parse(text, "test");
    start_profile();
}

/* An option takes as much as the control. */
static void the_longest_prefix_may_be_an_option(void **state)
{
    (void)state;
    start_with_prefix(767);
    assert_int_equal(strlen(profile.prefix), 767);
    assert_string_equal(fake_error_text(), "");
}

static void an_option_with_a_longer_prefix_is_not_used(void **state)
{
    (void)state;
    start_with_prefix(768);
    assert_string_equal(profile.prefix, "");
    assert_string_equal(fake_error_text(),
                        "prairie: prof_prefix is longer than 767 bytes, and not used\n");
}

static void a_file_that_is_full_is_told(void **state)
{
    static char room[16];

    (void)state;
    start_profile();
    assert_int_equal(write_text("prof.dump", "profile.heap"), EFAULT);
    fake_file(room, sizeof room);
    assert_int_equal(write_text("prof.dump", "profile.heap"), EFAULT);
}

/* ---- functions of the program ---- */

static void hook_of_test(void) {}

static void hooks_are_what_they_were_set_to(void **state)
{
    static const char walk[] = "experimental.hooks.prof_backtrace";
    static const char *const leaf[] = { "experimental.hooks.prof_dump",
                                        "experimental.hooks.prof_sample",
                                        "experimental.hooks.prof_sample_free" };
    const void *hook = (const void *)(uintptr_t)hook_of_test;
    void *own;

    (void)state;
    start_profile();
    for (unsigned i = 0; i < ARRAY_COUNT(leaf); i++) {
        assert_null(read_pointer(leaf[i]));
        assert_int_equal(control_by_name(leaf[i], NULL, NULL, NULL, 0), EINVAL);
        assert_int_equal(write_pointer(leaf[i], hook), 0);
        assert_ptr_equal(read_pointer(leaf[i]), hook);
        assert_int_equal(write_pointer(leaf[i], NULL), 0);
        assert_null(read_pointer(leaf[i]));
    }
    own = read_pointer(walk);
    assert_non_null(own);
    assert_int_equal(write_pointer(walk, NULL), EINVAL);
    assert_int_equal(write_pointer(walk, hook), 0);
    assert_ptr_equal(read_pointer(walk), hook);
    assert_int_equal(write_pointer(walk, own), 0); /* as a program does that puts it back */
    assert_null(sampling_hooks[HOOK_WALK].pointer);
    assert_ptr_equal(read_pointer(walk), own);
}

static void other_hook_of_test(void) {}

/* Another thread puts its own before the one that was. */
static void *chain_a_hook(void *before)
{
    const void *hook = (const void *)(uintptr_t)other_hook_of_test;
    size_t length = sizeof(void *);

    assert_int_equal(control_by_name("experimental.hooks.prof_dump", before, &length,
                                     (void *)(uintptr_t)&hook, sizeof hook),
                     0);
    return NULL;
}

static void of_two_that_chain_hooks_none_is_lost(void **state)
{
    void *hook = (void *)(uintptr_t)hook_of_test, *before = NULL;
    pthread_t thread;

    (void)state;
    start_profile();
    lock_take(&control_lock);
    assert_int_equal(pthread_create(&thread, NULL, chain_a_hook, (void *)(uintptr_t)&before), 0);
    while (RELAXED_LOAD(control_lock.sleepers) == 0) usleep(100);
    RELAXED_STORE(sampling_hooks[HOOK_DUMP].pointer, hook);
    lock_give(&control_lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ptr_equal(before, hook);
    assert_ptr_equal(read_pointer("experimental.hooks.prof_dump"), other_hook_of_test);
}

static unsigned dumps_told;

/* The record of the front that counted goes to somebody else. */
static void switch_cache_on(const char *path)
{
    void *other;

    (void)path;
    if (dumps_told++ != 0) return;
    thread_cache_on();
    other = meta_take(sizeof(struct exact_front));
    memset(other, 0xff, sizeof(struct exact_front));
}

static void a_dump_may_switch_the_cache_on(void **state)
{
    static char room[1 << 20];

    (void)state;
    options_parse("prof:true,prof_active:true,lg_prof_sample:4,lg_prof_interval:12", "test");
    prairie_free(prairie_malloc(1));
    assert_true(profile_start());
    fake_file(room, sizeof room);
    sampling_hooks[HOOK_DUMP].dump = switch_cache_on;
    assert_true(thread_cache_off());
    while (dumps_told == 0) assert_non_null(prairie_malloc(100));
    assert_int_not_equal(thread_front()->kind, FRONT_OFF);
    prairie_check_all();
}

static char last_dump[80];

static void note_dump(const char *name) { snprintf(last_dump, sizeof last_dump, "%s", name); }

static void expect_dumped(const char *ending)
{
    size_t length = strlen(last_dump), wanted = strlen(ending);

    assert_true(length > wanted);
    assert_string_equal(last_dump + length - wanted, ending);
}

/* As jemalloc's: one number for all dumps, and one for those of the same reason. */
static void each_reason_has_numbers_of_its_own(void **state)
{
    static char room[64 * KiB];
    bool on = true;

    (void)state;
    start_profile();
    fake_file(room, sizeof room);
    assert_int_equal(write_pointer("experimental.hooks.prof_dump", (void *)(uintptr_t)note_dump),
                     0);
    assert_int_equal(write_text("prof.prefix", "there/p"), 0);
    assert_int_equal(control_by_name("prof.dump", NULL, NULL, NULL, 0), 0);
    expect_dumped(".0.m0.heap");
    assert_int_equal(control_by_name("prof.gdump", NULL, NULL, &on, sizeof on), 0);
    for (unsigned i = 0; i < 2; i++) assert_non_null(prairie_malloc(32 * MiB));
    expect_dumped(".1.u0.heap");
    assert_int_equal(control_by_name("prof.dump", NULL, NULL, NULL, 0), 0);
    expect_dumped(".2.m1.heap");
}

/* A dump that somebody called for answers with an error, and says nothing. */
static void of_files_that_nobody_called_for_one_failure_is_told(void **state)
{
    bool on = true;

    (void)state;
    start_profile();
    assert_int_equal(write_text("prof.prefix", "nowhere/p"), 0);
    assert_int_equal(control_by_name("prof.dump", NULL, NULL, NULL, 0), EFAULT);
    assert_string_equal(fake_error_text(), "");
    assert_int_equal(control_by_name("prof.gdump", NULL, NULL, &on, sizeof on), 0);
    for (unsigned i = 0; i < 3; i++) assert_non_null(prairie_malloc(32 * MiB));
    assert_true(profile.peak_dumps > 1);
    assert_non_null(strstr(fake_error_text(), "prairie: profile not written: nowhere/p."));
    assert_null(strstr(strstr(fake_error_text(), ".u0.heap\n") + 1, "prairie:"));
}

/* Half of a prefix would name a file that nobody meant. */
static void a_prefix_waits_for_a_dump(void **state)
{
    (void)state;
    start_profile();
    assert_int_equal(write_text("prof.prefix", "kept"), 0);
    profile.dumping = 1; /* another thread's */
    assert_int_equal(write_text("prof.prefix", "other"), EAGAIN);
    assert_true(fake_calls(FAKE_SLEEP) > 0);
    assert_string_equal(profile.prefix, "kept");
    profile_forget_dump();
    assert_int_equal(write_text("prof.prefix", "other"), 0);
    assert_string_equal(profile.prefix, "other");
}

UNIT_MAIN(UNIT_TEST(a_thread_has_the_name_it_was_given),
          UNIT_TEST(a_name_is_read_or_written_but_not_both), UNIT_TEST(names_run_out),
          UNIT_TEST(a_thread_may_be_left_out), UNIT_TEST(a_thread_at_its_end_has_neither),
          UNIT_TEST(switches_are_what_they_were_set_to), UNIT_TEST(without_samples_all_is_off),
          UNIT_TEST(a_reset_may_change_the_period), UNIT_TEST(a_dump_goes_where_it_is_told),
          UNIT_TEST(a_prefix_that_is_too_long_changes_nothing),
          UNIT_TEST(stacks_are_as_deep_as_the_option_says),
          UNIT_TEST(the_longest_prefix_may_be_an_option),
          UNIT_TEST(an_option_with_a_longer_prefix_is_not_used),
          UNIT_TEST(a_file_that_is_full_is_told), UNIT_TEST(hooks_are_what_they_were_set_to),
          UNIT_TEST(of_two_that_chain_hooks_none_is_lost),
          UNIT_TEST(a_dump_may_switch_the_cache_on), UNIT_TEST(each_reason_has_numbers_of_its_own),
          UNIT_TEST(of_files_that_nobody_called_for_one_failure_is_told),
          UNIT_TEST(a_prefix_waits_for_a_dump))
