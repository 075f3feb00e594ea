/* decay.h - who gives memory back, and when (docs/floors/arenas.md has the table).
 *
 * A program with one thread gives back at once, in the call that frees: dirty pages beyond the
 * purge budget, and half of what nobody took from depots since the last time. When it uses half of
 * its peak, its depots and magazines are emptied too, because a few cached blocks hold many slabs
 * open. What it may want again is left to a background thread, which ends before a fork. A program
 * with threads has one that looks twice a second, and ends after ten quiet seconds. Where there may
 * be none, who returns pages does as much in its place.
 *
 * The promise: ten seconds after the last free of a burst, nine tenths of it are back with the
 * kernel.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_ARENAS_DECAY_H
#define PRAIRIE_ARENAS_DECAY_H

#include "../policy/purge.h"
#include "arena_set.h"

void decay_start(void);
/* dirty_decay_ms, oversize_threshold or retain were set: obeys them from now on. Called without a
 * lock. */
void decay_obey_options(void);
/* With retain:false, gives the free end of the heap back; `waits`: also when somebody is at the
 * address space. Called without a lock. */
void decay_close_tail(bool waits);

/* What is known of the background thread, as of a moment ago. */
struct decay_numbers {
    bool background_runs;
    uint64_t looks; /* so far */
    uint64_t look_ms;
};
struct decay_numbers decay_numbers(void);
/* What floors above do at each look; `alone`: at most one thread has a cache, and no lock may be
 * waited for under another (decay_before_fork). True: there may be more to do at the next ones. */
extern PRIVATE bool (*decay_look_above)(bool alone);
/* There will be: starts a background thread, when there is none; with one thread, when there is a
 * second. Called without a lock. */
void decay_expect_sleepers(void);
extern PRIVATE uint64_t decay_looks; /* atomic: statistics, of the background thread so far */
/* How many threads have caches, with one for all that lost theirs asleep; that decides who gives
 * memory back. */
void decay_thread_count(unsigned count);
/* The uncommon part of decay_after_return: more is dirty than may stay, or somebody asked for a
 * look. */
NOINLINE bool decay_excess(void);
/* After blocks or runs were given back; the caller holds no lock. True: the program has shrunk, and
 * the caller should empty its magazines: it is the only thread, or no background thread runs. */
INLINE bool decay_after_return(void)
{
    return unlikely(!purge_is_within_budget()) && decay_excess();
}

/* Is so much open, as of a moment ago? */
INLINE_READS_UNLOCKED bool decay_space_has(size_t bytes) { return space.open_bytes >= bytes; }

/* Sizes of the region, atomic: from which on emptying the depots before growth is worth a thought;
 * from which on limits are worth a look, as limits_look_from tells; and the lesser of the two, from
 * which on large blocks take the careful way. */
extern PRIVATE size_t decay_reclaim_at_bytes, decay_limits_at_bytes, decay_care_at_bytes;
void decay_look_at_limits_from(size_t open_bytes);
/* Is it time for that, as of a moment ago, or will it be when the region grows by so much? */
INLINE_READS_UNLOCKED bool decay_limits_are_due(size_t growth)
{
    size_t at = RELAXED_LOAD(decay_limits_at_bytes);

    return at <= growth || decay_space_has(at - growth);
}
/* The background thread stays while the program has threads: somebody waits for what it sees. */
void decay_keep_looking(void);
/* No longer: it ends as it did before. */
void decay_keep_no_longer(void);
/* A thread begins, or options changed: starts a background thread that is to stay, or for a sleeper
 * that is expected, when there is none. Called without a lock. */
void decay_resume_looking(void);

/* Before the region opens further: cached blocks may hold many slabs open that are otherwise free.
 * Could emptying the depots be worth it, as of a moment ago? */
INLINE_READS_UNLOCKED bool decay_could_reclaim(void)
{
    return decay_space_has(RELAXED_LOAD(decay_reclaim_at_bytes));
}
/* Empties them when it is. True: the caller should empty its own magazines too. Called without a
 * lock. */
bool decay_reclaim(void);

/* Before so many pages are refused, when the caller has emptied its own magazines: gives back what
 * arenas and abandoned caches keep though nobody holds it, and dirty pages when they could be in
 * the way. Called without a lock. */
void decay_before_refusal(size_t pages);

/* Not one of a process that this one began as a copy of. */
NOINLINE bool decay_background_is_there(void);
/* Has the kernel refused no background thread in the last second? */
bool decay_may_ask(void);

/* Before the locks of a fork are taken: a program of one thread ends its background thread. True:
 * no background thread runs; or that one was told to end, and may still run if the time was up
 * (decay_numbers). The program may have other threads. */
bool decay_before_fork(void);
extern PRIVATE struct lock decay_lock; /* the background thread's life */
/* In the child of a fork: the background thread is not there. */
void decay_forget_thread(void);

#endif
