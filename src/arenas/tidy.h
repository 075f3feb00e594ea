/* tidy.h - who gives memory back, and when.
 *
 * A program with one thread gives back what goes beyond the purge budget at once; and each time the program has
 * shrunk to a half, depots and magazines are emptied and the depots stay closed until it grows again: a few
 * cached blocks hold many slabs open. Only what it keeps because it breathes is left to a helper, which ends
 * as soon as that is gone, and before a fork: both sides of it have one thread.
 *
 * A program with threads gets a helper that looks twice a second: full magazines that nobody took from
 * the depots since its last look go back into their slabs, runs that nobody took from the stocks are returned,
 * then half of the dirty pages that nobody needed go back to the kernel. It ends when there is nothing left
 * to do and nobody has asked for it in ten seconds.
 *
 * The promise: ten seconds after the last free of a burst, nine tenths of it are back with the kernel.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_ARENAS_TIDY_H
#define PRAIRIE_ARENAS_TIDY_H

#include "arena.h"

void tidy_start(void);
/* dirty_decay_ms, oversize_threshold or retain were set: obeys them from now on. Called without a lock. */
void tidy_obey_options(void);
/* With retain:false, gives the right to use the free end of the heap back. Called without a lock. */
void tidy_close_tail(void);

/* What is known of the helper, as of a moment ago. */
struct tidy_numbers {
    bool helper_runs;
    uint64_t looks; /* so far */
    uint64_t look_ms;
};
struct tidy_numbers tidy_numbers(void);
/* How many threads have caches; decides who tidies. */
void tidy_thread_count(unsigned count);
/* After blocks or runs were given back; the caller holds no lock. True: the program has shrunk, and the
 * caller, who is its only thread, should empty its magazines. */
bool tidy_after_return(void);

/* Is so much open, as of a moment ago? */
INLINE_READS_UNLOCKED bool tidy_region_has(size_t bytes) { return plain.open_bytes >= bytes; }

/* The size of the region from which on reclaiming, or a look at limits, is worth a thought; atomic. */
extern PRIVATE size_t tidy_look_at_bytes;
/* The size from which on limits are worth a look; 0: always; atomic. */
extern PRIVATE size_t tidy_watch_at_bytes;
void tidy_watch(size_t open_bytes);
/* Is it time for that, as of a moment ago, or will it be when the region grows by so much? */
INLINE_READS_UNLOCKED bool tidy_should_look(size_t growth)
{
    size_t at = RELAXED_LOAD(tidy_watch_at_bytes);

    return at <= growth || tidy_region_has(at - growth);
}
/* Wants the helper to stay as long as the program has threads: somebody waits for what it may see. */
void tidy_keep_watching(void);
/* Starts a helper that is to stay, when there is none. Called without a lock. */
void tidy_resume_watching(void);

/* Before the region opens further: cached blocks, scattered over slabs that are otherwise free, may hold more
 * memory than is wanted. Could emptying the depots be worth it, as of a moment ago? */
INLINE_READS_UNLOCKED bool tidy_could_reclaim(void)
{
    return tidy_region_has(RELAXED_LOAD(tidy_look_at_bytes));
}
/* Empties them when it is. True: the caller should empty its own magazines too. Called without a lock. */
bool tidy_reclaim(void);

/* Before memory is refused: gives back what arenas keep though nobody holds it. */
void tidy_before_refusal(void);

/* Before the locks of a fork are taken, whatever the thread holds: a program of one thread is to have no helper then.
 * True: there is none that could be in the middle of anything. */
bool tidy_before_fork(void);
/* For fork and for walks. */
void tidy_each_lock(void (*visit)(struct lock *lock));
/* In the child of a fork: the helper is not there. */
void tidy_forget_thread(void);

#endif
