/* extents.h - a page heap whose pages an arena's hooks supply, extent by extent.
 *
 * The program's functions are called without any lock: when no extent has a run that fits
 * (page_heap/supplied.h), the caller gives the lock, asks the hooks for one more, and tries again.
 *
 *      arena -> extents | hooks, page heap -> extent (a piece) -> extent ...
 *
 * The pages of an extent in the address space, which a hook got from the default one or from
 * malloc, have numbers already: they are a used run of the shared page heap. Others get some
 * (space/foreign.h).
 *
 * Y1  an extent that is wholly free, and may go back, is in the list of spare ones
 * Y2  when it is not said that two are spare, no two in that list are wholly free
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_ARENAS_EXTENTS_H
#define PRAIRIE_ARENAS_EXTENTS_H

#include "../space/foreign.h"
#include "../page_heap/supplied.h"

/* The program's functions, in the order of its own table; each gets that table. True means
 * refused. */
struct extent_hooks {
    void *(*alloc)(struct extent_hooks *hooks, void *new_address, size_t bytes, size_t align,
                   bool *zero, bool *commit, unsigned arena);
    bool (*dalloc)(struct extent_hooks *hooks, void *base, size_t bytes, bool committed,
                   unsigned arena);
    void (*destroy)(struct extent_hooks *hooks, void *base, size_t bytes, bool committed,
                    unsigned arena);
    bool (*commit)(struct extent_hooks *hooks, void *base, size_t bytes, size_t offset,
                   size_t length, unsigned arena);
    bool (*decommit)(struct extent_hooks *hooks, void *base, size_t bytes, size_t offset,
                     size_t length, unsigned arena);
    bool (*purge_lazy)(struct extent_hooks *hooks, void *base, size_t bytes, size_t offset,
                       size_t length, unsigned arena);
    bool (*purge_forced)(struct extent_hooks *hooks, void *base, size_t bytes, size_t offset,
                         size_t length, unsigned arena);
    bool (*split)(struct extent_hooks *hooks, void *base, size_t bytes, size_t bytes_a,
                  size_t bytes_b, bool committed, unsigned arena);
    bool (*merge)(struct extent_hooks *hooks, void *base_a, size_t bytes_a, void *base_b,
                  size_t bytes_b, bool committed, unsigned arena);
};

struct extent {
    struct page_piece piece;   /* first, so that a piece leads to its extent; its page numbers are
                                others when it was added anew */
    char *base;                /* constant */
    uint8_t state;             /* constant: of the run in the address space that it is; PAGE_INSIDE:
                                foreign */
    bool stays;                /* under the arena's lock: the hooks refused to take it back */
    bool clean;                /* constant: it came as zeros */
    uint32_t sample;           /* constant: of the run in state PAGE_SAMPLED */
    bool is_spare;             /* under the arena's lock: it is in the list of spare ones */
    struct extent *next_spare; /* under the arena's lock */
};

/* A thread that is on its way through the hooks; lies on its stack. */
struct hook_call {
    struct hook_call *next;   /* under the arena's lock */
    uint64_t hooks_version;   /* constant: of the hooks, when it began */
    uintptr_t thread;         /* constant: its mark */
    struct os_callout before; /* its own */
};

/* What an arena with hooks has; under the arena's lock, but for what is atomic. */
struct extents {
    struct page_heap heap;      /* it begins a line */
    struct extent_hooks *hooks; /* atomic, written under the lock: a hook may set others */
    uint64_t hooks_version;     /* after the first */
    size_t next_bytes;          /* how much to ask for next */
    size_t grow_limit;          /* at most, unless more is wanted at once */
    /* Kept for who asks: nothing goes back by time. -1: for ever. */
    int64_t dirty_decay_ms, muzzy_decay_ms;
    /* Atomic: the hooks do not want extents cut up, each is asked for in the size that is
     * wanted. */
    bool whole;
    struct hook_call *calls;
    /* Extents that came to be wholly free, and may be in use again: who puts the second one that is
     * free there says so in *arena_has_spare. */
    struct extent *spare;
    bool *arena_has_spare; /* constant; what it leads to is atomic, its arena's, written under the
                             lock: arena_settle has something to do */
};

/* What hooks are when nobody set others: they lease from the page heap. Programs call them too. */
extern PRIVATE const struct extent_hooks extent_hooks_default;

/* NULL: no memory. */
struct extents *extents_make(struct extent_hooks *hooks, bool *arena_has_spare);

/* Below, the caller holds the arena's lock. */

/* A used run out of the extents; 0: none fits. */
uint32_t extents_take(struct extents *extents, size_t pages, size_t align_pages);
/* The extent that such a run is in, when it has one to itself: who notes it spares extents_put a
 * search. NULL: extents may be cut up, and are few. */
struct extent *extent_of_taken(struct extents *extents, uint32_t page);
/* Takes a run back. False: it is in no extent; nothing happened. */
bool extents_put(struct extents *extents, uint32_t page);
/* The same for one of this extent, as pages of this kind. */
void extents_put_into(struct extents *extents, struct extent *extent, uint32_t page, unsigned kind);
/* Adds one that is wholly free, and of that kind. */
void extents_add(struct extents *extents, struct extent *extent, unsigned kind);
/* Takes out an extent that is wholly free, unless it is the only such one or stays. NULL: none. */
struct extent *extents_remove_free(struct extents *extents);
/* Takes out any, for good; the spare ones first, so that no other of them leads to it. NULL: there
 * is none. */
struct extent *extents_remove_any(struct extents *extents);
/* Aborts on a broken invariant. */
void extents_check(struct extents *extents);
/* No more than this is asked for ahead of need. */
void extents_limit_growth(struct extents *extents, size_t bytes);
/* The extent that holds the page; NULL: none does. */
struct extent *extent_of(const struct extents *extents, uint32_t page);

/* Below, the caller holds no lock: the hooks are called. */

/* Its pages may lose their contents; the run is the caller's. True: they have, and cost nothing. */
bool extent_purge(struct extent_hooks *hooks, const struct extent *extent, uint32_t page,
                  unsigned arena);

/* An extent of these bytes. NULL: the hooks have none that can be used. */
struct extent *extent_ask(struct extent_hooks *hooks, size_t bytes, size_t align, unsigned arena);
/* May it be cut up, and put together again? */
bool extent_may_be_cut(struct extent_hooks *hooks, const struct extent *extent, unsigned arena);
/* Gives an extent back. False: they refuse it, and it is as it was; never when it is for good. */
bool extent_give(struct extent_hooks *hooks, struct extent *extent, unsigned arena, bool for_good);

#endif
