/* options_test.c - what PRAIRIE_CONF may say, and what is said about the rest. */
/* SPDX-License-Identifier: MIT */
#include "prairie.c"

#include "unit.h"

#define COMPLAINT "prairie: PRAIRIE_CONF: bad pair: "

static void defaults_are_those_of_the_table(void **state)
{
    (void)state;
    for (unsigned i = 0; i < OPTION_COUNT; i++)
        assert_int_equal(option_values[i], option_rows[i].default_value);
    options_parse(NULL);
    options_parse("");
    for (unsigned i = 0; i < OPTION_COUNT; i++)
        assert_int_equal(option_values[i], option_rows[i].default_value);
    assert_string_equal(fake_error_text(), "");
}

static void every_row_is_whole(void **state)
{
    (void)state;
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_rows[i];
        assert_non_null(row->name);
        assert_true(strlen(row->sentence) > 10);
        assert_true(row->least <= row->default_value && row->default_value <= row->most);
        if (row->is_bool) assert_true(row->least == 0 && row->most == 1);
        for (unsigned j = 0; j < i; j++) assert_string_not_equal(row->name, option_rows[j].name);
    }
}

static void set_by_name(const struct option_row *row, const char *value)
{
    char text[200];

    snprintf(text, sizeof text, "%s:%s", row->name, value);
    options_parse(text);
}

static void every_option_takes_its_limits(void **state)
{
    char value[32];

    (void)state;
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_rows[i];
        if (row->is_bool) {
            set_by_name(row, "true");
            assert_int_equal(option_values[i], 1);
            set_by_name(row, "false");
            assert_int_equal(option_values[i], 0);
            continue;
        }
        snprintf(value, sizeof value, "%llu", (unsigned long long)row->most);
        set_by_name(row, value);
        assert_int_equal(option_values[i], row->most);
        snprintf(value, sizeof value, "%llu", (unsigned long long)row->least);
        set_by_name(row, value);
        assert_int_equal(option_values[i], row->least);
    }
    assert_string_equal(fake_error_text(), "");
}

static void several_pairs_in_one_text(void **state)
{
    (void)state;
    options_parse("stats_print:true,arenas:7,helper_thread:false");
    assert_true(option_stats_print());
    assert_int_equal(option_arenas(), 7);
    assert_false(option_helper_thread());
    options_parse(",,arenas:8,,arenas:9,"); /* empty pairs are nothing; the last one counts */
    assert_int_equal(option_arenas(), 9);
    assert_string_equal(fake_error_text(), "");
}

static void expect_complaint(const char *text, const char *pair)
{
    char line[300];
    uint64_t before[OPTION_COUNT];

    snprintf(line, sizeof line, COMPLAINT "%s\n", pair);
    memcpy(before, option_values, sizeof before);
    fake_error_clear();
    options_parse(text);
    assert_string_equal(fake_error_text(), line);
    assert_memory_equal(before, option_values, sizeof before);
}

static void bad_pairs_are_said_and_change_nothing(void **state)
{
    static const char *const bad[] = {
        "arenas",
        "arenas:",
        ":",
        ":1",
        "arenas:x",
        "arenas:1x",
        "arenas:-1",
        "arenas:+1",
        "arenas: 1",
        "arenas:257",
        "arenas:18446744073709551616",
        "arenas:99999999999999999999999",
        "arenas:true",
        "stats_print:1",
        "stats_print:TRUE",
        "stats_print:",
        "stats_print:true ",
        "Arenas:1",
        "arena:1",
        "arenass:1",
        " arenas:1",
        "no such option:1",
        "arenas:1:2",
    };

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(bad); i++) expect_complaint(bad[i], bad[i]);
}

static void a_bad_pair_does_not_stop_the_good_ones(void **state)
{
    (void)state;
    options_parse("arenas:5,bad:1,stats_print:true");
    assert_int_equal(option_arenas(), 5);
    assert_true(option_stats_print());
    assert_string_equal(fake_error_text(), COMPLAINT "bad:1\n");
}

/* The largest number that fits is a number; it is refused for its limit, not misread. */
static void numbers_are_read_without_overflow(void **state)
{
    static const char *const digits[] = { "0", "1", "9", "10", "18446744073709551615" };
    static const uint64_t values[] = { 0, 1, 9, 10, UINT64_MAX };
    uint64_t value;

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(digits); i++) {
        assert_true(parse_number((struct text){ digits[i], strlen(digits[i]) }, &value));
        assert_true(value == values[i]);
    }
    assert_false(parse_number((struct text){ "18446744073709551616", 20 }, &value));
    assert_false(parse_number((struct text){ "28446744073709551615", 20 }, &value));
    assert_false(parse_number((struct text){ "184467440737095516150", 21 }, &value));
    assert_false(parse_number((struct text){ "", 0 }, &value));
}

/* A pair that is longer than the line is cut, and still ends with a newline. */
static void a_long_bad_pair_is_cut(void **state)
{
    char text[1000];

    (void)state;
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    options_parse(text);
    assert_true(strlen(fake_error_text()) <= 160);
    assert_memory_equal(fake_error_text(), COMPLAINT "xxxx", strlen(COMPLAINT) + 4);
    assert_int_equal(fake_error_text()[strlen(fake_error_text()) - 1], '\n');
    assert_int_equal(fake_calls(FAKE_WRITE), 1);
}

UNIT_MAIN(UNIT_TEST(defaults_are_those_of_the_table), UNIT_TEST(every_row_is_whole),
          UNIT_TEST(every_option_takes_its_limits), UNIT_TEST(several_pairs_in_one_text),
          UNIT_TEST(bad_pairs_are_said_and_change_nothing),
          UNIT_TEST(a_bad_pair_does_not_stop_the_good_ones),
          UNIT_TEST(numbers_are_read_without_overflow), UNIT_TEST(a_long_bad_pair_is_cut))
