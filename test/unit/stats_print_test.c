/* stats_print_test.c - the printed statistics: sections, letters, numbers. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "control_tree.h"
#include "guarded.h"
#include "json.h"

static struct {
    char text[1 << 19];
    size_t used;
} print;

static void write_print(void *context, const char *text)
{
    size_t length = strlen(text);

    assert_ptr_equal(context, &print);
    assert_true(print.used + length < sizeof print.text);
    memcpy(print.text + print.used, text, length + 1);
    print.used += length;
}

static const char *printed(const char *letters)
{
    print.text[print.used = 0] = '\0';
    malloc_stats_print(write_print, &print, letters);
    return print.text;
}

/* The same, which must be one value of JSON and nothing else. */
static const char *printed_json(const char *letters)
{
    const char *text = printed(letters);

    assert_int_equal(*json_end_of(text), '\0');
    return text;
}

static void start_with_two_arenas(void)
{
    lock_set_spin(0);
    fake_cores(2);
    prairie_free(prairie_malloc(100));
    assert_non_null(arena_at(0));
    assert_non_null(arena_at(1));
}

/* ---- sections ---- */

struct section {
    const char *at;   /* a line's beginning in the text, a path in the JSON */
    const char *gone; /* letters, each of which leaves it out */
};

static const struct section text_sections[] = {
    { "___ Begin jemalloc statistics ___\n", "" },
    { "\nVersion: ", "g" },
    { "\nBuild-time option settings\n", "g" },
    { "\nSystem configuration\n", "g" },
    { "\nRun-time option settings\n", "g" },
    { "\nArenas: ", "g" },
    { "\nAllocated: ", "" },
    { "\nBackground threads: ", "" },
    { "\nbackground_thread  ", "x" },
    { "\nMerged arenas stats:\n", "m" },
    { "\narenas[0]:\n", "a" },
    { "\nname: \"auto_0\"\n", "a" },
    { "\narenas[1]:\n", "a" },
    { "\nextents_dirty  ", "x" },
    { "\nbins:           size", "b" },
    { " n_lock_ops ", "x" },
    { "\nlarge:          size", "l" },
    { "\nextents:        size", "e" },
    { "\n--- End jemalloc statistics ---\n", "" },
};

static const struct section json_sections[] = {
    { "jemalloc/version", "g" },
    { "jemalloc/config/debug", "g" },
    { "jemalloc/system/thp_mode", "g" },
    { "jemalloc/opt/narenas", "g" },
    { "jemalloc/arenas/bin/0/size", "g" },
    { "jemalloc/stats/allocated", "" },
    { "jemalloc/stats/background_thread/num_threads", "" },
    { "jemalloc/stats/mutexes/ctl/num_ops", "x" },
    { "jemalloc/stats.arenas/merged/nthreads", "m" },
    { "jemalloc/stats.arenas/merged/bins/0/curregs", "mb" },
    { "jemalloc/stats.arenas/merged/lextents/0/curlextents", "ml" },
    { "jemalloc/stats.arenas/merged/extents/0/ndirty", "me" },
    { "jemalloc/stats.arenas/0/name", "a" },
    { "jemalloc/stats.arenas/1/name", "a" },
    { "jemalloc/stats.arenas/0/mutexes/base/num_ops", "ax" },
    { "jemalloc/stats.arenas/0/bins/0/curregs", "ab" },
    { "jemalloc/stats.arenas/0/bins/0/mutex/num_ops", "abx" },
    { "jemalloc/stats.arenas/0/lextents/0/curlextents", "al" },
    { "jemalloc/stats.arenas/0/extents/0/ndirty", "ae" },
};

static bool is_printed(const struct section *section, const char *letters)
{
    bool json = strchr(letters, 'J') != NULL;

    return (json ? json_find(print.text, section->at) : strstr(print.text, section->at)) != NULL;
}

static void expect_sections(const struct section *sections, size_t count, const char *letters)
{
    for (size_t i = 0; i < count; i++)
        if (is_printed(&sections[i], letters) == (strchr(sections[i].gone, *letters) != NULL))
            fail_msg("%s with the letter %c", sections[i].at, *letters);
}

/* d, h and letters of others leave nothing out. */
static void each_letter_leaves_its_sections_out(void **state)
{
    (void)state;
    start_with_two_arenas();
    for (const char *at = " gmdablxehz"; *at != '\0'; at++) {
        const char letters[] = { *at, '\0' }, with_json[] = { *at, 'J', '\0' };

        (void)printed(letters);
        expect_sections(text_sections, ARRAY_COUNT(text_sections), letters);
        (void)printed_json(with_json);
        expect_sections(json_sections, ARRAY_COUNT(json_sections), with_json);
    }
}

static void the_sections_are_in_order(void **state)
{
    const char *at;

    (void)state;
    start_with_two_arenas();
    at = printed(NULL);
    for (unsigned i = 0; i < ARRAY_COUNT(text_sections); i++) {
        if (strcmp(text_sections[i].at, " n_lock_ops ") == 0) continue;
        at = strstr(at, text_sections[i].at);
        if (at == NULL) fail_msg("%s is not in its place", text_sections[i].at);
    }
    assert_int_equal(strncmp(print.text, text_sections[0].at, strlen(text_sections[0].at)), 0);
    assert_string_equal(at, "\n--- End jemalloc statistics ---\n");
}

/* The arenas as one are shown when they are asked for, or are not the one that there is. */
static void one_arena_is_not_merged(void **state)
{
    (void)state;
    fake_cores(1);
    prairie_free(prairie_malloc(100));
    assert_null(json_find(printed_json("J"), "jemalloc/stats.arenas/merged"));
    assert_non_null(json_find(print.text, "jemalloc/stats.arenas/0"));
    assert_non_null(json_find(printed_json("Ja"), "jemalloc/stats.arenas/merged"));
    assert_non_null(json_find(printed_json("Jam"), "jemalloc/stats.arenas")); /* d may be in it */
    assert_null(json_find(printed_json("Jamd"), "jemalloc/stats.arenas"));
    assert_null(strstr(printed(""), "Merged"));
}

static void all_letters_leave_the_sums(void **state)
{
    unsigned lines = 0;

    (void)state;
    start_with_two_arenas();
    for (const char *at = printed("gmdablxeh"); *at != '\0'; at++) lines += *at == '\n';
    assert_int_equal(lines, 5);
    assert_non_null(json_find(printed_json("hexlbadmgJ"), "jemalloc/stats/allocated"));
    assert_null(json_find(print.text, "jemalloc/stats.arenas"));
}

/* ---- numbers ---- */

static struct prairie_stats stats_now(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };

    assert_true(prairie_stats_read(&stats));
    return stats;
}

enum { SMALL_COUNT = 37, SMALL_SIZE = 200, LARGE_COUNT = 3, LARGE_SIZE = 40 * 1024 };

static void hold_some(void)
{
    fake_cores(1);
    snapshot_begin();
    for (unsigned i = 0; i < SMALL_COUNT; i++) assert_non_null(prairie_malloc(SMALL_SIZE));
    for (unsigned i = 0; i < LARGE_COUNT; i++) assert_non_null(prairie_malloc(LARGE_SIZE));
    prairie_free(prairie_malloc(2 * LARGE_SIZE));
    assert_null(prairie_realloc(prairie_malloc(SMALL_SIZE), 0));
}

static void the_sums_are_those_of_the_heap(void **state)
{
    struct prairie_stats stats;
    const char *json;

    (void)state;
    hold_some();
    (void)printed("");
    stats = stats_now();
    json = printed_json("J");
    assert_int_equal(json_number(json, "jemalloc/stats/allocated"), stats.allocated);
    assert_int_equal(json_number(json, "jemalloc/stats/active"), stats.active);
    assert_int_equal(json_number(json, "jemalloc/stats/metadata_edata"), commit.record_bytes);
    assert_int_equal(json_number(json, "jemalloc/stats/metadata_edata")
                         + json_number(json, "jemalloc/stats/metadata_rtree"),
                     json_number(json, "jemalloc/stats/metadata"));
    assert_true(json_number(json, "jemalloc/stats/metadata") >= stats.metadata);
    assert_int_equal(json_number(json, "jemalloc/stats/resident"),
                     stats.active + stats.dirty + json_number(json, "jemalloc/stats/metadata"));
    assert_int_equal(json_number(json, "jemalloc/stats/retained"), stats.clean);
    assert_int_equal(json_number(json, "jemalloc/stats/zero_reallocs"), 1);
    assert_int_equal(json_number(json, "jemalloc/stats.arenas/0/pdirty"),
                     stats.dirty >> space.page_shift);
    assert_int_equal(json_number(json, "jemalloc/stats.arenas/0/large/allocated"),
                     LARGE_COUNT * LARGE_SIZE);
    assert_int_equal(json_number(json, "jemalloc/stats.arenas/0/large/nmalloc"), LARGE_COUNT + 1);
    assert_int_equal(json_number(json, "jemalloc/stats.arenas/0/large/ndalloc"), 1);
    assert_int_equal(json_number(json, "jemalloc/arenas/page"), page_bytes());
    json_expect_text(json, "jemalloc/version", "5.3.1-0-gprairie-" PRAIRIE_VERSION);
    json_expect_text(json, "jemalloc/stats.arenas/0/name", "auto_0");
}

/* Columns of a line of the text, from the one that begins with these words. */
static uint64_t column_of(const char *line_start, unsigned column)
{
    const char *at = strstr(print.text, line_start);

    if (at == NULL) fail_msg("no line '%s'", line_start);
    at += strlen(line_start);
    for (; column > 0; column--) {
        at += strspn(at, " ");
        at += strcspn(at, " \n");
    }
    return strtoull(at, NULL, 10);
}

static void the_text_says_the_same(void **state)
{
    static const char words[][40] = {
        "\nAllocated: ", ", active: ",    ", metadata: ", " (n_thp 0, edata ",
        ", rtree ",      "), resident: ", ", mapped: ",   ", retained: "
    };
    static const char keys[8][16] = { "allocated",      "active",   "metadata", "metadata_edata",
                                      "metadata_rtree", "resident", "mapped",   "retained" };
    char line[400] = "", path[60], interval[60];

    (void)state;
    hold_some();
    (void)printed(""); /* the first one takes the records that hold the numbers */
    (void)printed_json("J");
    (void)snprintf(
        interval, sizeof interval, ", num_runs: 0, run_interval: %zu ns\n",
        (size_t)json_number(print.text, "jemalloc/stats/background_thread/run_interval"));
    for (unsigned i = 0; i < ARRAY_COUNT(words); i++) {
        size_t used = strlen(line);

        (void)snprintf(path, sizeof path, "jemalloc/stats/%.16s", keys[i]);
        (void)snprintf(line + used, sizeof line - used, "%s%zu", words[i],
                       (size_t)json_number(print.text, path));
    }
    assert_non_null(strstr(printed(""), line));
    assert_non_null(strstr(print.text, "\nCount of realloc(non-null-ptr, 0) calls: 1\n"));
    assert_non_null(strstr(print.text, interval));
    assert_int_equal(column_of("\nlarge: ", 0), LARGE_COUNT * LARGE_SIZE);
    assert_int_equal(column_of("\nlarge: ", 1), LARGE_COUNT + 1);
    assert_int_equal(column_of("\nlarge: ", 3), 1);
}

/* Of each class, length of large blocks, and length of free runs: as many as there are. */
static void the_lists_count_what_is_there(void **state)
{
    unsigned class_index = class_of_size(SMALL_SIZE), of_large = lextent_of(LARGE_SIZE);
    char path[100];
    const char *json;
    uint64_t free_bytes = 0;

    (void)state;
    hold_some();
    json = printed_json("J");
    (void)snprintf(path, sizeof path, "jemalloc/stats.arenas/0/bins/%u/curregs", class_index - 1);
    assert_int_equal(json_number(json, path), SMALL_COUNT);
    (void)snprintf(path, sizeof path, "jemalloc/arenas/bin/%u/size", class_index - 1);
    assert_int_equal(json_number(json, path), class_bytes[class_index]);
    (void)snprintf(path, sizeof path, "jemalloc/stats.arenas/0/lextents/%u/curlextents", of_large);
    assert_int_equal(json_number(json, path), LARGE_COUNT);
    for (unsigned i = 0; i < step_count(); i++) {
        (void)snprintf(path, sizeof path, "jemalloc/stats.arenas/0/extents/%u/dirty_bytes", i);
        free_bytes += json_number(json, path);
        (void)snprintf(path, sizeof path, "jemalloc/stats.arenas/0/extents/%u/retained_bytes", i);
        free_bytes += json_number(json, path);
    }
    assert_int_equal(free_bytes,
                     (page_heap->free_pages[FREE_DIRTY] + page_heap->free_pages[FREE_CLEAN])
                         << space.page_shift);
}

/* A list of the text has a line for each kind that there is, and one for each gap between. */
static void the_lists_of_the_text_have_gaps(void **state)
{
    unsigned class_index = class_of_size(SMALL_SIZE), of_large = lextent_of(LARGE_SIZE);
    char row[100];

    (void)state;
    hold_some();
    (void)printed("axe");
    (void)snprintf(row, sizeof row, "(#/sec)\n                     ---\n%20u%4u",
                   class_bytes[class_index], class_index - 1);
    assert_int_equal(column_of(row, 0), SMALL_COUNT * class_bytes[class_index]);
    assert_int_equal(column_of(row, 8), SMALL_COUNT);
    (void)snprintf(row, sizeof row, "curlextents\n                     ---\n%20zu%4u",
                   lextent_bytes(of_large), BIN_CLASS_COUNT + of_large);
    assert_int_equal(column_of(row, 0), LARGE_COUNT * lextent_bytes(of_large));
    assert_int_equal(column_of(row, 1), LARGE_COUNT);
    assert_null(strstr(print.text, "---\n                     ---"));
    assert_non_null(strstr(print.text, "                     ---\n--- End"));
}

/* A class whose blocks all are guarded has a line, too, and no slab. */
static void the_list_of_classes_has_guarded_blocks(void **state)
{
    unsigned class_index = class_of_size(2000);
    char row[100];

    (void)state;
    guard_from_now();
    assert_true(guarded_pool_has(prairie_malloc(2000)));
    (void)printed("ax");
    (void)snprintf(row, sizeof row, "\n%20u%4u", class_bytes[class_index], class_index - 1);
    assert_int_equal(column_of(row, 0), class_bytes[class_index]);
}

/* Nothing a second in the first one, then by whole seconds. */
static void rates_are_by_the_second(void **state)
{
    (void)state;
    fake_cores(1);
    snapshot_begin();
    for (unsigned i = 0; i < 500; i++) prairie_free(prairie_malloc(LARGE_SIZE));
    fake_clock_ms(999);
    (void)printed("");
    assert_int_equal(column_of("\nlarge: ", 1), 500);
    assert_int_equal(column_of("\nlarge: ", 2), 0);
    fake_clock_ms(9001);
    (void)printed("");
    assert_int_equal(column_of("\nlarge: ", 2), 50);
    assert_int_equal(column_of("\nuptime: ", 0), 10000000000);
}

/* How long the machine has been up is no answer. */
static void a_beginning_that_nobody_noted_is_not_made_up(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(100));
    fake_clock_ms(5000);
    (void)printed("");
    assert_int_equal(column_of("\nuptime: ", 0), 0);
}

static void a_negative_decay_has_no_time(void **state)
{
    (void)state;
    options_parse("dirty_decay_ms:-1", "test");
    prairie_free(prairie_malloc(100));
    assert_non_null(strstr(printed(""), "\n   dirty:   N/A "));
    assert_non_null(strstr(print.text, "\n   muzzy:     0 "));
    assert_int_equal(strncmp(json_find(printed_json("J"), "jemalloc/opt/dirty_decay_ms"), "-1,", 3),
                     0);
}

/* In hundredths, as jemalloc prints them; -1 where there is none. */
static void expect_fraction(const char *said, const char *printed_as)
{
    char text[60];

    (void)snprintf(text, sizeof text, "hpa_dirty_mult:%s", said);
    options_parse(text, "test");
    (void)snprintf(text, sizeof text, "\n  opt.hpa_dirty_mult: \"%s\"\n", printed_as);
    assert_non_null(strstr(printed(""), text));
    json_expect_text(printed_json("J"), "jemalloc/opt/hpa_dirty_mult", printed_as);
}

static void a_fraction_is_rounded_to_hundredths(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(100));
    expect_fraction("0.25", "0.25");
    expect_fraction("0.05", "0.05");
    expect_fraction("0.996", "1.00");
    expect_fraction("3.5", "3.50");
    expect_fraction("-1", "-1");
}

/* ---- where it goes ---- */

static unsigned messages;

static void count_message(void *context, const char *text)
{
    assert_null(context);
    assert_true(text[0] != '\0');
    messages++;
}

static void without_a_function_it_goes_to_malloc_message(void **state)
{
    (void)state;
    malloc_message = count_message;
    malloc_stats_print(NULL, NULL, "");
    assert_true(messages > 1);
    assert_int_equal(fake_calls(FAKE_WRITE), 0);
    malloc_message = NULL;
    malloc_stats_print(NULL, NULL, "");
    assert_true(fake_calls(FAKE_WRITE) > 1);
    assert_non_null(strstr(fake_error_text(), "--- End jemalloc statistics ---\n"));
}

static void ask_for_more(void *context, const char *text)
{
    if (*text == '\0' || *(unsigned *)context == 0) return;
    --*(unsigned *)context;
    malloc_stats_print(ask_for_more, context, "J");
    prairie_free(prairie_malloc(1000));
}

/* The function may allocate, and ask again. */
static void no_lock_is_held_meanwhile(void **state)
{
    unsigned more = 3;

    (void)state;
    start_with_two_arenas();
    malloc_stats_print(ask_for_more, &more, "");
    assert_int_equal(more, 0);
    prairie_check_all();
}

static void without_memory_nothing_is_said(void **state)
{
    (void)state;
    fake_fail_all(true);
    assert_string_equal(printed(""), "");
    fake_fail_all(false);
    assert_string_not_equal(printed(""), "");
}

static uint64_t allocated_now(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };

    assert_true(prairie_stats_read(&stats));
    return stats.allocated;
}

static void expect_sums(const char *text)
{
    char line[64];

    assert_true(snprintf(line, sizeof line,
                         "\nAllocated: %llu, active: ", (unsigned long long)allocated_now())
                > 0);
    assert_non_null(strstr(text, line));
    assert_non_null(strstr(text, "\nMerged arenas stats:\n"));
    assert_non_null(strstr(text, "--- End jemalloc statistics ---\n"));
}

/* Nobody has asked before. */
static void at_the_hard_limit_all_of_it_is_printed(void **state)
{
    uint64_t epoch = 1;

    (void)state;
    start_with_two_arenas();
    assert_non_null(prairie_malloc(70000));
    commit.limit_bytes = commit_taken_bytes();
    assert_int_equal(control_by_name("epoch", NULL, NULL, &epoch, sizeof epoch), 0);
    expect_sums(printed(""));
    assert_non_null(strstr(print.text, "\narenas[0]:\n"));
    assert_non_null(strstr(print.text, "\narenas[1]:\n"));
    (void)printed_json("J");
    assert_null(meta_take(META_UNIT_BYTES)); /* the limit holds for all else */
    commit.limit_bytes = SIZE_MAX;
    prairie_check_all();
}

/* The kernel refuses even the records of a snapshot. */
static void without_records_the_sums_are_printed(void **state)
{
    (void)state;
    start_with_two_arenas();
    assert_non_null(prairie_malloc(70000));
    fake_fail_kind(FAKE_COMMIT, true);
    while (meta_take(META_RECORD_BYTES_MAX) != NULL || meta_take(META_UNIT_BYTES) != NULL) {}
    expect_sums(printed(""));
    assert_null(strstr(print.text, "\narenas[0]:\n"));
    (void)printed_json("J");
    fake_fail_kind(FAKE_COMMIT, false);
    assert_non_null(strstr(printed(""), "\narenas[0]:\n"));
}

UNIT_MAIN(UNIT_TEST(at_the_hard_limit_all_of_it_is_printed),
          UNIT_TEST(without_records_the_sums_are_printed),
          UNIT_TEST(each_letter_leaves_its_sections_out), UNIT_TEST(the_sections_are_in_order),
          UNIT_TEST(one_arena_is_not_merged), UNIT_TEST(all_letters_leave_the_sums),
          UNIT_TEST(the_sums_are_those_of_the_heap), UNIT_TEST(the_text_says_the_same),
          UNIT_TEST(the_lists_count_what_is_there), UNIT_TEST(the_lists_of_the_text_have_gaps),
          UNIT_TEST(the_list_of_classes_has_guarded_blocks), UNIT_TEST(rates_are_by_the_second),
          UNIT_TEST(a_beginning_that_nobody_noted_is_not_made_up),
          UNIT_TEST(a_negative_decay_has_no_time), UNIT_TEST(a_fraction_is_rounded_to_hundredths),
          UNIT_TEST(without_a_function_it_goes_to_malloc_message),
          UNIT_TEST(no_lock_is_held_meanwhile), UNIT_TEST(without_memory_nothing_is_said))
