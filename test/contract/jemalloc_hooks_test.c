/* jemalloc_hooks_test.c - arenas whose memory hooks supply, through the control names, with
 * jemalloc's answers. */
/* SPDX-License-Identifier: MIT */
#include "arenas.h"

#include <sys/wait.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

static extent_hooks_t *usual_hooks;

/* Windows takes the right to use purged pages back, so the usual hooks refuse there. */
#ifdef _WIN32
enum { USUAL_HOOKS_PURGE = false };
#else
enum { USUAL_HOOKS_PURGE = true };
#endif

/* Fresh pages of the usual hooks; to say that they are not zeros is to say that they were used. */
static void *alloc_used(extent_hooks_t *hooks, void *new_address, size_t bytes, size_t align,
                        bool *zero, bool *commit, unsigned arena)
{
    void *base = usual_hooks->alloc(usual_hooks, new_address, bytes, align, zero, commit, arena);

    (void)hooks;
    *zero = false;
    return base;
}

/* An arena with the usual hooks, but for the one that supplies its memory. */
static unsigned create_arena_with(extent_hooks_t *hooks, extent_alloc_t *alloc)
{
    unsigned arena = create_arena();
    size_t length = sizeof usual_hooks;

    assert_int_equal(control(of_arena(arena, "extent_hooks"), &usual_hooks, &length, NULL, 0), 0);
    *hooks = *usual_hooks;
    hooks->alloc = alloc;
    assert_int_equal(control(of_arena(arena, "extent_hooks"), NULL, NULL, &hooks, sizeof hooks), 0);
    return arena;
}

/* Their free pages are the arena's own, dirty until they are purged; and large blocks are counted
 * as elsewhere. */
static void free_pages_of_hooks_are_counted(const struct check *check)
{
    static extent_hooks_t hooks;
    size_t page = read_size("arenas.page"), dirty, all, left, first, runs;
    size_t first_taken;
    unsigned arena = create_arena_with(&hooks, alloc_used);
    int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE;
    void *block;

    (void)check;
    first = stat(0, "pactive");
    first_taken = stat(0, "large.nmalloc");
    block = take(25 * page, flags);
    dirty = stat(arena, "pdirty");
    assert_true(dirty > 0);
    assert_int_equal(stat(arena, "pactive"), 25);
    assert_int_equal(stat(arena, "resident"), (25 + dirty) * page);
    give(block, flags);
    assert_int_equal(stat(arena, "pactive"), 0);
    all = dirty + 25;
    left = USUAL_HOOKS_PURGE ? 0 : all;
    assert_int_equal(stat(arena, "pdirty"), all);
    assert_int_equal(stat(arena, "retained"), 0);
    assert_int_equal(stat(arena, "large.nmalloc"), stat(arena, "large.ndalloc"));
    assert_int_equal(call_arena(arena, "purge"), 0);
    assert_int_equal(stat(arena, "pdirty"), left);
    assert_int_equal(stat(arena, "retained"), (all - left) * page);
    assert_int_equal(stat(arena, "resident"), left * page);
    runs = 0;
    for (unsigned i = 0; i < 3 + read_unsigned("arenas.nlextents"); i++) {
        char leaf[40];
        snprintf(leaf, sizeof leaf, "extents.%u.nretained", i);
        runs += stat(arena, leaf);
    }
    assert_int_equal(runs, USUAL_HOOKS_PURGE);
    give(take(100, flags), flags); /* its slab may be kept empty until the purge */
    assert_int_equal(call_arena(arena, "purge"), 0);
    assert_int_equal(stat(arena, "pdirty"), left);
    assert_true(stat(0, "pactive") <= first + 1); /* the extent is not the first arena's */
    assert_int_equal(stat(0, "large.nmalloc"), first_taken);
    assert_int_equal(call_arena(arena, "destroy"), 0);
}

static intptr_t decay_ms(const char *name) { return (intptr_t)read_number(name, sizeof(intptr_t)); }

static int set_decay(const char *name, intptr_t ms)
{
    return control(name, NULL, NULL, &ms, sizeof ms);
}

/* What hooks supply is purged when somebody asks, and no longer because of it elsewhere. */
static void an_arena_with_hooks_has_its_own_decay(const struct check *check)
{
    static const char *const leaves[] = { "dirty_decay_ms", "muzzy_decay_ms" };
    static extent_hooks_t hooks;
    unsigned arena = create_arena_with(&hooks, alloc_used);

    (void)check;
    for (unsigned i = 0; i < 2; i++) {
        char all[80], shown[80];
        intptr_t before;

        snprintf(all, sizeof all, "arenas.%s", leaves[i]);
        snprintf(shown, sizeof shown, "stats.arenas.%u.%s", arena, leaves[i]);
        before = decay_ms(all);
        assert_int_equal(decay_ms(of_arena(arena, leaves[i])), before);
        assert_int_equal(set_decay(of_arena(arena, leaves[i]), -2), EFAULT);
        assert_int_equal(set_decay(of_arena(arena, leaves[i]), -1), 0);
        assert_true(decay_ms(of_arena(arena, leaves[i])) == -1);
        next_epoch();
        assert_true(decay_ms(shown) == -1);
        assert_int_equal(decay_ms(all), before);
        assert_int_equal(decay_ms(of_arena(0, leaves[i])), before);
        assert_int_equal(set_decay(of_arena(0, leaves[i]), before + 1), 0);
        assert_int_equal(decay_ms(all), before + 1);
        assert_true(decay_ms(of_arena(arena, leaves[i])) == -1);
        assert_int_equal(set_decay(all, before), 0);
    }
    assert_int_equal(call_arena(arena, "destroy"), 0);
    assert_int_equal(create_arena(), arena);
    assert_int_equal(decay_ms(of_arena(arena, leaves[0])), decay_ms("arenas.dirty_decay_ms"));
    assert_int_equal(call_arena(arena, "destroy"), 0);
}

#ifdef MADV_DONTFORK
static struct {
    void *base;
    size_t bytes;
} kept_from_children;

static void *alloc_kept_from_children(extent_hooks_t *hooks, void *new_address, size_t bytes,
                                      size_t align, bool *zero, bool *commit, unsigned arena)
{
    void *base = usual_hooks->alloc(usual_hooks, new_address, bytes, align, zero, commit, arena);

    (void)hooks;
    if (base == NULL || madvise(base, bytes, MADV_DONTFORK) != 0) return NULL;
    kept_from_children.base = base;
    kept_from_children.bytes = bytes;
    return base;
}

static bool child_has(void *base, size_t bytes)
{
    static unsigned char there[1 << 16];
    int child, status = -1;

    must(bytes / 4096 <= sizeof there);
    child = fork();
    if (child == 0) _exit(mincore(base, bytes, there) == 0 ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status == 0;
}

/* An emulator says yes to this advice, and does nothing. */
static bool pages_are_kept_from_children(void)
{
    size_t bytes = read_size("arenas.page");
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool kept;

    assert_ptr_not_equal(base, MAP_FAILED);
    assert_int_equal(madvise(base, bytes, MADV_DONTFORK), 0);
    kept = !child_has(base, bytes);
    assert_int_equal(munmap(base, bytes), 0);
    return kept;
}

/* What hooks ask of the kernel for pages of the usual ones ends when these take them back. */
static void pages_of_the_usual_hooks_come_back_as_they_were(const struct check *check)
{
    static extent_hooks_t hooks;
    unsigned arena;

    (void)check;
    if (!pages_are_kept_from_children()) return;
    arena = create_arena_with(&hooks, alloc_kept_from_children);
    assert_non_null(take(1 << 20, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE));
    assert_false(child_has(kept_from_children.base, kept_from_children.bytes));
    assert_int_equal(call_arena(arena, "destroy"), 0);
    assert_true(child_has(kept_from_children.base, kept_from_children.bytes));
}
#endif

/* Large blocks that name the arena are counted with it, and come from the hooks. */
static void automatic_arenas_take_hooks(const struct check *check)
{
    static extent_hooks_t hooks;
    extent_hooks_t *table = &hooks, *seen = NULL, *none = NULL;
    size_t length = sizeof usual_hooks, taken, dirty;
    void *block;

    (void)check;
    assert_int_equal(control("arena.0.extent_hooks", &usual_hooks, &length, NULL, 0), 0);
    hooks = *usual_hooks;
    hooks.alloc = alloc_used;
    assert_int_equal(control("arena.0.extent_hooks", NULL, NULL, &none, sizeof none), EFAULT);
    assert_int_equal(control("arena.0.extent_hooks", NULL, NULL, &table, sizeof table), 0);
    assert_int_equal(control("arena.0.extent_hooks", &seen, &length, &usual_hooks, sizeof table),
                     0);
    assert_ptr_equal(seen, table);
    assert_int_equal(control("arena.0.extent_hooks", NULL, NULL, &table, sizeof table), 0);
    taken = stat(0, "large.nmalloc");
    block = take(100000, MALLOCX_ARENA(0));
    assert_int_equal(arena_of(block), 0);
    assert_int_equal(stat(0, "large.nmalloc"), taken + 1);
    dirty = stat(0, "pdirty");
    call.free(block);
    assert_true(stat(0, "pdirty") >= dirty + 100000 / read_size("arenas.page"));
    for (int i = 0; i < 20000; i++) call.free(memset(call.malloc(1 + i % 5000u), 1, 1 + i % 5000u));
    assert_int_equal(call_arena(0, "purge"), 0);
    assert_int_equal(control("arena.0.extent_hooks", NULL, NULL, &usual_hooks, sizeof table), 0);
}

/* Those that no thread has come to yet begin with them. */
static void automatic_arenas_to_come_take_hooks(const struct check *check)
{
    static extent_hooks_t hooks;
    extent_hooks_t *table = &hooks, *seen = NULL;
    size_t length = sizeof usual_hooks;
    unsigned last = read_unsigned("opt.narenas") - 1;

    (void)check;
    assert_int_equal(control(of_arena(last, "extent_hooks"), &usual_hooks, &length, NULL, 0), 0);
    hooks = *usual_hooks;
    hooks.alloc = alloc_used;
    assert_int_equal(control(of_arena(last, "extent_hooks"), &seen, &length, &table, sizeof table),
                     0);
    assert_ptr_equal(seen, usual_hooks);
    assert_int_equal(control(of_arena(last, "extent_hooks"), &seen, &length, NULL, 0), 0);
    assert_ptr_equal(seen, table);
    call.free(take(100000, MALLOCX_ARENA(last)));
    assert_int_equal(
        control(of_arena(last, "extent_hooks"), &seen, &length, &usual_hooks, sizeof table), 0);
    assert_ptr_equal(seen, table);
}

int main(void)
{
    arena_checks_begin();
    check_add((struct check){ .run = free_pages_of_hooks_are_counted },
              "free pages of hooks are counted");
    check_add((struct check){ .run = an_arena_with_hooks_has_its_own_decay },
              "an arena with hooks has a decay of its own");
#ifdef MADV_DONTFORK
    check_add((struct check){ .run = pages_of_the_usual_hooks_come_back_as_they_were },
              "pages of the usual hooks come back as they were");
#endif
    check_add((struct check){ .run = automatic_arenas_take_hooks },
              "extent_hooks of an automatic arena");
    check_add((struct check){ .run = automatic_arenas_to_come_take_hooks },
              "extent_hooks of an automatic arena to come");
    return checks_run("contract jemalloc_hooks");
}
