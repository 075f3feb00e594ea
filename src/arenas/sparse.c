/* sparse.c - walking over the slabs of classes that have shrunk.
 * SPDX-License-Identifier: MIT
 */
#include "sparse.h"

#include "../base/options.h"
#include "../policy/limits.h"
#include "../policy/purge.h"
#include "arena_set.h"
#include "decay.h"

/* So much must be free in a class; and so much be marked for the thread to wait for the next
 * walk. */
#define SPARSE_BYTES_MIN (64 * KiB)
/* Slabs that are visited before the arena's lock is given and taken again; pauses in between, about
 * as long; a fourth of a class's blocks must be free; and each 6th look of 20 in dirty_decay_ms
 * walks. */
enum { SLABS_PER_HOLD = 16, PAUSES = 64, FREE_SHARE = 4, LOOKS_PER_WALK = 6 };
/* A kernel that took nothing of so many is asked no more: all memory is locked, perhaps. */
enum { REFUSALS_MAX = 64 };
/* Who wants all at once waits so long for who walks already. */
enum { AWAIT_WALK_MS_MAX = 100 };

struct sparse sparse_slabs;

struct sparse_walk {
    bool all;             /* not only what is idle */
    bool waits;           /* for arenas' locks */
    bool is_incomplete;   /* it did not come to the end of an arena */
    const uint32_t *stop; /* atomic; NULL: nobody stops it */
    size_t marked;        /* pages that the next walk may give back, at least */
    size_t purged;        /* pages, in all arenas */
    unsigned refusals;
    struct purge_tally tally; /* of the arena that is walked */
};

/* ---- signs ---- */

static bool is_wanted(void)
{
    return OS_PURGES_IN_PLACE && option_decay_ms() > 0 && RELAXED_LOAD(huge.policy) != HUGE_ALWAYS;
}

/* In a heap of some size, for else no thread is worth it, and where the kernel may allow one. */
void sparse_tell(const struct class_bin *bin, unsigned class_index)
{
    if (RELAXED_LOAD(sparse_slabs.told) || !slabs_are_sparse(bin, class_index)) return;
    if (!is_wanted() || page_heaps_used_now() < pages_for(FALL_BYTES_MIN) || !decay_may_ask())
        return;
    RELAXED_STORE(sparse_slabs.told, true);
    purge_ask_for_look();
}

/* Its pages are about to be touched. A group's limit is looked at by who leases runs, and here
 * nobody does. */
void sparse_retake(struct arena *arena, const struct slab *slab)
{
    unsigned pages = slab_purged_pages(slab);

    if (pages == 0) return; /* it is marked as idle only */
    arena->purged_pages -= pages;
    arena_count_active(arena, pages);
    if (limits_note_retaken(pages)) decay_look_at_limits_from(0);
}

/* ---- walking ---- */

/* Unless the walk has gone on by itself. */
void sparse_move_on(uint32_t number, uint32_t next)
{
    (void)__atomic_compare_exchange_n(&sparse_slabs.next, &number, next, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED);
}

static bool takes_nothing(const struct sparse_walk *walk)
{
    return walk->refusals >= REFUSALS_MAX && walk->purged == 0;
}

static bool is_walk_stopped(const struct sparse_walk *walk)
{
    return takes_nothing(walk) || purge_is_stopped(walk->stop);
}

static bool enter(const struct sparse_walk *walk, struct arena *arena)
{
    if (!walk->waits) return lock_try(&arena->lock);
    lock_take(&arena->lock);
    return true;
}

static void purge_pages_of(struct sparse_walk *walk, struct arena *arena, struct slab *slab,
                           size_t first, size_t pages)
{
    walk->tally.calls++;
    if (!os_purge(page_range(slab->page + (uint32_t)first, pages))) {
        walk->refusals++;
        return;
    }
    slab_mark_purged(slab, first, pages);
    arena->purged_pages += (uint32_t)pages;
    arena_count_active(arena, 0 - pages);
    walk->tally.pages += pages;
    walk->purged += pages;
}

/* Under the arena's lock, which nobody takes a block of the slab without. True: the kernel was
 * called, which takes a while. */
static bool visit_slab(struct sparse_walk *walk, struct arena *arena, struct slab *slab)
{
    bool goes = walk->all || (slab->purged & SLAB_IDLE) != 0;
    size_t first = 0, pages = slab_unused_pages(slab, &first);

    if (pages == 0) return false;
    if (!goes) {
        slab->purged |= SLAB_IDLE;
        walk->marked += pages;
        return false;
    }
    for (; pages != 0; pages = slab_unused_pages(slab, &first)) {
        purge_pages_of(walk, arena, slab, first, pages);
        first += pages;
    }
    return true;
}

/* Is it worth a walk? What hooks supplied is theirs to purge. */
static bool is_free_enough(const struct sparse_walk *walk, const struct arena *arena,
                           unsigned class_index)
{
    const struct class_bin *bin = &arena->bin[class_index];
    uint64_t all = bin_blocks(bin, class_index);

    if (arena->extents != NULL || bin->slab_free_blocks == 0) return false;
    return walk->all
        || (bin->slab_free_blocks * FREE_SHARE >= all
            && bin->slab_free_blocks * class_bytes[class_index] >= SPARSE_BYTES_MIN);
}

/* Under the arena's lock. */
static void visit_some(struct sparse_walk *walk, struct arena *arena)
{
    for (unsigned slabs = 0; slabs < SLABS_PER_HOLD; slabs++) {
        uint32_t number = RELAXED_LOAD(sparse_slabs.next);
        struct slab *slab;

        if (number == 0) return;
        slab = slab_record(number);
        RELAXED_STORE(sparse_slabs.next, slab->next);
        if (visit_slab(walk, arena, slab)) return;
    }
}

/* Who waits for the lock would seldom find it free if it was taken again at once. */
static void let_others(void)
{
    for (unsigned i = 0; i < PAUSES; i++) cpu_relax();
}

/* The same pages go and come again with each breath; the wish for huge pages is told once. */
static void count_more(struct sparse_walk *walk, struct arena *arena)
{
    if (arena->purged_pages <= arena->purged_pages_peak) return;
    walk->tally.more_pages += arena->purged_pages - arena->purged_pages_peak;
    arena->purged_pages_peak = arena->purged_pages;
}

/* False: the arena's lock is taken. */
static bool walk_class(struct sparse_walk *walk, struct arena *arena, unsigned class_index)
{
    bool entered = enter(walk, arena);

    if (entered && is_free_enough(walk, arena, class_index))
        RELAXED_STORE(sparse_slabs.next, arena->bin[class_index].partial.first);
    while (entered && RELAXED_LOAD(sparse_slabs.next) != 0 && !is_walk_stopped(walk)) {
        visit_some(walk, arena);
        lock_give(&arena->lock);
        let_others();
        entered = enter(walk, arena);
    }
    RELAXED_STORE(sparse_slabs.next, 0);
    if (!entered) return false;
    count_more(walk, arena);
    lock_give(&arena->lock);
    return true;
}

static void walk_arena(struct sparse_walk *walk, struct arena *arena)
{
    unsigned class_index = 1;

    walk->tally = (struct purge_tally){ 0, 0, 0 };
    RELAXED_STORE(sparse_slabs.over, arena);
    while (class_index < CLASS_COUNT && !is_walk_stopped(walk)
           && walk_class(walk, arena, class_index))
        class_index++;
    RELAXED_STORE(sparse_slabs.over, NULL);
    walk->is_incomplete |= class_index < CLASS_COUNT || is_walk_stopped(walk);
    purge_count_tally(arena->page_heap, walk->tally);
}

/* False: somebody else walks. */
static bool walk_arenas(struct sparse_walk *walk)
{
    if (__atomic_exchange_n(&sparse_slabs.walking, true, __ATOMIC_ACQUIRE)) return false;
    EACH_ARENA (arena) walk_arena(walk, arena);
    __atomic_store_n(&sparse_slabs.walking, false, __ATOMIC_RELEASE);
    return true;
}

static void set_pending(bool pending)
{
    RELAXED_STORE(sparse_slabs.told, false);
    RELAXED_STORE(sparse_slabs.pending, pending);
}

void sparse_forget_signs(void) { set_pending(false); }

bool sparse_look(const uint32_t *stop, bool waits)
{
    static unsigned looks; /* there is one background thread */
    struct sparse_walk walk = { .stop = stop, .waits = waits };
    bool walked;

    if (!is_wanted()) {
        set_pending(false);
        return false;
    }
    if (++looks < LOOKS_PER_WALK) return false;
    looks = 0;
    set_pending(true);
    walked = walk_arenas(&walk);
    if (walked)
        RELAXED_STORE(sparse_slabs.pending,
                      !takes_nothing(&walk)
                          && (walk.is_incomplete || walk.marked >= pages_for(SPARSE_BYTES_MIN)));
    return walk.purged != 0;
}

/* Not for long: a signal handler may have interrupted who walks. */
size_t sparse_purge_all(void)
{
    struct sparse_walk walk = { .all = true, .waits = true };

    for (unsigned ms = 0; OS_PURGES_IN_PLACE && !walk_arenas(&walk) && ms < AWAIT_WALK_MS_MAX; ms++)
        os_pause(1);
    return walk.purged << space.page_shift;
}

void sparse_forget_others(void) { sparse_slabs = (struct sparse){ .next = 0 }; }
