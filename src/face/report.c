/* report.c - a small buffer, and what is written into it.
 * SPDX-License-Identifier: MIT
 */
#include "report.h"

enum { DIGITS_MAX = 21 };

void report_flush(struct report *report)
{
    report->text[report->used] = '\0';
    if (report->used != 0) report->write(report->context, report->text);
    report->used = 0;
}

static void put_letter(struct report *report, char letter)
{
    if (report->used == sizeof report->text - 1) report_flush(report);
    report->text[report->used++] = letter;
}

void report_text(struct report *report, const char *text)
{
    while (*text != '\0') put_letter(report, *text++);
}

/* `digits` has room for DIGITS_MAX. */
static const char *digits_of(uint64_t number, char *digits)
{
    size_t at = DIGITS_MAX - 1;

    digits[at] = '\0';
    do digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    return digits + at;
}

void report_number(struct report *report, uint64_t number)
{
    char digits[DIGITS_MAX];

    report_text(report, digits_of(number, digits));
}

void report_signed(struct report *report, int64_t number)
{
    if (number < 0) put_letter(report, '-');
    report_number(report, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

static void put_escaped(struct report *report, unsigned char letter)
{
    static const char hex[] = "0123456789abcdef";

    report_text(report, "\\u00");
    put_letter(report, hex[letter >> 4]);
    put_letter(report, hex[letter & 15]);
}

void report_quoted(struct report *report, const char *text)
{
    put_letter(report, '"');
    for (; text != NULL && *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\')
            put_escaped(report, (unsigned char)*text);
        else put_letter(report, *text);
    }
    put_letter(report, '"');
}

void report_column(struct report *report, const char *text, int columns)
{
    int length = (int)__builtin_strlen(text);

    for (int i = length; i < columns; i++) put_letter(report, ' ');
    report_text(report, text);
    for (int i = length; i < -columns; i++) put_letter(report, ' ');
}

void report_number_column(struct report *report, uint64_t number, int columns)
{
    char digits[DIGITS_MAX];

    report_column(report, digits_of(number, digits), columns);
}

/* ---- JSON ---- */

void report_key(struct report *report, const char *key)
{
    if (report->follows) put_letter(report, ',');
    report->follows = true;
    if (key == NULL) return;
    report_quoted(report, key);
    put_letter(report, ':');
}

void report_open(struct report *report, const char *key, char bracket)
{
    report_key(report, key);
    put_letter(report, bracket);
    report->follows = false;
}

void report_close(struct report *report, char bracket)
{
    put_letter(report, bracket);
    report->follows = true;
}

void report_member(struct report *report, const char *key, uint64_t number)
{
    report_key(report, key);
    report_number(report, number);
}
