/* hooks.h - hooks that tell what was asked of them, and an arena that has them. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_UNIT_HOOKS_H
#define PRAIRIE_TEST_UNIT_HOOKS_H

#include "unit.h"

#include <jemalloc/jemalloc.h>

#include <sys/mman.h>

_Static_assert(sizeof(extent_hooks_t) == sizeof(struct extent_hooks), "one table under two names");

static struct {
    unsigned allocs, dallocs, destroys, commits, splits, merges;
    size_t bytes_out;        /* given and not taken back */
    size_t largest, refused; /* refuse requests from this size on */
    bool refuse_dalloc, refuse_split, refuse_merge, uncommitted, refuse_commit, from_default;
    char *next, *end; /* memory that is not prairie's */
    void *nested;
    const void *closed; /* what was not committed last */
    unsigned arena;
} seen;

static inline void *test_alloc(struct extent_hooks *hooks, void *new_address, size_t bytes,
                               size_t align, bool *zero, bool *commit, unsigned arena)
{
    char *base;

    assert_null(new_address);
    assert_int_equal(bytes % page_bytes(), 0);
    assert_true(is_power_of_two(align) && align >= page_bytes());
    assert_false(lock_is_mine(&arenas[arena]->lock) && CHECKED);
    seen.arena = arena;
    prairie_free(prairie_malloc(100)); /* hooks may allocate */
    if (seen.refused != 0 && bytes >= seen.refused) return NULL;
    if (seen.from_default) {
        base = extent_hooks_default.alloc(hooks, NULL, bytes, align, zero, commit, arena);
    } else {
        base = (char *)round_up((uintptr_t)seen.next, align);
        if (base + bytes > seen.end) return NULL;
        seen.next = base + bytes;
        memset(base, 0x77, bytes);
    }
    if (base == NULL) return NULL;
    if (base == seen.closed) seen.closed = NULL;
    if (seen.uncommitted) *commit = false;
    seen.allocs++;
    seen.bytes_out += bytes;
    if (bytes > seen.largest) seen.largest = bytes;
    return base;
}

static inline bool test_dalloc(struct extent_hooks *hooks, void *base, size_t bytes, bool committed,
                               unsigned arena)
{
    assert_int_equal(committed, base != seen.closed);
    if (seen.refuse_dalloc) return true;
    seen.dallocs++;
    seen.bytes_out -= bytes;
    if (seen.from_default)
        assert_false(extent_hooks_default.dalloc(hooks, base, bytes, committed, arena));
    return false;
}

static inline void test_destroy(struct extent_hooks *hooks, void *base, size_t bytes,
                                bool committed, unsigned arena)
{
    (void)hooks, (void)base, (void)committed, (void)arena;
    seen.destroys++;
    seen.bytes_out -= bytes;
}

static inline bool test_commit(struct extent_hooks *hooks, void *base, size_t bytes, size_t offset,
                               size_t length, unsigned arena)
{
    (void)hooks, (void)arena;
    assert_int_equal(offset, 0);
    assert_int_equal(bytes, length);
    seen.commits++;
    if (seen.refuse_commit) seen.closed = base;
    return seen.refuse_commit;
}

static inline bool test_split(struct extent_hooks *hooks, void *base, size_t bytes, size_t bytes_a,
                              size_t bytes_b, bool committed, unsigned arena)
{
    (void)hooks, (void)base, (void)committed, (void)arena;
    assert_int_equal(bytes, bytes_a + bytes_b);
    seen.splits++;
    return seen.refuse_split;
}

static inline bool test_merge(struct extent_hooks *hooks, void *base_a, size_t bytes_a,
                              void *base_b, size_t bytes_b, bool committed, unsigned arena)
{
    (void)hooks, (void)bytes_b, (void)committed, (void)arena;
    assert_ptr_equal((char *)base_a + bytes_a, base_b);
    seen.merges++;
    return seen.refuse_merge;
}

static struct extent_hooks test_hooks = { test_alloc, test_dalloc, test_destroy, test_commit, NULL,
                                          NULL,       NULL,        test_split,   test_merge };

enum { OUTSIDE_MIB = 64 };

static inline struct arena *hooked_arena(void)
{
    struct arena *arena;

    prairie_free(prairie_malloc(1));
    seen.next = mmap(NULL, OUTSIDE_MIB * MiB, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(seen.next, MAP_FAILED);
    seen.end = seen.next + OUTSIDE_MIB * MiB;
    arena = arena_create();
    assert_ptr_equal(arena_set_hooks(arena, &test_hooks), &extent_hooks_default);
    assert_ptr_equal(arena_hooks(arena), &test_hooks);
    return arena;
}

/* Of memory that they gave for the last such arena. */
static inline bool is_of_hooks(const void *block)
{
    return (const char *)block >= seen.end - OUTSIDE_MIB * MiB && (const char *)block < seen.end;
}

/* A manual one, of a process that has started. */
static inline struct arena *new_arena(void)
{
    struct arena *arena;

    prairie_free(prairie_malloc(1));
    arena = arena_create();
    assert_non_null(arena);
    return arena;
}

static inline size_t allocated_bytes(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };

    assert_true(prairie_stats_read(&stats));
    return stats.allocated;
}

#endif
