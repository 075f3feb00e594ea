/* library.h - what unit tests know of the library: its headers, and a few things that are static in
 * it. */
/* SPDX-License-Identifier: MIT */
/*
 * library.c is compiled once for each flavour, and every unit test is linked with it. A test
 * includes this first; the headers of the control tree (control/) and those that one file of src/
 * alone includes it takes itself.
 */
#ifndef PRAIRIE_TEST_UNIT_LIBRARY_H
#define PRAIRIE_TEST_UNIT_LIBRARY_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "interleave.h"
#include "kernel/fake.h"

#include "arenas/arena_set.h"
#include "arenas/decay.h"
#include "arenas/extents.h"
#include "arenas/magazine.h"
#include "arenas/manual.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/constants.h"
#include "base/fatal.h"
#include "base/lock.h"
#include "base/options.h"
#include "base/port.h"
#include "base/units.h"
#include "cache/cache.h"
#include "cache/cache_list.h"
#include "cache/counting.h"
#include "cache/explicit_cache.h"
#include "cache/front.h"
#include "cache/growth.h"
#include "cache/large_cache.h"
#include "cache/sampler.h"
#include "cache/thread.h"
#include "guard/fill.h"
#include "sample/sample.h"
#include "sample/sampling.h"
#include "sample/unwind.h"
#include "heap/doors.h"
#include "heap/extended.h"
#include "heap/heap.h"
#include "heap/large.h"
#include "heap/misuse.h"
#include "heap/notify.h"
#include "heap/placed.h"
#include "heap/sampled.h"
#include "heap/shortage.h"
#include "heap/slow.h"
#include "heap/vast.h"
#include "os/os.h"
#include "os/thread_slot.h"
#include "page_heap/huge.h"
#include "page_heap/page_heap.h"
#include "page_heap/supplied.h"
#include "policy/limits.h"
#include "policy/purge.h"
#include "policy/reserve.h"
#include "slabs/size_class.h"
#include "slabs/slab.h"
#include "space/commit.h"
#include "space/foreign.h"
#include "space/meta.h"
#include "space/page_map.h"
#include "space/space.h"
#include "profile/profile.h"
#include "profile/profile_out.h"
#include "profile/profile_snapshot.h"
#include "view/snapshot.h"
#include "view/stats.h"

/* ---- static functions of src/, under a second name ---- */

/* base/options.c */
bool inside_parse_number(const char *text, uint64_t *value);
/* pages */
size_t inside_room_of(const struct region *region);
bool inside_add_run(size_t pages, bool dirty_only);
void inside_change_begins(void);
void inside_change_ends(void);
bool inside_expect_bytes(size_t bytes);
void inside_give_up(size_t bytes);
void inside_hide_block(uint32_t page, size_t bytes);
void inside_show_block(uint32_t page, struct os_range range, size_t came);
/* arenas */
size_t inside_full_bytes(unsigned class_index);
unsigned inside_full_max(unsigned class_index);
void inside_swing_out(struct swing *swing, size_t bytes);
void inside_swing_back(struct swing *swing, size_t bytes);
bool inside_is_in_order(void *const *blocks, unsigned count, size_t block_bytes);
bool inside_want_background(void);
bool inside_background_may_end(void);
/* cache */
void **inside_first_slots_of(struct cache *cache, unsigned class_index);
unsigned inside_first_capacity(unsigned class_index);
double inside_exponential(uint64_t *state);
/* heap */
size_t inside_table_bytes_of(size_t size, size_t align);
void inside_each_lock(void (*visit)(struct lock *lock), enum lock_walk walk);
/* guard */
uint32_t *inside_report_turn(void);  /* 1: a report is being written */
uintptr_t *inside_pool_opener(void); /* the mark of the thread that opens the pool */
/* profile */
void inside_sort_words(uintptr_t *word, size_t count);
bool inside_report_leaks(const struct profile_snapshot *snapshot);

/* ---- static variables and types ---- */

/* This thread, of any rank. */
bool inside_holds_no_lock(void);
const void *inside_forking_thread(void);

/* Address space that the smallest layout takes which is tried. */
size_t inside_least_reservation(void);

/* Places of foreign extents: in use; records of all of them in bytes; the last version before 0;
 * those for `pages` pages look as if they were in use. */
uint32_t inside_places_used(void);
size_t inside_places_bytes(void);
void inside_set_last_version(void);
uint32_t inside_version(void); /* of the foreign extents */
void inside_forget_unused_places(size_t pages);

/* What arenas/decay.c notes of the background thread. */
bool inside_background_runs(void);
void inside_tell_background_to_end(void);
void inside_set_background_runs(bool runs);
void inside_set_background_asked(bool asked);
bool inside_background_asked(void);
const void *inside_background_wish(void); /* the word that says so */
void inside_let_background_end(void);
bool inside_is_alone(void); /* the program has one thread, as far as is known there */
uint32_t inside_threads_with_caches(void);

/* A thread's cache becomes a sampled one while others are being made. */
void inside_sample_this_thread(struct cache *fresh);

/* The last listener was never numbered; the first one has the second one's number. */
void inside_forget_newest_listener(void);
void inside_number_two_listeners_alike(void);

/* Of the pool of guarded blocks. */
extern unsigned *const inside_pool_held, *const inside_pool_held_max, *const inside_pool_freed;
extern uint16_t *const inside_pool_queue; /* from the first freed cell on, in a pool that is new */

extern const unsigned inside_closed_max, inside_strangers_before_first,
    inside_purge_refused_calls_max, inside_runs_per_hold, inside_quiet_looks_max,
    inside_background_refused_ms, inside_rights_ms, inside_watched_frees, inside_lock_waits_max,
    inside_turn_waits_max, inside_turn_wait_ms;
extern const size_t inside_records_bytes_min;

#endif
