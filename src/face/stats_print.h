/* stats_print.h - the statistics as text and JSON, in the words and sections of jemalloc's.
 *
 * What prairie has no number for is 0 where scripts expect a key: requests one by one, owners of
 * locks and the times they were waited for.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_FACE_STATS_PRINT_H
#define PRAIRIE_FACE_STATS_PRINT_H

#include "../view/snapshot.h"
#include "report.h"

/* What somebody wants to see. */
struct stats_wish {
    bool json, general, merged, destroyed, each_arena, bins, large, mutexes, extents;
};

/* Takes a snapshot and hands the text out in pieces that end with a NUL. `write` NULL:
 * malloc_message, or the standard error. `letters`, which may be NULL: J for JSON; each of g m d a
 * b l x e leaves something out. So does h elsewhere: huge pages' shards, which there are none
 * of. */
void malloc_stats_print(void (*write)(void *context, const char *text), void *context,
                        const char *letters);

/* A member of an object, or a line of text. */
void stats_number(struct report *report, const char *key, const char *line, uint64_t number);

/* Version, build, options, sizes. */
void stats_print_general(struct report *report);
/* In the place of an arena's number: sums of all, and of those that were destroyed. */
enum { STATS_MERGED = -1, STATS_DESTROYED = -2 };
/* `numbers` tells about the locks that the first arena and the sums of all show. */
void stats_print_arena(struct report *report, const struct stats_wish *wish,
                       const struct snapshot *numbers, const struct snapshot_arena *arena,
                       int index);
void stats_print_bins(struct report *report, const struct stats_wish *wish,
                      const struct snapshot_arena *arena, uint64_t seconds);
void stats_print_bin_members(struct report *report, const struct stats_wish *wish,
                             const struct snapshot_arena *arena);
/* Large blocks and free runs. */
void stats_print_lengths(struct report *report, const struct stats_wish *wish, int index);

/* The columns of locks, without what begins the line, and members of the same. `lock` NULL: nothing
 * is known of it. */
void stats_print_lock_titles(struct report *report);
void stats_print_lock_columns(struct report *report, const struct lock_numbers *lock,
                              uint64_t seconds);
void stats_print_lock_members(struct report *report, const char *key,
                              const struct lock_numbers *lock);
/* A table of locks, or an object. */
struct stats_lock {
    char name[20];
    const struct lock_numbers *lock; /* NULL: there is none */
};
void stats_print_locks(struct report *report, const struct stats_lock *locks, unsigned count,
                       uint64_t seconds);

/* Per second; 0 in the first one. */
INLINE uint64_t stats_rate(uint64_t number, uint64_t seconds)
{
    return seconds == 0 ? 0 : number / seconds;
}

/* Only what was taken is counted; what came back is what is not out. */
INLINE uint64_t stats_given_of(const struct snapshot_class *of_class)
{
    return of_class->blocks_taken - of_class->blocks - of_class->cached_of_arena;
}

#endif
