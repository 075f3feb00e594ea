/* options_test.c - what an option string may say, and what is said about the rest. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

#define SOURCE "MALLOC_CONF"
#define PAIR_LINE "prairie: Invalid conf pair: "
#define VALUE_LINE "prairie: Invalid conf value: "
#define RANGE_LINE "prairie: Out-of-range conf value: "

static const uint64_t standards[OPTION_COUNT] = {
#define OPTION(id, kind, mode, name, standard, least, most, words, sentence) (uint64_t)(standard),
#include "base/option_list.h"
#undef OPTION
};
static const char *const sentences[OPTION_COUNT] = {
#define OPTION(id, kind, mode, name, standard, least, most, words, sentence) sentence,
#include "base/option_list.h"
#undef OPTION
};

static void expect_standards(void)
{
    for (unsigned i = 0; i < OPTION_COUNT; i++) assert_true(option_values[i] == standards[i]);
}

static void defaults_are_those_of_the_list(void **state)
{
    (void)state;
    expect_standards();
    options_parse(NULL, SOURCE);
    options_parse("", SOURCE);
    options_parse(",,", SOURCE);
    expect_standards();
    assert_string_equal(fake_error_text(), "");
}

static bool is_number(const struct option_row *row)
{
    return row->kind >= OPTION_KIND_UNSIGNED && row->kind <= OPTION_KIND_I64;
}

static void every_row_is_whole(void **state)
{
    (void)state;
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_rows[i];
        assert_true(strlen(row->name) > 0 && strlen(row->name) < sizeof row->name);
        assert_true(strlen(sentences[i]) > 5);
        assert_int_equal(sentences[i][strlen(sentences[i]) - 1], '.');
        assert_int_equal(row->words[sizeof row->words - 1], '\0');
        if (is_number(row)) assert_true(row->least < 0 || (uint64_t)row->least <= row->most);
        if (is_number(row) && row->least >= 0)
            assert_in_range(standards[i], (uint64_t)row->least, row->most);
        if (row->kind == OPTION_KIND_BOOL)
            assert_true(standards[i] <= 1 || standards[i] == OPTION_UNASKED);
        if (row->kind == OPTION_KIND_CHOICE) assert_in_range(standards[i], 0, row->most);
        if (row->kind == OPTION_KIND_CHOICE)
            assert_true(strlen(option_word((enum option)i, row->most)) > 0);
        for (unsigned j = 0; j < i; j++) assert_string_not_equal(row->name, option_rows[j].name);
    }
}

static void set_by_name(const struct option_row *row, const char *value)
{
    char text[200];

    snprintf(text, sizeof text, "%s:%s", row->name, value);
    options_parse(text, SOURCE);
}

/* A size that no address can tell counts as the largest that one can. */
static uint64_t most_kept(const struct option_row *row)
{
    return row->kind == OPTION_KIND_SIZE && row->most > SIZE_MAX ? SIZE_MAX : row->most;
}

/* contract.options tries what becomes of them. */
static bool is_clipped(const struct option_row *row) { return (row->mode & OPTION_CLIPPED) != 0; }

static void every_number_takes_its_limits(void **state)
{
    char value[32];

    (void)state;
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_rows[i];
        if (!is_number(row)) continue;
        snprintf(value, sizeof value, "%llu", (unsigned long long)row->most);
        set_by_name(row, value);
        assert_true(option_values[i] == most_kept(row));
        snprintf(value, sizeof value, "%lld", (long long)row->least);
        set_by_name(row, value);
        assert_true(option_values[i] == (uint64_t)row->least);
        assert_string_equal(fake_error_text(), "");
        if (row->most != UINT64_MAX && !is_clipped(row)) {
            snprintf(value, sizeof value, "%llu", (unsigned long long)row->most + 1);
            set_by_name(row, value);
            assert_memory_equal(fake_error_text(), RANGE_LINE, strlen(RANGE_LINE));
            assert_true(option_values[i] == (uint64_t)row->least);
        }
        fake_error_clear();
        snprintf(value, sizeof value, "%lld", is_clipped(row) ? -1 : (long long)row->least - 1);
        set_by_name(row, value);
        if (is_clipped(row)) assert_true(option_values[i] == row->most);
        else assert_memory_equal(fake_error_text(), RANGE_LINE, strlen(RANGE_LINE));
        if (is_clipped(row)) assert_string_equal(fake_error_text(), "");
        fake_error_clear();
    }
}

static void every_word_is_taken(void **state)
{
    (void)state;
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_rows[i];
        if (i == OPTION_CONFIRM_CONF) continue; /* it says something */
        if (row->kind == OPTION_KIND_BOOL) {
            set_by_name(row, "true");
            assert_true(option_values[i] != 0);
            set_by_name(row, "false");
            assert_int_equal(option_values[i], 0);
        }
        for (uint64_t word = 0; row->kind == OPTION_KIND_CHOICE && word <= row->most; word++) {
            set_by_name(row, option_word((enum option)i, word));
            assert_true(option_values[i] == word);
        }
        if (row->kind == OPTION_KIND_IGNORED) set_by_name(row, "any:thing|there is");
        if (row->kind == OPTION_KIND_TEXT) {
            set_by_name(row, "text");
            assert_string_equal(option_text((enum option)i), "text");
        }
    }
    assert_string_equal(fake_error_text(), "");
}

static void fractions_are_read(void **state)
{
    (void)state;
    options_parse("hpa_dirty_mult:0.25", SOURCE);
    assert_int_equal(option_values[OPTION_HPA_DIRTY_MULT], 16384);
    options_parse("hpa_dirty_mult:3", SOURCE);
    assert_int_equal(option_values[OPTION_HPA_DIRTY_MULT], 3 * 65536);
    options_parse("hpa_dirty_mult:.5", SOURCE);
    assert_int_equal(option_values[OPTION_HPA_DIRTY_MULT], 32768);
    options_parse("hpa_dirty_mult:-1", SOURCE);
    assert_true(option_values[OPTION_HPA_DIRTY_MULT] == UINT32_MAX);
    assert_string_equal(fake_error_text(), "");
    options_parse("hpa_dirty_mult:1.2.3", SOURCE);
    assert_memory_equal(fake_error_text(), VALUE_LINE, strlen(VALUE_LINE));
}

static void several_pairs_in_one_text(void **state)
{
    (void)state;
    options_parse("xmalloc:true,narenas:7,background_thread:false", SOURCE);
    assert_true(option_is_set(OPTION_XMALLOC));
    assert_int_equal(option_value(OPTION_NARENAS), 7);
    assert_false(option_background_thread());
    options_parse(",,narenas:8,,narenas:9,", SOURCE); /* the last one counts */
    assert_int_equal(option_value(OPTION_NARENAS), 9);
    options_parse("narenas:default", SOURCE);
    assert_int_equal(option_value(OPTION_NARENAS), 0);
    assert_string_equal(fake_error_text(), "");
}

static void a_background_thread_may_run_that_nobody_asked_for(void **state)
{
    (void)state;
    assert_true(option_background_thread());
    assert_false(option_asked_at_start(OPTION_BACKGROUND_THREAD));
    options_parse("background_thread:true", SOURCE);
    assert_true(option_background_thread());
    assert_true(option_asked_at_start(OPTION_BACKGROUND_THREAD));
    options_parse("background_thread:false", SOURCE);
    assert_false(option_background_thread());
    assert_false(option_asked_at_start(OPTION_BACKGROUND_THREAD));
}

static void what_was_asked_for_outlasts_changes(void **state)
{
    (void)state;
    option_set(OPTION_BACKGROUND_THREAD, 0);
    option_set(OPTION_BACKGROUND_THREAD, 1);
    assert_true(option_background_thread());
    assert_false(option_asked_at_start(OPTION_BACKGROUND_THREAD));
}

static void other_names_are_understood(void **state)
{
    (void)state;
    options_parse("arenas:3,helper_thread:false,lg_tcache_max:12", SOURCE);
    assert_int_equal(option_value(OPTION_NARENAS), 3);
    assert_false(option_background_thread());
    assert_int_equal(option_value(OPTION_TCACHE_MAX), 4096);
    assert_string_equal(fake_error_text(), "");
}

static void numbers_are_written_as_in_c(void **state)
{
    (void)state;
    options_parse("narenas:0x10", SOURCE);
    assert_int_equal(option_value(OPTION_NARENAS), 16);
    options_parse("narenas:0x3f", SOURCE);
    assert_int_equal(option_value(OPTION_NARENAS), 63);
    options_parse("narenas:0xFA", SOURCE);
    assert_int_equal(option_value(OPTION_NARENAS), 250);
    options_parse("narenas:010", SOURCE);
    assert_int_equal(option_value(OPTION_NARENAS), 8);
    options_parse("dirty_decay_ms:-1", SOURCE);
    assert_true(option_decay_ms() == -1);
    assert_string_equal(fake_error_text(), "");
}

/* As strtoumax reads them, which jemalloc does. */
static void blanks_and_a_sign_may_stand_before_a_number(void **state)
{
    (void)state;
    options_parse("narenas:+7", SOURCE);
    assert_int_equal(option_value(OPTION_NARENAS), 7);
    options_parse("narenas: \t\n\v\f\r0x10", SOURCE);
    assert_int_equal(option_value(OPTION_NARENAS), 16);
    options_parse("dirty_decay_ms: -1", SOURCE);
    assert_true(option_decay_ms() == -1);
    options_parse("dirty_decay_ms:  +12", SOURCE);
    assert_true(option_decay_ms() == 12);
    options_parse("lg_tcache_max: +12", SOURCE);
    assert_int_equal(option_value(OPTION_TCACHE_MAX), 4096);
    options_parse("lg_tcache_max:-0", SOURCE);
    assert_int_equal(option_value(OPTION_TCACHE_MAX), 1);
    options_parse("lg_tcache_max:-1", SOURCE);
    assert_true(option_value(OPTION_TCACHE_MAX) > SIZE_MAX / 8);
    options_parse("lg_tcache_max:0,lg_tcache_max:18446744073709551615", SOURCE);
    assert_true(option_value(OPTION_TCACHE_MAX) > SIZE_MAX / 8);
    assert_string_equal(fake_error_text(), "");
}

static void expect_complaint(const char *pair, const char *line_start)
{
    char line[300];
    uint64_t before[OPTION_COUNT];

    snprintf(line, sizeof line, "%s%s (" SOURCE ")\n", line_start, pair);
    memcpy(before, option_values, sizeof before);
    fake_error_clear();
    options_parse(pair, SOURCE);
    assert_string_equal(fake_error_text(), line);
    assert_memory_equal(before, option_values, sizeof before);
}

static void bad_pairs_are_said_and_change_nothing(void **state)
{
    static const char *const unknown[] = {
        "narenas",    ":",          ":1",          "Narenas:1",        "narena:1",
        "narenass:1", " narenas:1", "stats_print", "no such option:1", "experimental_no_such:1",
    };
    static const char *const not_values[] = {
        "narenas:",
        "narenas:x",
        "narenas:1x",
        "narenas:+",
        "narenas: ",
        "narenas:+-1",
        "narenas:- 1",
        "narenas:1 ",
        "narenas:1+",
        "lg_tcache_max:",
        "lg_tcache_max:+",
        "narenas:true",
        "narenas:1:2",
        "narenas:0x",
        "narenas:08",
        "narenas:-",
        "tcache:1",
        "tcache:TRUE",
        "tcache:",
        "tcache:true ",
        "junk:maybe",
        "junk:",
        "percpu_arena:",
        "thp:not supported",
        "dss:N/A",
        "zero_realloc:0",
        "narenas:18446744073709551616",
        "narenas:99999999999999999999999",
    };
    static const char *const out_of_range[] = {
        "guard_cells:-1", "dirty_decay_ms:-2",     "guard_cells:257",    "lg_prof_interval:64",
        "guard_cells:-0", "oversize_threshold:-1", "guard_interval: -1",
    };

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(unknown); i++) expect_complaint(unknown[i], PAIR_LINE);
    for (unsigned i = 0; i < ARRAY_COUNT(not_values); i++)
        expect_complaint(not_values[i], VALUE_LINE);
    for (unsigned i = 0; i < ARRAY_COUNT(out_of_range); i++)
        expect_complaint(out_of_range[i], RANGE_LINE);
}

static void a_bad_pair_does_not_stop_the_good_ones(void **state)
{
    (void)state;
    options_parse("narenas:5,bad:1,xmalloc:true", SOURCE);
    assert_int_equal(option_value(OPTION_NARENAS), 5);
    assert_true(option_is_set(OPTION_XMALLOC));
    assert_string_equal(fake_error_text(), PAIR_LINE "bad:1 (" SOURCE ")\n");
    options_finish(); /* without abort_conf it says nothing */
}

static void finish_after_a_bad_pair(void) { options_finish(); }

static void finish_after_a_forgiven_pair(void)
{
    options_parse("abort_conf:true,narenas:2", SOURCE);
    options_finish();
}

static void abort_conf_aborts(void **state)
{
    (void)state;
    options_parse_first("bad:1,abort_conf:true");
    assert_true(option_is_set(OPTION_ABORT_CONF));
    option_values[OPTION_ABORT_CONF] = 0;
    expect_survival(finish_after_a_forgiven_pair);
    options_parse("bad:1,abort_conf:true", SOURCE);
    expect_abort(finish_after_a_bad_pair, "prairie: abort_conf:true, ");
}

static void experiments_are_forgiven(void **state)
{
    (void)state;
    options_parse("abort_conf:true,experimental_no_such:1", SOURCE);
    assert_string_equal(fake_error_text(), PAIR_LINE "experimental_no_such:1 (" SOURCE ")\n");
    options_finish();
}

static void confirm_conf_tells_what_counts(void **state)
{
    (void)state;
    options_parse_first("narenas:5,confirm_conf:true");
    options_parse("narenas:5,confirm_conf:true", SOURCE);
    assert_string_equal(fake_error_text(),
                        "prairie: -- Set conf value: narenas:5 (" SOURCE ")\n"
                        "prairie: -- Set conf value: confirm_conf:true (" SOURCE ")\n");
}

/* prairie's own variable asks for its own form. */
static void the_source_decides_the_form_of_statistics(void **state)
{
    (void)state;
    options_parse("stats_print:true", "PRAIRIE_CONF");
    assert_int_equal(option_value(OPTION_STATS_PRINT), STATS_PRINTED_SHORT);
    options_parse("stats_print:true", "PG_MALLOC_CONF");
    assert_int_equal(option_value(OPTION_STATS_PRINT), STATS_PRINTED);
    options_parse("stats_print:true", SOURCE);
    assert_int_equal(option_value(OPTION_STATS_PRINT), STATS_PRINTED);
}

static void what_an_option_was_at_first_is_kept(void **state)
{
    (void)state;
    options_parse("dirty_decay_ms:7", SOURCE);
    option_set(OPTION_DIRTY_DECAY_MS, 8);
    option_set(OPTION_DIRTY_DECAY_MS, 9);
    assert_int_equal(option_value(OPTION_DIRTY_DECAY_MS), 9);
    assert_int_equal(option_value_at_start(OPTION_DIRTY_DECAY_MS), 7);
    assert_int_equal(option_value_at_start(OPTION_NARENAS), 0);
}

/* The largest number that fits is a number; it is refused for its limit, not misread. */
static void numbers_are_read_without_overflow(void **state)
{
    static const char *const digits[] = { "0", "1", "9", "10", "18446744073709551615" };
    static const uint64_t values[] = { 0, 1, 9, 10, UINT64_MAX };
    uint64_t value;

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(digits); i++) {
        assert_true(inside_parse_number(digits[i], &value));
        assert_true(value == values[i]);
    }
    assert_false(inside_parse_number("18446744073709551616", &value));
    assert_false(inside_parse_number("28446744073709551615", &value));
    assert_false(inside_parse_number("184467440737095516150", &value));
    assert_false(inside_parse_number("", &value));
}

/* A pair that is longer than the line is cut, and still ends with a newline. */
static void a_long_bad_pair_is_cut(void **state)
{
    char text[1000];

    (void)state;
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    options_parse(text, SOURCE);
    assert_true(strlen(fake_error_text()) <= 240);
    assert_memory_equal(fake_error_text(), PAIR_LINE "xxxx", strlen(PAIR_LINE) + 4);
    assert_int_equal(fake_error_text()[strlen(fake_error_text()) - 1], '\n');
    assert_int_equal(fake_calls(FAKE_WRITE), 1);
}

static void a_text_that_is_too_long_is_refused(void **state)
{
    char text[5000] = "prof_prefix:";

    (void)state;
    memset(text + strlen(text), 'x', sizeof text - 1 - strlen(text));
    options_parse(text, SOURCE);
    assert_memory_equal(fake_error_text(), RANGE_LINE, strlen(RANGE_LINE));
    assert_string_equal(option_text(OPTION_PROF_PREFIX), "jeprof");
}

UNIT_MAIN(UNIT_TEST(defaults_are_those_of_the_list), UNIT_TEST(every_row_is_whole),
          UNIT_TEST(every_number_takes_its_limits), UNIT_TEST(every_word_is_taken),
          UNIT_TEST(fractions_are_read), UNIT_TEST(several_pairs_in_one_text),
          UNIT_TEST(a_background_thread_may_run_that_nobody_asked_for),
          UNIT_TEST(what_was_asked_for_outlasts_changes), UNIT_TEST(other_names_are_understood),
          UNIT_TEST(numbers_are_written_as_in_c),
          UNIT_TEST(blanks_and_a_sign_may_stand_before_a_number),
          UNIT_TEST(bad_pairs_are_said_and_change_nothing),
          UNIT_TEST(a_bad_pair_does_not_stop_the_good_ones), UNIT_TEST(abort_conf_aborts),
          UNIT_TEST(experiments_are_forgiven), UNIT_TEST(confirm_conf_tells_what_counts),
          UNIT_TEST(the_source_decides_the_form_of_statistics),
          UNIT_TEST(what_an_option_was_at_first_is_kept),
          UNIT_TEST(numbers_are_read_without_overflow), UNIT_TEST(a_long_bad_pair_is_cut),
          UNIT_TEST(a_text_that_is_too_long_is_refused))
