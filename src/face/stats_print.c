/* stats_print.c - the statistics as text and JSON, in the words and sections of jemalloc's.
 * SPDX-License-Identifier: MIT
 */
#include "stats_print.h"

#include "../view/stats.h"

#include "../base/port.h"

PUBLIC void (*malloc_message)(void *context, const char *text);

PUBLIC void malloc_stats_print(void (*write)(void *context, const char *text), void *context,
                               const char *letters)
{
    (void)write, (void)context, (void)letters;
    prairie_stats_print();
}
