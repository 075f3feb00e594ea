/* stats_print.h - the statistics as text and JSON, in the words and sections of jemalloc's.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_FACE_STATS_PRINT_H
#define PRAIRIE_FACE_STATS_PRINT_H

/* Takes a snapshot and hands the text out in pieces that end with a NUL. `write` NULL: malloc_message, or the
 * standard error. `letters`, which may be NULL: J for JSON; each of g m d a b l x e h leaves something
 * out. */
void malloc_stats_print(void (*write)(void *context, const char *text), void *context,
                        const char *letters);

#endif
