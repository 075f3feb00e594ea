/* report.c - a small buffer, and what is written into it.
 * SPDX-License-Identifier: MIT
 */
#include "report.h"

#include <stdarg.h>

#include "port.h"

void report_to_error(void *unused, const char *text)
{
    (void)unused;
    port_write_error(text, __builtin_strlen(text));
}

const char *report_kept(struct report *report)
{
    report->text[report->used] = '\0';
    return report->text;
}

void report_flush(struct report *report)
{
    if (report->used != 0) report->write(report->context, report_kept(report));
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

static const char *digits_of(uint64_t number, unsigned base, char *digits)
{
    size_t at = REPORT_DIGITS - 1;

    digits[at] = '\0';
    do digits[--at] = "0123456789abcdef"[number % base];
    while ((number /= base) != 0);
    return digits + at;
}

const char *report_digits(uint64_t number, char *digits) { return digits_of(number, 10, digits); }

void report_number(struct report *report, uint64_t number)
{
    char digits[REPORT_DIGITS];

    report_text(report, digits_of(number, 10, digits));
}

void report_signed(struct report *report, int64_t number)
{
    if (number < 0) put_letter(report, '-');
    report_number(report, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void report_quoted(struct report *report, const char *text)
{
    char digits[REPORT_DIGITS];

    put_letter(report, '"');
    for (; text != NULL && *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\') {
            report_text(report, (unsigned char)*text < 16 ? "\\u000" : "\\u00");
            report_text(report, digits_of((unsigned char)*text, 16, digits));
        } else {
            put_letter(report, *text);
        }
    }
    put_letter(report, '"');
}

/* One argument. Returns the last of its letters in the format. */
static const char *put_argument(struct report *report, const char *format, va_list *arguments)
{
    char digits[REPORT_DIGITS];
    int columns = 0, length;
    const char *text;

    if (*format == '*') {
        columns = va_arg(*arguments, int);
        format++;
    }
    while (*format == 'l') format++;
    switch (*format) {
    case 's': text = va_arg(*arguments, const char *); break;
    case 'x': text = digits_of(va_arg(*arguments, uint64_t), 16, digits); break;
    default: text = digits_of(va_arg(*arguments, uint64_t), 10, digits); break;
    }
    length = (int)__builtin_strlen(text);
    for (int i = length; i < columns; i++) put_letter(report, ' ');
    report_text(report, text);
    for (int i = length; i < -columns; i++) put_letter(report, ' ');
    return format;
}

void report_print(struct report *report, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    for (; *format != '\0'; format++) {
        if (*format == '%') format = put_argument(report, format + 1, &arguments);
        else put_letter(report, *format);
    }
    va_end(arguments);
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
