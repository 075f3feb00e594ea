/* library.c - the library as unit tests are linked with it: on the fake kernel, without the C
 * library's names. */
/* SPDX-License-Identifier: MIT */
#include "interleave.h"

#include "prairie.c"

/* The control tree and the printed statistics, which belong to those names. */
#include "control/conf.c"
#include "control/control.c"
#include "control/control_arenas.c"
#include "control/control_blocks.c"
#include "control/control_opt.c"
#include "control/control_placed.c"
#include "control/control_prof.c"
#include "control/control_tree.c"
#include "control/figures.c"
#include "control/lengths.c"
#include "control/metrics.c"
#include "control/stats_arena.c"
#include "control/stats_general.c"
#include "control/stats_print.c"

#include "library.h"

/* ---- what happens between two reads ---- */

struct interleaving interleaving;

void interleave(const char *place)
{
    void (*act)(void) = interleaving.act;

    if (act == NULL || __builtin_strcmp(place, interleaving.place) != 0) return;
    if (interleaving.skip > 0) {
        interleaving.skip--;
        return;
    }
    interleaving.act = NULL;
    act();
}

/* ---- static functions ---- */

/* The compiler compares the type with that in library.h. */
#define INSIDE(function) \
    extern __typeof__(function) inside_##function __attribute__((alias(#function)))

INSIDE(room_of);
INSIDE(add_run);
INSIDE(change_begins);
INSIDE(change_ends);
INSIDE(expect_bytes);
INSIDE(give_up);
INSIDE(hide_block);
INSIDE(show_block);
INSIDE(full_bytes);
INSIDE(full_max);
INSIDE(swing_out);
INSIDE(swing_back);
INSIDE(is_in_order);
INSIDE(want_background);
INSIDE(background_may_end);
INSIDE(first_slots_of);
INSIDE(first_capacity);
INSIDE(exponential);
INSIDE(each_lock);
INSIDE(sort_words);
INSIDE(report_leaks);

size_t inside_table_bytes_of(size_t size, size_t align) { return table_bytes_of(size, align); }

bool inside_parse_number(const char *text, uint64_t *value)
{
    return parse_number((struct text){ text, __builtin_strlen(text) }, value);
}

/* ---- static variables and types ---- */

bool inside_holds_no_lock(void)
{
    for (unsigned rank = 0; rank < LOCK_RANK_COUNT; rank++)
        if (witness.rank_count[rank] != 0) return false;
    return true;
}

const void *inside_forking_thread(void) { return &forking_thread; }

size_t inside_least_reservation(void)
{
    struct layout least = layout_for(numbered_bytes(REGION_BYTES_LAST), REGION_BYTES_LAST);

    return least.meta_bytes + least.map_bytes + least.region_bytes;
}

uint32_t inside_places_used(void) { return foreign.count; }

size_t inside_places_bytes(void)
{
    size_t places = foreign.count;

    for (unsigned length = 0; length < LENGTH_COUNT; length++)
        for (uint32_t at = foreign.unused[length]; at != 0; at = extent_record(at)->next) places++;
    return places * round_up(sizeof(struct foreign_extent), META_UNIT_BYTES);
}

void inside_set_last_version(void) { foreign.version = UINT32_MAX - 1; }
uint32_t inside_version(void) { return foreign.version; }

void inside_forget_unused_places(size_t pages)
{
    foreign.unused[length_index((uint32_t)numbers_for(pages))] = 0;
}

bool inside_background_runs(void) { return RELAXED_LOAD(decay.background_runs); }
void inside_set_background_runs(bool runs) { decay.background_runs = runs; }
void inside_tell_background_to_end(void) { RELAXED_STORE(decay.ending, 1); }
void inside_set_background_asked(bool asked) { decay.asked = asked; }
bool inside_background_asked(void) { return RELAXED_LOAD(decay.asked); }
const void *inside_background_wish(void) { return &decay.asked; }
void inside_let_background_end(void) { RELAXED_STORE(decay.kept, false); }
bool inside_is_alone(void) { return is_alone(); }
uint32_t inside_threads_with_caches(void) { return in_use; }

void inside_sample_this_thread(struct cache *fresh)
{
    lock_take(&threads_lock);
    RELAXED_STORE(threads_are_sampled, true);
    separate_frees();
    replace_only(thread_front()->cache, fresh);
    lock_give(&threads_lock);
}

uint32_t *inside_report_turn(void) { return &saying.busy; }
uintptr_t *inside_pool_opener(void) { return &pool_opener; }

void inside_forget_newest_listener(void) { notify.newest--; }
void inside_number_two_listeners_alike(void) { notify.first->number = notify.first->next->number; }

unsigned *const inside_pool_held = &pool.held;
unsigned *const inside_pool_held_max = &pool.held_max;
unsigned *const inside_pool_freed = &pool.freed;
uint16_t *const inside_pool_queue = pool.queue;

const unsigned inside_closed_max = CLOSED_MAX;
const unsigned inside_strangers_before_first = STRANGERS_BEFORE_FIRST;
/* A part of a run, and its halves; all of it, and its halves. */
const unsigned inside_purge_refused_calls_max = 6 * PURGE_REFUSALS_MAX;
const unsigned inside_runs_per_hold = RUNS_PER_HOLD;
const unsigned inside_quiet_looks_max = QUIET_LOOKS_MAX;
const unsigned inside_background_refused_ms = REFUSED_MS;
const unsigned inside_rights_ms = RIGHTS_MS;
const unsigned inside_watched_frees = WATCHED_FREES;
const unsigned inside_lock_waits_max = LOCK_WAITS_MAX;
const unsigned inside_turn_waits_max = TURN_WAITS_MAX;
const unsigned inside_turn_wait_ms = TURN_WAIT_MS;
const size_t inside_records_bytes_min = RECORDS_BYTES_MIN;
