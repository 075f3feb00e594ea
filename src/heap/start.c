/* start.c - the first call of a process, forks, and walking the whole heap.
 * SPDX-License-Identifier: MIT
 */
#include "heap.h"

#include "../arenas/decay.h"
#include "../arenas/manual.h"
#include "../arenas/sparse.h"
#include "../base/options.h"
#include "../cache/cache_list.h"
#include "../cache/explicit_cache.h"
#include "../cache/quarantine.h"
#include "../cache/sleepers.h"
#include "../guard/fill.h"
#include "../guard/guarded.h"
#include "../page_heap/huge.h"
#include "../policy/limits.h"
#include "../policy/purge.h"
#include "../policy/reserve.h"
#include "../profile/profile.h"
#include "../sample/sample.h"
#include "guarded_doors.h"
#include "notify.h"
#include "shortage.h"
#include "vast.h"

#include <errno.h>

struct lock control_lock = { .state = LOCK_FREE, .rank = LOCK_CONTROL };

/* A word of metadata_thp. */
enum { METADATA_THP_ALWAYS = 2 };

/* Among initialised data, which the loader has touched already: in zeroed data the first read and
 * the first write of a page are a fault each. */
static struct {
    struct lock lock;
    bool started;    /* written under lock; published with release */
    uint32_t hooked; /* atomic: fork handlers are in place, or a thread puts them there */
    unsigned forks;  /* how many forks this thread is inside of; written by it under all locks */
} life = { .lock = { .state = LOCK_FREE, .rank = LOCK_START } };

static void visit_rank(enum lock_rank rank, void (*visit)(struct lock *lock), enum lock_walk walk)
{
    switch (rank) {
    case LOCK_CONTROL: visit(&control_lock); break;
    case LOCK_START: visit(&life.lock); break;
    case LOCK_THREADS: visit(&threads_lock); break;
    case LOCK_EXPLICIT_CACHES: visit(&explicit_caches_lock); break;
    case LOCK_DECAY: visit(&decay_lock); break;
    case LOCK_NOTIFY: visit(&notify_lock); break;
    case LOCK_MAKING: visit(&making_lock); break;
    case LOCK_ARENA: arenas_each_lock(visit, walk); break;
    case LOCK_RESERVE: visit(&reserve.lock); break;
    case LOCK_LIMITS: visit(&limits.lock); break;
    case LOCK_PAGE_HEAP: page_heaps_each_lock(visit, walk); break;
    case LOCK_SPACE: visit(&space.lock); break;
    case LOCK_GUARDED: visit(&guarded_lock); break;
    case LOCK_SAMPLES: visit(&samples_lock); break;
    case LOCK_META: visit(&meta.lock); break;
    case LOCK_RANK_COUNT: break;
    }
}

/* Every lock of the process. What a lock guards, such as the set of arenas, does not change before
 * all locks taken after it are given; but for arenas that a handler of a fork makes, whose locks
 * are held from the start. */
static void each_lock(void (*visit)(struct lock *lock), enum lock_walk walk)
{
    for (unsigned rank = 1; rank < LOCK_RANK_COUNT; rank++)
        visit_rank((enum lock_rank)(walk == WALK_GIVES ? LOCK_RANK_COUNT - rank : rank), visit,
                   walk);
}

static bool seen_held; /* atomic: one of the locks that were looked at was held */

static void note_if_held(struct lock *lock)
{
    if (RELAXED_LOAD(lock->state) != LOCK_FREE) RELAXED_STORE(seen_held, true);
}

/* One of this rank, or of one after it. This look takes no lock. */
static bool is_locked_from(enum lock_rank first)
{
    RELAXED_STORE(seen_held, false);
    for (unsigned rank = first; rank < LOCK_RANK_COUNT; rank++)
        visit_rank((enum lock_rank)rank, note_if_held, WALK_TAKES);
    return RELAXED_LOAD(seen_held);
}

bool heap_is_locked(void) { return is_locked_from(LOCK_CONTROL); }

/* A background thread that did not end can be in the middle of something. But when a lock is held,
 * that may be ours, for which the background thread waits, and none can be taken here. If it is the
 * background thread's own, the child inherits it: a second was not enough to give it then. */
static bool forks_without_locks(bool no_background)
{
    if (!no_background || !os_has_one_thread() || lock_fork_is_mine()) return false;
    return !decay_numbers().background_runs || heap_is_locked();
}

/* A process with one thread may fork in a signal handler that interrupted a call into the heap: a
 * lock that is held then is the same thread's, in the child as well, and nobody else can be in the
 * middle of anything.
 *
 * The platform's locks come first: who holds one of them may wait for a block, and nobody who holds
 * one of ours waits for them. */
void heap_fork_begins(void)
{
    bool no_background = decay_before_fork();

    /* What a background thread would have given back later is not copied for the child either; but
     * not when one of the locks that this takes is ours already. */
    if (no_background && !is_locked_from(LOCK_PAGE_HEAP)) purge_beyond_budget();
    if (forks_without_locks(no_background)) return;
    os_fork_begins();
    /* Another handler of this fork forks: all are taken. */
    if (!lock_fork_is_mine()) each_lock(lock_take_for_fork, WALK_TAKES);
    lock_fork_begins();
    life.forks++;
}

void heap_fork_ends_in_parent(void)
{
    if (!lock_fork_is_mine()) return;
    if (--life.forks == 0) {
        lock_fork_ends();
        each_lock(lock_give_after_fork, WALK_GIVES);
    }
    os_fork_ends_in_parent();
}

static void forget_others(void)
{
    lock_fork_ends();
    life.forks = 0; /* those around this one are the parent's */
    cache_list_forget_others();
    arenas_forget_calls();
    explicit_cache_forget_busy();
    decay_forget_thread();
    profile_forget_dump();
    notify_forget_others();
    page_heaps_put_back_in_flight();
    vast_forget_others();
    guarded_forget_others();
    guarded_forget_opener();
    each_lock(lock_remake, WALK_GIVES);
    os_fork_ends_in_child();
}

void heap_fork_ends_in_child(void)
{
    bool forgets = lock_fork_is_mine();

    if (forgets) forget_others();
    else decay_forget_thread();
    sleepers_begin_in_child(forgets);
    quarantine_close_less();
    reserve_forget_pages();
    shortage_set_look();
}

static bool start_once(void)
{
    unsigned cores;

    if (life.started) return true;
    cores = os_core_count();
    if (cores == 1) lock_set_spin(0);
    if (!space_start()) return false;
    page_heaps_start();
    slabs_start();
    arenas_start(cores);
    decay_start();
    cache_list_start();
    sleepers_start();
    shortage_start();
    __atomic_store_n(&life.started, true, __ATOMIC_RELEASE);
    return true;
}

/* Where our frames were, return addresses into our code are left on the stack. Frames of the
 * program with room between their words keep them, and who looks whether the first thread sleeps in
 * one of ours (os_nap_lasts) would always believe so. */
static NOINLINE void wipe_frames(void)
{
    char frames[2 * KiB];

    __builtin_memset(frames, 0, sizeof frames);
    __asm__ volatile("" ::"r"(frames) : "memory");
}

bool heap_start(void)
{
    bool ready;

    if (likely(__atomic_load_n(&life.started, __ATOMIC_ACQUIRE))) return true;
    lock_take(&life.lock);
    ready = start_once();
    lock_give(&life.lock);
    wipe_frames();
    return ready;
}

/* Registering may allocate, so it happens after the first thread has its cache, or none was to be
 * had. When there was no memory for it, the next thread that comes tries again. */
static void hook_process(void)
{
    if (RELAXED_LOAD(life.hooked) || __atomic_exchange_n(&life.hooked, true, __ATOMIC_RELAXED))
        return;
    if (!os_at_fork(heap_fork_begins, heap_fork_ends_in_parent, heap_fork_ends_in_child))
        RELAXED_STORE(life.hooked, false);
}

/* What fills blocks does it where every call comes along. */
static bool threads_may_hold_blocks(void)
{
    return option_is_set(OPTION_TCACHE) && !fill_is_wanted();
}

void heap_obey_options(void)
{
    unsigned class_max = 0;

    if (option_is_set(OPTION_NARENAS)) arenas_limit((unsigned)option_value(OPTION_NARENAS));
    while (class_max + 1 < CLASS_COUNT
           && class_bytes[class_max + 1] <= option_value(OPTION_TCACHE_MAX))
        class_max++;
    threads_hold_up_to(class_max);
    fill_start();
    guarded_obey_options();
    if (!option_is_set(OPTION_CACHE_OBLIVIOUS)) thread_flush(); /* what it keeps begins elsewhere */
    /* A thread that has not called yet comes through heap_attach. */
    if (!threads_may_hold_blocks()) (void)thread_cache_off();
    decay_obey_options();
    huge_obey_option((enum huge_policy)option_value(OPTION_THP));
    if (option_value(OPTION_METADATA_THP) == METADATA_THP_ALWAYS && heap_start())
        space_want_huge_records();
}

struct front *heap_attach(void)
{
    struct front *front = thread_front();
    int saved_errno;

    if (likely(front->kind != FRONT_EMPTY)) return front;
    saved_errno = errno;
    if (!heap_start()) return NULL;
    front = thread_attach(!threads_may_hold_blocks());
    hook_process();
    decay_resume_looking();
    errno = saved_errno;
    return likely(front != NULL) ? front : GONE_FRONT;
}

PUBLIC void prairie_check_all(void)
{
    if (!__atomic_load_n(&life.started, __ATOMIC_ACQUIRE)) return;
    if (thread_front()->cache != NULL)
        cache_check(thread_front()->cache); /* others are their owners' */
    each_lock(lock_take, WALK_TAKES);
    notify_check();
    arenas_check();
    reserve_check();
    page_heaps_check();
    foreign_check();
    guarded_check();
    each_lock(lock_give, WALK_GIVES);
}

void heap_audit(void)
{
    static unsigned entries;

    if (__atomic_add_fetch(&entries, 1, __ATOMIC_RELAXED) % AUDIT_PERIOD == 0) prairie_check_all();
}

PUBLIC size_t prairie_purge(void)
{
    size_t bytes;

    if (!__atomic_load_n(&life.started, __ATOMIC_ACQUIRE)) return 0;
    shortage_gather();
    arenas_settle();
    bytes = purge_all() + sparse_purge_all();
    decay_close_tail(true);
    return bytes;
}
