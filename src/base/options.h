/* options.h - the few things a user may set.
 *
 * Read once, before main, from PRAIRIE_CONF="key:value,key:value". One row of the table in options.c is
 * the option, its default, its limits and the sentence that users read. A bad pair is said on stderr
 * and ignored.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_BASE_OPTIONS_H
#define PRAIRIE_BASE_OPTIONS_H

#include "attrs.h"

enum option { OPTION_STATS_PRINT, OPTION_HELPER_THREAD, OPTION_ARENAS, OPTION_COUNT };

struct option_row {
    const char *name;
    bool is_bool;
    uint64_t default_value, least, most;
    const char *sentence;
};

extern PRIVATE const struct option_row option_rows[OPTION_COUNT];
extern PRIVATE uint64_t option_values[OPTION_COUNT]; /* written before main */

/* `text` may be NULL. */
void options_parse(const char *text);

INLINE bool option_stats_print(void) { return option_values[OPTION_STATS_PRINT] != 0; }
INLINE bool option_helper_thread(void) { return option_values[OPTION_HELPER_THREAD] != 0; }
INLINE unsigned option_arenas(void) { return (unsigned)option_values[OPTION_ARENAS]; }

#endif
