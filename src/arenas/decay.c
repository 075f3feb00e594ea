/* decay.c - giving back at once, and the background thread.
 * SPDX-License-Identifier: MIT
 */
#include "decay.h"

#include "../base/options.h"
#include "../base/port.h"
#include "../policy/limits.h"
#include "sparse.h"

enum { QUIET_LOOKS_MAX = 20, QUIET_LOOKS_MAX_ALONE = 2, SHRUNK_TO = 2 };
enum { LOOK_MS_MIN = 10, LOOK_MS_MAX = 60000, LOOK_MS_AT_ONCE = 500 };
/* So long may the background thread have rights that the program gave up. */
enum { RIGHTS_MS = 25 };
/* A kernel that allows no background thread is asked again after so long. */
enum { REFUSED_MS = 1000 };
/* Longer than a background thread holds a lock, on a busy machine too. */
enum { END_MS = 1000 };

struct lock decay_lock = { .state = LOCK_FREE, .rank = LOCK_DECAY };
static struct {
    uint32_t background_runs; /* under lock; atomic, partner of asked */
    uint32_t asked;           /* atomic: somebody wanted it since it last looked */
    uint32_t ending;          /* atomic: 1: it is to end now */
    uint32_t wakes;           /* atomic: how often it was woken; what it sleeps on */
    uint64_t again_ms;        /* atomic: from when on the kernel is asked for one again */
    bool kept;                /* atomic: somebody asked that it does not end */
    bool expects_sleeper;     /* atomic: the only thread came to hold much */
    uint32_t threads;         /* atomic: decay_thread_count */
    size_t peak_pages;        /* atomic: the most pages in use since the depots were emptied */
    /* Atomic: until then nobody clears for a background thread. */
    ON_ONE_LINE uint64_t clear_ms;
} decay;

uint64_t decay_looks;
bool (*decay_look_above)(bool alone) SEALED;
size_t decay_reclaim_at_bytes, decay_limits_at_bytes, decay_care_at_bytes;

void decay_start(void)
{
    decay_reclaim_at_bytes = RECLAIM_BYTES_MIN;
    decay_look_at_limits_from(SIZE_MAX);
}

/* One of two bounds, of which the lesser decides when to look. Who changes the other one meanwhile
 * is seen by the second look. */
static void set_look_at(size_t *bound, size_t bytes)
{
    size_t least;

    __atomic_store_n(bound, bytes, __ATOMIC_SEQ_CST);
    do {
        least = min_size(__atomic_load_n(&decay_reclaim_at_bytes, __ATOMIC_SEQ_CST),
                         __atomic_load_n(&decay_limits_at_bytes, __ATOMIC_SEQ_CST));
        __atomic_store_n(&decay_care_at_bytes, least, __ATOMIC_SEQ_CST);
    } while (least
             != min_size(__atomic_load_n(&decay_reclaim_at_bytes, __ATOMIC_SEQ_CST),
                         __atomic_load_n(&decay_limits_at_bytes, __ATOMIC_SEQ_CST)));
}

void decay_look_at_limits_from(size_t open_bytes)
{
    set_look_at(&decay_limits_at_bytes, open_bytes);
}

/* ---- later, by a background thread ---- */

/* At most one thread had a cache when they were last counted, and none had lost its own asleep. */
INLINE bool is_alone(void) { return RELAXED_LOAD(decay.threads) <= 1; }

/* In a program with threads it comes when it is asked. */
static void set_on_call(void) { purge_set_on_call(!is_alone() && option_background_thread()); }

void decay_thread_count(unsigned count)
{
    RELAXED_STORE(decay.threads, count);
    set_on_call();
}

/* What may stay while it runs, and what needs it, changes with it. */
static void set_background(bool runs)
{
    purge_set_background(runs);
    purge_obey_options(); /* also those who looked at a budget meanwhile */
}

/* Who changes it to true is the background thread, or starts it; returns what it was. */
static bool change_background_runs(bool runs)
{
    bool ran;

    lock_take(&decay_lock);
    ran = __atomic_exchange_n(&decay.background_runs, runs, __ATOMIC_SEQ_CST);
    lock_give(&decay_lock);
    return ran;
}

/* For a background thread that is told to end, and for the child of a fork: locks may be held for
 * good. */
static void background_is_gone(void)
{
    __atomic_store_n(&decay.background_runs, false, __ATOMIC_SEQ_CST);
    purge_set_background(false);
}

static bool is_told_to_end(void) { return RELAXED_LOAD(decay.ending) != 0; }

/* Who asks first says so and looks then whether a background thread runs; we do it the other way
 * round, so that one of us sees the other. Who tells us to end may hold any lock. */
static bool background_may_end(void)
{
    bool wanted;

    if (is_told_to_end()) {
        background_is_gone();
        return true;
    }
    (void)change_background_runs(false);
    set_background(false);
    wanted = option_background_thread()
          && (__atomic_load_n(&decay.asked, __ATOMIC_SEQ_CST) || purge_needs_background());
    if (!wanted || change_background_runs(true)) return true;
    set_background(true);
    return false;
}

/* Half of what is not needed goes at each look, twenty times in the span: so the promise holds.
 * Where dirty pages go at once, what depots hold is left to the looks. */
static uint64_t look_ms(void)
{
    int64_t decay_ms = option_decay_ms();

    if (decay_ms == 0) return LOOK_MS_AT_ONCE;
    if (decay_ms < 0 || decay_ms > (int64_t)QUIET_LOOKS_MAX * LOOK_MS_MAX) return LOOK_MS_MAX;
    return max_size((size_t)decay_ms / QUIET_LOOKS_MAX, LOOK_MS_MIN);
}

void decay_close_tail(bool waits)
{
    if (!option_is_set(OPTION_RETAIN) && decay_space_has(1)) (void)page_heaps_close_tail(waits);
}

/* In a program of one thread it is there for what that thread left behind, and for no longer. */
static bool background_may_go_on(unsigned quiet_looks)
{
    if (is_told_to_end() || !option_background_thread()) return false;
    if (is_alone()) return quiet_looks < QUIET_LOOKS_MAX_ALONE;
    return quiet_looks < QUIET_LOOKS_MAX || RELAXED_LOAD(decay.kept);
}

/* In a program of one thread it never holds a lock while it waits for another (decay_before_fork).
 * True: there was something to do. */
static bool look(void)
{
    bool busy;

    RELAXED_STORE(decay_looks, decay_looks + 1);
    busy = decay_look_above != NULL && decay_look_above(is_alone());
    if (!is_alone()) busy |= arenas_clear(CLEAR_UNNEEDED);
    busy |= purge_unneeded(&decay.ending) > 0;
    /* One thread does it itself. */
    if (!is_alone() && option_decay_ms() >= 0) purge_left_behind(&decay.ending);
    busy |= sparse_look(&decay.ending, !is_alone());
    if (!is_told_to_end()) decay_close_tail(false);
    return busy;
}

/* Stalls are looked for twice a second, and rights are compared often, where they can differ. */
static uint64_t nap_ms(uint64_t left_ms, bool watches)
{
    uint64_t most_ms = limits_stalls_are_told() ? STALL_LOOK_MS : LOOK_MS_MAX;

    if (watches) most_ms = RIGHTS_MS;
    return left_ms < most_ms ? left_ms : most_ms;
}

/* Who changes how long that is, or tells it to end, wakes it. False: rights differ, and it is to
 * end. */
static bool sleep_until_look(void)
{
    uint64_t start_ms = os_now_ms(), slept_ms = 0;

    for (;;) {
        uint32_t wakes = __atomic_load_n(&decay.wakes, __ATOMIC_SEQ_CST);
        bool watches = os_thread_rights_may_part(is_alone());
        uint64_t until_ms = look_ms();

        if (slept_ms >= until_ms || is_told_to_end()) return true;
        os_sleep(&decay.wakes, wakes, nap_ms(until_ms - slept_ms, watches));
        slept_ms = os_now_ms() - start_ms;
        if (watches && !is_told_to_end() && os_thread_rights_parted()) return false;
        if (limits_look_for_stalls()) decay_look_at_limits_from(0);
    }
}

/* What was left to it goes now, by the budget of a program without one, also what is left to it
 * meanwhile; the next one has the rights of the thread that starts it. Where threads differ in
 * rights, there is one a second. */
static void background_gives_way(void)
{
    RELAXED_STORE(decay.again_ms, os_now_ms() + REFUSED_MS);
    purge_set_on_call(false);
    __atomic_store_n(&decay.asked, false, __ATOMIC_SEQ_CST);
    for (unsigned times = 0; times < 2; times++) {
        set_background(false);
        purge_dirty_beyond_budget();
        if (!__atomic_exchange_n(&decay.asked, false, __ATOMIC_SEQ_CST)) break;
    }
    (void)change_background_runs(false);
    sparse_forget_signs();
    /* Who asked before that could be seen left it to this one, too. */
    if (__atomic_exchange_n(&decay.asked, false, __ATOMIC_SEQ_CST)) purge_dirty_beyond_budget();
}

static void *background_body(void *unused)
{
    unsigned quiet_looks = 0;

    (void)unused;
    /* The child of a fork that came after the wish for this thread, and before its start, knows of
     * none. */
    if (!is_told_to_end() && !change_background_runs(true)) set_background(true);
    do {
        bool asked, busy;

        if (!sleep_until_look()) {
            background_gives_way();
            return NULL;
        }
        if (is_told_to_end()) continue;
        asked = __atomic_exchange_n(&decay.asked, false, __ATOMIC_SEQ_CST);
        /* Whether it gave something back is no reason to stay with one thread, which gives back the
         * rest itself. */
        busy = look() && !is_alone();
        busy |= sparse_is_pending() || purge_needs_background();
        quiet_looks = asked || busy ? 0 : quiet_looks + 1;
    } while (background_may_go_on(quiet_looks) || huge_note_rest() || !background_may_end());
    return NULL;
}

/* Everything but what the system knows of it. */
static NOINLINE void forget_background(void)
{
    decay.asked = false;
    decay.ending = 0;
    sparse_forget_others();
    background_is_gone();
    purge_set_on_call(false);
}

/* Not of a process that this one began as a copy of. */
NOINLINE bool decay_background_is_there(void)
{
    bool runs = __atomic_load_n(&decay.background_runs, __ATOMIC_SEQ_CST);

    if (runs && os_threads_forget_lost()) {
        forget_background();
        runs = false;
    }
    return runs;
}

bool decay_may_ask(void) { return RELAXED_LOAD(decay.again_ms) <= os_now_ms(); }

/* None was started, and who saw that one would be has left it what was to be purged. */
static NOINLINE bool go_without_background(void)
{
    (void)change_background_runs(false);
    purge_set_background(false);
    return false;
}

/* False: the kernel allows no background thread. */
static bool want_background(void)
{
    if (!RELAXED_LOAD(decay.asked)) __atomic_store_n(&decay.asked, true, __ATOMIC_SEQ_CST);
    if (decay_background_is_there()) return true;
    if (!decay_may_ask()) return false;
    if (change_background_runs(true)) return true;
    os_thread_wait(END_MS); /* the last one may not quite have ended */
    RELAXED_STORE(decay.ending, 0);
    if (!option_background_thread()) /* it was forbidden in the meantime, and `ending` is gone */
        return go_without_background();
    purge_begin_unneeded();
    set_background(true); /* it may have ended before its start is known here */
    set_on_call();
    if (os_thread_start(background_body)) return true;
    RELAXED_STORE(decay.again_ms, os_now_ms() + REFUSED_MS);
    return go_without_background();
}

static void wake_background(void)
{
    (void)__atomic_add_fetch(&decay.wakes, 1, __ATOMIC_SEQ_CST);
    port_wake(&decay.wakes, 1);
}

void decay_keep_looking(void)
{
    RELAXED_STORE(decay.kept, true);
    decay_resume_looking();
    if (RELAXED_LOAD(decay.background_runs)) wake_background();
}

void decay_keep_no_longer(void) { RELAXED_STORE(decay.kept, false); }

void decay_resume_looking(void)
{
    bool is_due = RELAXED_LOAD(decay.kept) || RELAXED_LOAD(decay.expects_sleeper);

    if (!is_due || is_alone() || !option_background_thread()) return;
    RELAXED_STORE(decay.expects_sleeper, false);
    (void)want_background();
}

/* ---- before growth ---- */

/* What is free in slabs that are in use is as of a moment ago. */
READS_UNLOCKED bool decay_reclaim(void)
{
    size_t open_bytes = space.open_bytes, free_bytes = 0;
    size_t step = open_bytes / 8 + RECLAIM_BYTES_MIN;

    if (open_bytes < RELAXED_LOAD(decay_reclaim_at_bytes)) return false;
    set_look_at(&decay_reclaim_at_bytes, open_bytes + min_size(step, SIZE_MAX - open_bytes));
    EACH_ARENA (arena)
        for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
            free_bytes += arena->bin[class_index].slab_free_blocks * class_bytes[class_index];
    if (free_bytes < RECLAIM_BYTES_MIN || free_bytes < open_bytes / 8) return false;
    (void)arenas_clear(CLEAR_ALL);
    return true;
}

/* Dirty pages count towards the hard limit, and may lie where they are of no use for what is asked
 * for: alternating with clean ones, of which no search finds more than a few together. Purged, they
 * are one run. */
void decay_before_refusal(size_t pages)
{
    depots_end_cooling();
    (void)arenas_clear(CLEAR_ALL);
    if (commit_is_limited()
        || page_heaps_free_now(FREE_DIRTY) + page_heaps_free_now(FREE_CLEAN) >= pages)
        (void)purge_all();
}

/* ---- the door ---- */

static bool background_may_take(void)
{
    return option_background_thread() && option_decay_ms() != 0;
}

/* One thread alone is looked at once there is another. */
void decay_expect_sleepers(void)
{
    if (!option_background_thread() || RELAXED_LOAD(decay.background_runs)) return;
    if (is_alone()) RELAXED_STORE(decay.expects_sleeper, true);
    else (void)want_background();
}

/* In a program with threads. True: what is too much is another's to give back. */
static bool leave_to_background(void)
{
    if (!background_may_take() || !want_background()) return false;
    purge_raise_triggers();
    return true;
}

/* In a program of one thread: only what may be wanted again. Who else would give that back if it is
 * not? */
static bool leave_wanted_to_background(void)
{
    return background_may_take()
        && (purge_wants_background() || RELAXED_LOAD(decay.background_runs)) && want_background()
        && purge_raise_triggers_within_budget();
}

/* Has the program shrunk to half of the most that was in use since this was last true? */
static bool note_shrinking(void)
{
    size_t used = page_heaps_used_now(), peak = max_size(used, RELAXED_LOAD(decay.peak_pages));
    bool shrunk;

    /* What opened meanwhile may have made that too little. */
    if (used <= peak / SHRUNK_TO) used = page_heaps_used();
    shrunk = used <= peak / SHRUNK_TO;
    RELAXED_STORE(decay.peak_pages, shrunk ? used : peak);
    return shrunk;
}

/* Of all threads one is told so, as often as somebody would look in the background. */
static bool clear_is_due(void)
{
    uint64_t now = os_now_ms(), due_ms = RELAXED_LOAD(decay.clear_ms);

    return now >= due_ms
        && __atomic_compare_exchange_n(&decay.clear_ms, &due_ms, now + look_ms(), false,
                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Is what nobody needed in depots, stocks and abandoned caches the caller's to give back? Where
 * dirty pages are left to nobody, each return of pages comes here, and one thread alone needs a
 * pause between two clears, too. */
static bool clears_unneeded(bool alone)
{
    int64_t decay_ms = option_decay_ms();

    if (alone && decay_ms > 0) return true;
    if (decay_ms < 0 || !clear_is_due()) return false;
    return alone || purge_is_urgent() || !option_background_thread() || !want_background();
}

bool decay_excess(void)
{
    bool alone = is_alone(), shrunk = false;

    if (sparse_is_pending() && background_may_take() && !want_background()) sparse_forget_signs();
    if (alone || !purge_is_urgent()) {
        if (purge_oversize() || (!alone && leave_to_background())) return false;
        purge_set_on_call(false);
        shrunk = note_shrinking();
    }
    if (shrunk) {
        RELAXED_STORE(depots_closed, true);
        (void)arenas_clear(CLEAR_ALL);
    } else if (clears_unneeded(alone)) {
        (void)arenas_clear(CLEAR_UNNEEDED);
    }
    if (alone && leave_wanted_to_background()) return shrunk;
    purge_past_triggers();
    decay_close_tail(false);
    return shrunk;
}

/* What waits for the next walk over slabs is told anew, to who looks at the budget next. */
INLINE void ask_for_walk_again(void)
{
    if (sparse_is_pending()) purge_ask_for_look();
}

/* Waits END_MS at most, for who forks in a signal handler may hold any lock. */
static void end_background(void)
{
    RELAXED_STORE(decay.ending, 1);
    wake_background();
    os_thread_wait(END_MS);
    ask_for_walk_again();
}

void decay_obey_options(void)
{
    set_on_call();
    ask_for_walk_again();
    RELAXED_STORE(decay.clear_ms, 0); /* it may be due earlier now */
    if (option_background_thread()) decay_resume_looking();
    else if (RELAXED_LOAD(decay.background_runs)) end_background();
    if (RELAXED_LOAD(decay.background_runs)) wake_background();
    purge_obey_options();
    if (option_decay_ms() == 0) {
        purge_beyond_budget();
        decay_close_tail(false);
    }
}

struct decay_numbers decay_numbers(void)
{
    return (struct decay_numbers){ RELAXED_LOAD(decay.background_runs), RELAXED_LOAD(decay_looks),
                                   look_ms() };
}

/* A background thread that has not ended then waits for a lock that is held by what this fork
 * interrupted, and holds none; or the kernel keeps it that long. One that has said that it ends may
 * hold a lock still. */
bool decay_before_fork(void)
{
    bool runs = decay_background_is_there();

    if (!is_alone()) return !runs;
    if (runs) end_background();
    else os_thread_wait(END_MS);
    return true;
}

void decay_forget_thread(void)
{
    os_threads_forget();
    forget_background();
}
