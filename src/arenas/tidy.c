/* tidy.c - the eager way, and the helper.
 * SPDX-License-Identifier: MIT
 */
#include "tidy.h"

#include "../base/options.h"
#include "../pages/ceiling.h"
#include "../pages/purge.h"

enum { QUIET_LOOKS_MAX = 20, SHRUNK_TO = 2 };
enum { LOOK_MS_MIN = 10, LOOK_MS_MAX = 60000 };

static struct {
    struct lock lock;  /* the helper's life */
    bool helper_runs;  /* under lock; atomic, partner of asked */
    bool asked;        /* atomic: somebody wanted it since it last looked */
    bool kept;         /* atomic: a helper does not end */
    uint32_t threads;  /* atomic: threads with caches */
    uint64_t looks;    /* atomic: statistics */
    size_t reclaim_at; /* atomic: the region's size from which on reclaiming is worth a thought */
    size_t peak_pages; /* one thread: the most pages in use since the depots were emptied */
} tidy;

size_t tidy_look_at_bytes;
size_t tidy_watch_at_bytes;

void tidy_start(void)
{
    lock_init(&tidy.lock, LOCK_TIDY);
    tidy.reclaim_at = RECLAIM_BYTES_MIN;
    tidy_watch(SIZE_MAX);
}

/* The lesser of the two. Who changes one of them meanwhile is seen by the second look. */
static void set_look_at(void)
{
    size_t least;

    do {
        least = min_size(__atomic_load_n(&tidy.reclaim_at, __ATOMIC_SEQ_CST),
                         __atomic_load_n(&tidy_watch_at_bytes, __ATOMIC_SEQ_CST));
        __atomic_store_n(&tidy_look_at_bytes, least, __ATOMIC_SEQ_CST);
    } while (least
             != min_size(__atomic_load_n(&tidy.reclaim_at, __ATOMIC_SEQ_CST),
                         __atomic_load_n(&tidy_watch_at_bytes, __ATOMIC_SEQ_CST)));
}

void tidy_watch(size_t open_bytes)
{
    __atomic_store_n(&tidy_watch_at_bytes, open_bytes, __ATOMIC_SEQ_CST);
    set_look_at();
}

void tidy_thread_count(unsigned count) { RELAXED_STORE(tidy.threads, count); }

/* ---- one thread: at once ---- */

static READS_UNLOCKED bool has_shrunk(void)
{
    size_t used = run_used_pages();

    if (used > tidy.peak_pages) tidy.peak_pages = used;
    if (used > tidy.peak_pages / SHRUNK_TO) return false;
    tidy.peak_pages = used;
    return true;
}

static bool tidy_at_once(void)
{
    bool shrunk = has_shrunk();

    if (shrunk) {
        depots_close();
        arenas_clear();
    }
    purge_beyond_budget();
    return shrunk;
}

/* ---- threads: later, by a helper ---- */

/* Who asks first says so and looks then whether a helper runs; we do it the other way round, so that one of
 * us sees the other. */
static bool helper_may_end(void)
{
    bool wanted;

    lock_take(&tidy.lock);
    __atomic_store_n(&tidy.helper_runs, false, __ATOMIC_SEQ_CST);
    wanted = __atomic_load_n(&tidy.asked, __ATOMIC_SEQ_CST);
    RELAXED_STORE(tidy.helper_runs, wanted);
    lock_give(&tidy.lock);
    return !wanted;
}

/* The promise is kept by taking half of what is not needed twenty times in the span. */
static uint64_t look_ms(void)
{
    int64_t decay_ms = option_decay_ms();

    if (decay_ms < 0) return LOOK_MS_MAX;
    return max_size(min_size((size_t)decay_ms / QUIET_LOOKS_MAX, LOOK_MS_MAX), LOOK_MS_MIN);
}

void tidy_close_tail(void)
{
    if (!option_is_set(OPTION_RETAIN)) (void)runs_close_tail();
}

static void *helper_body(void *unused)
{
    static const uint32_t never;
    unsigned quiet_looks = 0;

    (void)unused;
    purge_watch_unneeded();
    do {
        bool busy;

        os_sleep(&never, 0, look_ms());
        RELAXED_STORE(tidy.looks, tidy.looks + 1);
        busy = __atomic_exchange_n(&tidy.asked, false, __ATOMIC_SEQ_CST);
        if (ceiling_watch_stalls()) tidy_watch(0);
        busy |= arenas_drain_unneeded();
        busy |= purge_unneeded() > 0;
        tidy_close_tail();
        quiet_looks = busy ? 0 : quiet_looks + 1;
    } while (quiet_looks < QUIET_LOOKS_MAX || RELAXED_LOAD(tidy.kept) || !helper_may_end());
    return NULL;
}

/* False: the kernel allows no helper. */
static bool want_tidier(void)
{
    bool runs;

    if (!RELAXED_LOAD(tidy.asked)) __atomic_store_n(&tidy.asked, true, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&tidy.helper_runs, __ATOMIC_SEQ_CST)) return true;
    lock_take(&tidy.lock);
    runs = tidy.helper_runs;
    RELAXED_STORE(tidy.helper_runs, true); /* ours to start, or running */
    lock_give(&tidy.lock);
    if (runs || os_thread_start(helper_body)) return true;
    lock_take(&tidy.lock);
    RELAXED_STORE(tidy.helper_runs, false);
    lock_give(&tidy.lock);
    return false;
}

void tidy_keep_watching(void)
{
    RELAXED_STORE(tidy.kept, true);
    tidy_resume_watching();
}

void tidy_resume_watching(void)
{
    if (RELAXED_LOAD(tidy.kept) && RELAXED_LOAD(tidy.threads) > 1 && option_helper_thread())
        (void)want_tidier();
}

/* ---- before growth ---- */

/* Free memory in slabs that are in use, as of a moment ago. */
static READS_UNLOCKED size_t slab_free_bytes(void)
{
    size_t bytes = 0;

    for (unsigned index = 0; index < arenas_end(); index++) {
        const struct arena *arena = __atomic_load_n(&arenas[index], __ATOMIC_ACQUIRE);

        for (unsigned class_index = 1; arena != NULL && class_index < CLASS_COUNT; class_index++)
            bytes += arena->shelf[class_index].slab_free_blocks * class_bytes[class_index];
    }
    return bytes;
}

static READS_UNLOCKED size_t open_bytes_now(void) { return plain.open_bytes; }

bool tidy_reclaim(void)
{
    size_t open_bytes = open_bytes_now(), free_bytes;

    if (open_bytes < RELAXED_LOAD(tidy.reclaim_at)) return false;
    __atomic_store_n(&tidy.reclaim_at, open_bytes + open_bytes / 8 + RECLAIM_BYTES_MIN,
                     __ATOMIC_SEQ_CST);
    set_look_at();
    free_bytes = slab_free_bytes();
    if (free_bytes < RECLAIM_BYTES_MIN || free_bytes < open_bytes / 8) return false;
    arenas_clear();
    return true;
}

void tidy_before_refusal(void) { arenas_close_empty(); }

/* ---- the door ---- */

/* A program of one thread gets no second one; one whose threads have ended may still have a helper. */
static bool may_purge_later(void)
{
    if (!option_helper_thread() || option_decay_ms() == 0) return false;
    return RELAXED_LOAD(tidy.threads) > 1 || RELAXED_LOAD(tidy.helper_runs);
}

bool tidy_after_return(void)
{
    if (likely(purge_is_within_budget())) return false;
    if (RELAXED_LOAD(tidy.threads) > 1 && RELAXED_LOAD(purge_hard)) {
        purge_beyond_budget();
        return false;
    }
    if (purge_oversize()) return false;
    if (may_purge_later() && want_tidier()) return false;
    return tidy_at_once();
}

void tidy_obey_options(void)
{
    purge_obey_options();
    if (option_decay_ms() == 0) purge_beyond_budget();
}

struct tidy_numbers tidy_numbers(void)
{
    return (struct tidy_numbers){ RELAXED_LOAD(tidy.helper_runs), RELAXED_LOAD(tidy.looks),
                                  look_ms() };
}

void tidy_each_lock(void (*visit)(struct lock *lock)) { visit(&tidy.lock); }

void tidy_forget_thread(void)
{
    tidy.helper_runs = tidy.asked = false;
    os_threads_forget();
}
