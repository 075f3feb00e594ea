/* stats.h - struct prairie_stats as lines, and the calling thread's totals.
 *
 * Counters are kept where a lock is held anyway, at the granularity of magazines; nothing is
 * counted on the fast path. The public struct is in prairie.h.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_VIEW_STATS_H
#define PRAIRIE_VIEW_STATS_H

#include "../base/report.h"
#include "../heap/heap.h"

/* Each line goes out as soon as it is whole. */
void stats_print_to(const struct prairie_stats *stats, struct report *report);

/* Sees every call of the calling thread from now on. NULL: it holds no blocks, or there is no
 * memory. */
struct counting_front *totals_count_calls(void);

#endif
