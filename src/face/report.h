/* report.h - text that goes out in pieces, without allocating: plain lines, columns, and JSON.
 *
 * A piece ends with a NUL and goes to `write` when the buffer is full and at the end.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_FACE_REPORT_H
#define PRAIRIE_FACE_REPORT_H

#include "../base/attrs.h"

struct report {
    void (*write)(void *context, const char *text);
    void *context;
    bool json;
    bool follows; /* JSON: something came before in this object or array */
    size_t used;
    char text[1024];
};

void report_flush(struct report *report);
void report_text(struct report *report, const char *text);
void report_number(struct report *report, uint64_t number);
void report_signed(struct report *report, int64_t number);
/* In double quotes, with what JSON forbids inside of them escaped. NULL counts as empty. */
void report_quoted(struct report *report, const char *text);
/* Against the right side of a column; or the left side, when `columns` is negative. */
void report_column(struct report *report, const char *text, int columns);
void report_number_column(struct report *report, uint64_t number, int columns);

/* ---- JSON; a key of NULL is for members of arrays ---- */

void report_key(struct report *report, const char *key);
void report_open(struct report *report, const char *key, char bracket);
void report_close(struct report *report, char bracket);
void report_member(struct report *report, const char *key, uint64_t number);

#endif
