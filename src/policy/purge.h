/* purge.h - giving free pages back to the kernel, on a budget.
 *
 * A first touch of a page costs about 200 malloc/free pairs, and so does touching it again after it
 * was given back; a page that is kept costs memory. So dirty pages are kept on a budget: a small
 * fixed share, and what experience added. When most of what was given back at once is wanted again
 * within two seconds, that amount is added: a program that breathes pays for its first breath only.
 * What slabs had at their peak and have no more may be wanted again, too. More than a little stays
 * only while somebody looks in the background, for the program may never call again: where somebody
 * would come to look, he is asked early.
 *
 * Each page heap has a budget of its own, so that who returns pages looks at no other one. Who
 * purges, and when, is decided in arenas/decay. System calls are made without any lock; pages on
 * their way are nobody's.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_POLICY_PURGE_H
#define PRAIRIE_POLICY_PURGE_H

#include "../page_heap/page_heap.h"
#include "../space/commit.h"

/* What is known of a page heap's need for dirty pages, beside its trigger_pages, up to which nobody
 * need think of purging. Under its lock. */
struct purge {
    bool took_nothing;                     /* the kernel took nothing at the last try */
    size_t peak_pages;                     /* the most in use or dirty; less by a quarter each time
                                              that what went back is not wanted soon */
    size_t bonus_pages;                    /* what regrets added to the budget */
    size_t last_pages;                     /* given back lately, beyond the budget, */
    uint64_t last_ms;                      /* when, */
    uint64_t last_clean_leased;            /* and how many clean pages had been leased then */
    uint64_t purged_pages, calls, regrets; /* statistics; regrets are times that pages were wanted
                                              back soon */
};

extern PRIVATE struct purge purge[PAGE_HEAPS];

/* Who else gives pages back. */
struct purge_mode {
    bool background; /* atomic: somebody gives back later what is not needed */
    bool on_call;    /* atomic: he would, if he was asked */
    bool keeps_none; /* atomic: beyond the soft limit or a group's line no dirty pages may stay */
    bool is_asked;   /* atomic: purge_ask_for_look */
};

extern PRIVATE struct purge_mode purge_mode;

/* All of these are called without a lock. */

/* Are the dirty pages of each page heap, as of a moment ago, no more than may stay? */
bool purge_is_within_live_budget(void);
INLINE bool purge_is_within_budget(void)
{
    return likely(!RELAXED_LOAD(page_heaps_past_trigger)) || purge_is_within_live_budget();
}
/* Gives back what goes beyond the budgets, and learns from the last time; then what huge pages left
 * behind, for which it takes all locks of page heaps at once. */
void purge_beyond_budget(void);
/* The first part of it. */
void purge_dirty_beyond_budget(void);
/* The same as purge_beyond_budget, where purge_is_within_live_budget has found too much. */
void purge_past_triggers(void);
/* Is *stop, which is atomic, not 0? NULL: nobody stops it. */
INLINE bool purge_is_stopped(const uint32_t *stop)
{
    return stop != NULL && RELAXED_LOAD(*stop) != 0;
}
/* Once huge pages are not wanted any more: gives back clean pages beside those that were touched,
 * until *stop, which is atomic, is not 0, or a limit is close; the rest at a later call then. NULL:
 * nobody stops it. Takes all locks of page heaps at once. */
void purge_left_behind(const uint32_t *stop);
/* Instead of purging: the background thread will. Raises trigger_pages of each page heap that is
 * past it. */
void purge_raise_triggers(void);
/* The same for page heaps whose dirty pages fit the budget of the moment; the others keep their
 * trigger. True: all fitted, and what huge pages left behind went back. */
bool purge_raise_triggers_within_budget(void);
/* From now on, or no longer, somebody looks in the background for what is not needed. This and the
 * next may be called with any lock held: a thread that looks at a budget at that moment may go by
 * what was before. */
void purge_set_background(bool runs);
/* Whether somebody would come to look if he was asked. */
void purge_set_on_call(bool comes);
/* Does what may be wanted again ask for such a look? Learns from the last time. */
bool purge_wants_background(void);
/* Is more dirty than may stay without it? Not when the kernel would not take any of it. */
bool purge_needs_background(void);
/* Gives back half of the dirty pages that were not needed at any moment since the last call; until
 * *stop, which is atomic, is not 0. NULL: nobody stops it. Returns pages. */
size_t purge_unneeded(const uint32_t *stop);
/* Starts that span of time anew. */
void purge_begin_unneeded(void);
/* Gives back free runs that are longer than oversize_threshold allows to stay dirty, as far as the
 * bins show them: the highest of them mixes lengths. True: there is such a threshold, and nothing
 * else is to be given back. */
bool purge_oversize(void);
/* dirty_decay_ms, oversize_threshold or the hard limit were set. */
void purge_obey_options(void);
/* Beyond the soft limit or a group's line no dirty pages may stay (policy/limits.c). */
void purge_keep_none(bool none);
/* That, or more is taken than the hard limit allows: pages go back at once, and are not left to a
 * background thread. */
INLINE bool purge_is_urgent(void)
{
    return RELAXED_LOAD(purge_mode.keeps_none) || commit_is_over();
}
/* Gives all dirty pages back. Returns bytes. */
size_t purge_all(void);
/* What went back to the kernel, and was not dirty: out of runs that are in use, or clean. */
struct purge_tally {
    size_t calls, pages;
    size_t more_pages; /* so many more of the page heap's are out than ever before */
};
/* Counts it for that page heap. */
void purge_count_tally(struct page_heap *heap, struct purge_tally tally);
/* Somebody should look, though no more pages are dirty than may stay: purge_is_within_budget is
 * false once. */
void purge_ask_for_look(void);
/* Before so many bytes are refused, after purge_all: waits for pages that other threads have on
 * their way to the kernel, until the hard limit allows as much. Not for long. */
void purge_await_others(size_t bytes);

#endif
