/* report.h - text that goes out in pieces, without allocating: plain lines, columns, and JSON.
 *
 * A piece ends with a NUL and goes to `write` when the buffer is full and at the end. All outputs
 * are written with it: statistics, metrics, profiles in jeprof's format and the names of their
 * files.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_BASE_REPORT_H
#define PRAIRIE_BASE_REPORT_H

#include "attrs.h"

#include <inttypes.h>

struct report {
    void (*write)(void *context, const char *text);
    void *context;
    bool json;
    bool follows; /* JSON: something came before in this object or array */
    size_t used;
    char text[1024];
};

/* For `write`: to the standard error. */
void report_to_error(void *unused, const char *text);

void report_flush(struct report *report);
/* What is in the buffer, for texts that fit it and go nowhere. */
const char *report_kept(struct report *report);
void report_text(struct report *report, const char *text);
void report_number(struct report *report, uint64_t number);
/* Writes the digits to the end of a buffer of REPORT_DIGITS, and returns where they begin. */
enum { REPORT_DIGITS = 21 };
const char *report_digits(uint64_t number, char *digits);
void report_signed(struct report *report, int64_t number);
/* In double quotes, with what JSON forbids inside of them escaped. NULL counts as empty. */
void report_quoted(struct report *report, const char *text);
/* As printf, of which it has %s, PRIu64 and PRIx64, with a width of `*`: against the right side of
 * so many columns, or their left side when the width is negative. */
void report_print(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- JSON; a key of NULL is for members of arrays ---- */

void report_key(struct report *report, const char *key);
void report_open(struct report *report, const char *key, char bracket);
void report_close(struct report *report, char bracket);

#endif
