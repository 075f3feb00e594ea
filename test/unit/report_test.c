/* report_test.c - text that goes out in pieces: nothing is lost, columns align, JSON stays JSON. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

static struct {
    char text[8192];
    size_t used;
    unsigned pieces;
} paper;

static void write_on_paper(void *context, const char *text)
{
    size_t length = strlen(text);

    assert_ptr_equal(context, &paper);
    assert_true(length > 0 && length < sizeof((struct report *)NULL)->text);
    assert_true(paper.used + length < sizeof paper.text);
    memcpy(paper.text + paper.used, text, length + 1);
    paper.used += length;
    paper.pieces++;
}

static struct report new_report(void)
{
    memset(&paper, 0, sizeof paper);
    return (struct report){ .write = write_on_paper, .context = &paper };
}

static void expect_text(struct report *report, const char *text)
{
    report_flush(report);
    assert_string_equal(paper.text, text);
    *report = new_report();
}

/* ---- pieces ---- */

static void long_texts_arrive_whole(void **state)
{
    static char text[5000];
    struct report report = new_report();
    const size_t room = sizeof report.text - 1;

    (void)state;
    for (size_t i = 0; i < sizeof text - 1; i++) text[i] = (char)('a' + i % 26);
    report_text(&report, text);
    assert_int_equal(paper.pieces, (sizeof text - 2) / room);
    report_flush(&report);
    assert_int_equal(paper.pieces, (sizeof text - 2) / room + 1);
    assert_string_equal(paper.text, text);
}

/* A buffer that is just full goes out once, and nothing follows it. */
static void a_full_buffer_is_one_piece(void **state)
{
    struct report report = new_report();

    (void)state;
    for (size_t i = 0; i < sizeof report.text - 1; i++) report_text(&report, "x");
    assert_int_equal(paper.pieces, 0);
    report_flush(&report);
    report_flush(&report);
    assert_int_equal(paper.pieces, 1);
    assert_int_equal(paper.used, sizeof report.text - 1);
}

static void nothing_is_not_written(void **state)
{
    struct report report = new_report();

    (void)state;
    report_text(&report, "");
    report_flush(&report);
    assert_int_equal(paper.pieces, 0);
}

static void what_is_kept_goes_nowhere(void **state)
{
    struct report report = { .used = 0 };

    (void)state;
    assert_string_equal(report_kept(&report), "");
    report_text(&report, "arena ");
    report_number(&report, 7);
    assert_string_equal(report_kept(&report), "arena 7");
    report_text(&report, "!");
    assert_string_equal(report_kept(&report), "arena 7!");
}

/* ---- numbers and columns ---- */

static void numbers_are_decimal(void **state)
{
    struct report report = new_report();

    (void)state;
    report_number(&report, 0);
    report_text(&report, " ");
    report_number(&report, 9);
    report_text(&report, " ");
    report_number(&report, 10);
    report_text(&report, " ");
    report_number(&report, UINT64_MAX);
    expect_text(&report, "0 9 10 18446744073709551615");
    report_signed(&report, 0);
    report_text(&report, " ");
    report_signed(&report, -1);
    report_text(&report, " ");
    report_signed(&report, INT64_MAX);
    report_text(&report, " ");
    report_signed(&report, INT64_MIN);
    expect_text(&report, "0 -1 9223372036854775807 -9223372036854775808");
    report_print(&report, "0x%" PRIx64, (uint64_t)0);
    report_text(&report, " ");
    report_print(&report, "0x%" PRIx64, (uint64_t)0x1f0);
    report_text(&report, " ");
    report_print(&report, "0x%" PRIx64, (uint64_t)UINT64_MAX);
    expect_text(&report, "0x0 0x1f0 0xffffffffffffffff");
}

static void columns_lean_right_or_left(void **state)
{
    struct report report = new_report();

    (void)state;
    report_print(&report, "%*s", 5, "abc");
    report_text(&report, "|");
    report_print(&report, "%*s", -5, "abc");
    report_text(&report, "|");
    report_print(&report, "%*s", 2, "");
    report_text(&report, "|");
    report_print(&report, "%*" PRIu64, 4, (uint64_t)42);
    report_text(&report, "|");
    expect_text(&report, "  abc|abc  |  |  42|");
}

/* What is too long for its column is shown all the same. */
static void columns_cut_nothing(void **state)
{
    struct report report = new_report();

    (void)state;
    report_print(&report, "%*s", 3, "abcdef");
    report_print(&report, "%*s", 3, "ghi");
    report_print(&report, "%*s", -3, "jklm");
    report_print(&report, "%*s", 0, "n");
    report_print(&report, "%*" PRIu64, 2, (uint64_t)12345);
    expect_text(&report, "abcdefghijklmn12345");
}

/* ---- JSON ---- */

static void what_json_forbids_is_escaped(void **state)
{
    struct report report = new_report();

    (void)state;
    report_quoted(&report, "a\"b\\c\n\t\x1f d/\x7f\xc3\xa9");
    expect_text(&report, "\"a\\u0022b\\u005cc\\u000a\\u0009\\u001f d/\x7f\xc3\xa9\"");
    report_quoted(&report, NULL);
    expect_text(&report, "\"\"");
    report_quoted(&report, "");
    expect_text(&report, "\"\"");
}

static void put_member(struct report *report, const char *key, uint64_t number)
{
    report_key(report, key);
    report_number(report, number);
}

/* One comma between two members, at every depth, and none elsewhere. */
static void commas_stand_between_members(void **state)
{
    struct report report = new_report();

    (void)state;
    report_open(&report, NULL, '{');
    put_member(&report, "a", 1);
    report_open(&report, "b", '[');
    report_open(&report, NULL, '{');
    report_close(&report, '}');
    report_open(&report, NULL, '{');
    put_member(&report, "c", 2);
    put_member(&report, "d", 3);
    report_close(&report, '}');
    put_member(&report, NULL, 4);
    report_close(&report, ']');
    report_key(&report, "e");
    report_quoted(&report, "f");
    report_open(&report, "g", '{');
    report_close(&report, '}');
    report_close(&report, '}');
    expect_text(&report, "{\"a\":1,\"b\":[{},{\"c\":2,\"d\":3},4],\"e\":\"f\",\"g\":{}}");
}

UNIT_MAIN(UNIT_TEST(long_texts_arrive_whole), UNIT_TEST(a_full_buffer_is_one_piece),
          UNIT_TEST(nothing_is_not_written), UNIT_TEST(what_is_kept_goes_nowhere),
          UNIT_TEST(numbers_are_decimal), UNIT_TEST(columns_lean_right_or_left),
          UNIT_TEST(columns_cut_nothing), UNIT_TEST(what_json_forbids_is_escaped),
          UNIT_TEST(commas_stand_between_members))
