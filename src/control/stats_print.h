/* stats_print.h - the statistics as text and JSON, in the words and sections of jemalloc's.
 *
 * The numbers are those of figures.h. What prairie has no number for is 0 where scripts expect a
 * key: small requests one by one, and changes of a lock's owner.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CONTROL_STATS_PRINT_H
#define PRAIRIE_CONTROL_STATS_PRINT_H

#include "../base/report.h"
#include "figures.h"

/* Each of these letters leaves something out; J is for JSON. */
INLINE bool stats_wanted(const char *letters, char letter)
{
    return __builtin_strchr(letters, letter) == NULL;
}

/* Takes a snapshot and hands the text out in pieces that end with a NUL. `write` NULL:
 * malloc_message, or the standard error. `letters`, which may be NULL: J for JSON; each of g m d a
 * b l x e leaves something out. So does h elsewhere: huge pages' shards, which there are none
 * of. */
void malloc_stats_print(void (*write)(void *context, const char *text), void *context,
                        const char *letters);

/* Version, build, options, sizes. */
void stats_print_general(struct report *report, struct figures *figures);
/* The arena that the figures are of; `index` as in figures_of_arena. */
void stats_print_arena(struct report *report, const char *letters, struct figures *figures,
                       unsigned index);

/* ---- JSON ---- */

/* The members of the scopes from the first to the last, in the order of the table. */
void stats_members(struct report *report, const struct figures *figures, enum figure_scope first,
                   enum figure_scope last);
/* An array with an object for each index below `end`. */
void stats_array(struct report *report, struct figures *figures, const char *key,
                 enum figure_scope scope, unsigned end, bool with_lock);
void stats_value(struct report *report, unsigned type, union control_value value);

/* ---- locks, as a table or an object ---- */

struct stats_lock {
    char name[20];
    uint16_t place; /* NOWHERE: there is none */
};
void stats_print_locks(struct report *report, struct figures *figures,
                       const struct stats_lock *locks, unsigned count);

#endif
