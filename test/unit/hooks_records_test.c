/* hooks_records_test.c - hooks and the records of what they gave: records that are short, what is
 * refused, and large blocks of prairie's that are lent. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "control_tree.h"
#include "hooks.h"
#include "samples.h"

#include <errno.h>

/* ---- records ---- */

static void *hoard[1 << 16];
static unsigned hoarded;

/* No record of one unit is to be had any more, but for the last so many. */
static void leave_records(unsigned left)
{
    fake_fail_all(true);
    while (hoarded < ARRAY_COUNT(hoard) && (hoard[hoarded] = meta_take(1)) != NULL) hoarded++;
    while (left-- > 0) meta_give(hoard[--hoarded], 1);
}

static void bring_records_back(void)
{
    fake_fail_all(false);
    while (hoarded > 0) meta_give(hoard[--hoarded], 1);
}

/* E1, E2. Returns the pages that are free. */
static size_t check_free(struct extents *extents)
{
    supplied_check(&extents->heap);
    return extents->heap.free_pages[FREE_DIRTY] + extents->heap.free_pages[FREE_CLEAN];
}

static void count_free_run(enum page_state state, size_t pages, void *count)
{
    (void)state, (void)pages;
    ++*(unsigned *)count;
}

static unsigned free_runs(struct extents *extents)
{
    unsigned count = 0;

    supplied_visit_free(&extents->heap, count_free_run, &count);
    return count;
}

static uint32_t take_run(struct arena *arena, size_t pages, size_t align_pages)
{
    uint32_t page;

    lock_take(&arena->lock);
    page = extents_take(arena->extents, pages, align_pages);
    lock_give(&arena->lock);
    return page;
}

/* An aligned run in the middle of a free one, which is aligned to a page only, makes two of
 * that. */
static void a_cut_needs_no_records(void **state)
{
    struct arena *arena = hooked_arena();
    struct extents *extents = arena->extents;
    size_t all = 2 * MiB >> space.page_shift, align = 64 * KiB >> space.page_shift;
    uint32_t page;

    (void)state;
    seen.next = (char *)round_up((uintptr_t)seen.next, 64 * KiB) + page_bytes();
    assert_true(arena_grow(arena, 1, 1));
    leave_records(0);
    page = take_run(arena, 2, align);
    assert_int_not_equal(page, 0);
    assert_int_equal((uintptr_t)page_address(page) % (64 * KiB), 0);
    assert_int_equal(check_free(extents), all - 2);
    assert_int_equal(free_runs(extents), 2);
    prairie_check_all();
    lock_take(&arena->lock);
    assert_true(extents_put(extents, page));
    lock_give(&arena->lock);
    bring_records_back();
    assert_int_equal(check_free(extents), all);
    assert_int_equal(free_runs(extents), 1);
    assert_true(placed_destroy(arena));
    assert_int_equal(seen.bytes_out, 0);
}

/* Every step that takes a record: growing, and a large block. */
static void steps_without_records_change_nothing(void **state)
{
    struct arena *arena = hooked_arena();
    int flags = MALLOCX_ARENA(arena->index);
    char *block = prairie_mallocx(MiB, flags);
    size_t bytes_out = seen.bytes_out, used;

    (void)state;
    used = commit.record_bytes;
    for (unsigned records = 0; records < 6; records++) {
        char *other;

        leave_records(records);
        other = prairie_mallocx(30 * MiB, flags); /* its own, and an extent's */
        assert_true(other == NULL || records >= 2);
        if (other != NULL) prairie_free(other);
        bring_records_back();
        assert_int_equal(check_free(arena->extents)
                             + (prairie_usable_size(block) >> space.page_shift),
                         seen.bytes_out >> space.page_shift);
        if (records < 2) assert_int_equal(seen.bytes_out, bytes_out);
        if (records < 2) assert_int_equal(commit.record_bytes, used);
        prairie_check_all();
    }
    leave_records(0);
    assert_int_equal(prairie_xallocx(block, MiB / 2, 0, flags), MiB / 2); /* it takes none */
    bring_records_back();
    prairie_check_all();
    prairie_free(block);
    assert_true(placed_destroy(arena));
    assert_int_equal(seen.bytes_out, 0);
}

/* What the arena's own extents have free counts as free pages of all do. */
/* In the arena's numbers; of prairie's own address space they are no part. */
static void free_pages_of_hooks_are_counted(void **state)
{
    struct arena *arena = hooked_arena();
    struct prairie_stats before = { .struct_bytes = sizeof before }, after = before;
    char *block = prairie_mallocx(MiB, MALLOCX_ARENA(arena->index));
    uint64_t counted;

    (void)state;
    assert_non_null(block);
    assert_true(prairie_stats_read(&before));
    prairie_free(block);
    assert_true(prairie_stats_read(&after));
    assert_int_equal(before.active - after.active, MiB);
    assert_int_equal(after.dirty + after.clean, before.dirty + before.clean);
    lock_take(&control_lock);
    counted = snapshot_take()->all.dirty - after.dirty;
    lock_give(&control_lock);
    assert_int_equal(counted, 2 * MiB);
    assert_true(placed_destroy(arena));
}

static bool dalloc_without_records(struct extent_hooks *hooks, void *base, size_t bytes,
                                   bool committed, unsigned arena)
{
    (void)hooks, (void)base, (void)bytes, (void)committed, (void)arena;
    leave_records(0);
    return true;
}

/* An extent that is refused comes back into the arena without a record more. */
static void refused_extents_come_back(void **state)
{
    struct arena *arena = hooked_arena();
    struct extent_hooks hooks = test_hooks;
    void *blocks[3];

    (void)state;
    hooks.dalloc = dalloc_without_records;
    (void)arena_set_hooks(arena, &hooks);
    for (unsigned i = 0; i < 3; i++)
        blocks[i] = prairie_mallocx(3 * MiB << i, MALLOCX_ARENA(arena->index));
    for (unsigned i = 0; i < 3; i++) {
        prairie_free(blocks[i]);
        bring_records_back();
        (void)check_free(arena->extents);
    }
    assert_true(placed_destroy(arena));
    bring_records_back();
    assert_int_equal(seen.destroys, seen.allocs);
    assert_int_equal(seen.bytes_out, 0);
    prairie_check_all();
}

static bool refuse_sometimes(unsigned one_in) { return random_below(one_in) == 0; }

static void *fickle_alloc(struct extent_hooks *hooks, void *new_address, size_t bytes, size_t align,
                          bool *zero, bool *commit, unsigned arena)
{
    if (refuse_sometimes(4)) return NULL;
    seen.uncommitted = refuse_sometimes(4);
    if (seen.next + bytes + align > seen.end) seen.next = seen.end - OUTSIDE_MIB * MiB;
    if (foreign_overlaps(seen.next, bytes + align)) return NULL;
    return test_alloc(hooks, new_address, bytes, align, zero, commit, arena);
}

static bool fickle_dalloc(struct extent_hooks *hooks, void *base, size_t bytes, bool committed,
                          unsigned arena)
{
    seen.refuse_dalloc = refuse_sometimes(3);
    return test_dalloc(hooks, base, bytes, committed, arena);
}

static bool fickle_commit(struct extent_hooks *hooks, void *base, size_t bytes, size_t offset,
                          size_t length, unsigned arena)
{
    seen.refuse_commit = refuse_sometimes(3);
    return test_commit(hooks, base, bytes, offset, length, arena);
}

static bool fickle_purge(struct extent_hooks *hooks, void *base, size_t bytes, size_t offset,
                         size_t length, unsigned arena)
{
    (void)hooks, (void)bytes, (void)arena;
    if (refuse_sometimes(2)) return true;
    memset((char *)base + offset, 0, length);
    return false;
}

/* But for those of places of foreign extents, which stay for the next memory of their length
 * (space/foreign.h). */
static size_t returning_records(void) { return commit.record_bytes - inside_places_bytes(); }

/* Hooks and the kernel refuse at any point; what the end of the arena finds is all there, and all
 * records. */
static void whatever_is_refused_comes_back(void **state)
{
    struct extent_hooks hooks = { fickle_alloc, fickle_dalloc, test_destroy, fickle_commit, NULL,
                                  fickle_purge, fickle_purge,  test_split,   test_merge };
    struct arena *arena = hooked_arena();
    size_t used = 0;

    (void)state;
    for (unsigned round = 0; round < 40; round++) {
        char *live[60] = { NULL };

        (void)arena_set_hooks(arena, &hooks);
        for (unsigned i = 0; i < 600; i++) {
            unsigned at = (unsigned)random_below(ARRAY_COUNT(live));
            int flags = MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE;

            if (random_below(3) == 0) leave_records((unsigned)random_below(3));
            if (random_below(20) == 0) flags |= MALLOCX_ALIGN(64 * KiB);
            if (live[at] == NULL) live[at] = prairie_mallocx(1 + random_below(600000), flags);
            else if (random_below(3) != 0) prairie_free(live[at]), live[at] = NULL;
            else (void)prairie_xallocx(live[at], 1 + random_below(600000), 0, flags);
            bring_records_back();
            if (random_below(30) == 0) arena_purge(arena);
            (void)check_free(arena->extents);
        }
        prairie_check_all();
        assert_true(placed_destroy(arena));
        assert_int_equal(seen.bytes_out, 0);
        prairie_check_all();
        assert_ptr_equal(arena_create(), arena);
        if (round == 0) used = returning_records();
        assert_int_equal(returning_records(), used);
    }
}

/* What destroyed arenas had counted is known, but there is no room to copy it into. */
static void numbers_of_the_past_want_a_record(void **state)
{
    uint64_t number = 1;
    size_t length = sizeof number;

    (void)state;
    assert_true(placed_destroy(hooked_arena()));
    assert_int_equal(control_by_name("epoch", NULL, NULL, &number, sizeof number), 0);
    leave_records(0);
    while (meta_take(sizeof(struct snapshot_arena)) != NULL) {}
    assert_int_equal(control_by_name("stats.arenas.4097.small.nmalloc", &number, &length, NULL, 0),
                     EAGAIN);
    fake_fail_all(false);
    assert_int_equal(control_by_name("stats.arenas.4097.small.nmalloc", &number, &length, NULL, 0),
                     0);
}

/* ---- hooks that lend large blocks of prairie's ---- */

static void *lending_alloc(struct extent_hooks *hooks, void *new_address, size_t bytes,
                           size_t align, bool *zero, bool *commit, unsigned arena)
{
    (void)hooks, (void)new_address, (void)zero, (void)commit, (void)arena;
    errno = EIO;
    return prairie_aligned_alloc(align, bytes);
}

static bool lending_dalloc(struct extent_hooks *hooks, void *base, size_t bytes, bool committed,
                           unsigned arena)
{
    (void)hooks, (void)bytes, (void)committed, (void)arena;
    errno = EIO;
    prairie_check_all();
    if (seen.refuse_dalloc) return true;
    prairie_free(base);
    return false;
}

static void lending_destroy(struct extent_hooks *hooks, void *base, size_t bytes, bool committed,
                            unsigned arena)
{
    (void)hooks, (void)bytes, (void)committed, (void)arena;
    errno = EIO;
    prairie_free(base);
}

static bool lending_purge(struct extent_hooks *hooks, void *base, size_t bytes, size_t offset,
                          size_t length, unsigned arena)
{
    (void)hooks, (void)base, (void)bytes, (void)offset, (void)length, (void)arena;
    errno = EIO;
    return true;
}

/* The walker runs in the middle of what is asked of a new extent. */
static bool lending_split(struct extent_hooks *hooks, void *base, size_t bytes, size_t bytes_a,
                          size_t bytes_b, bool committed, unsigned arena)
{
    errno = EIO;
    prairie_check_all();
    return test_split(hooks, base, bytes, bytes_a, bytes_b, committed, arena);
}

static struct extent_hooks lending_hooks = { lending_alloc, lending_dalloc, lending_destroy,
                                             NULL,          NULL,           lending_purge,
                                             lending_purge, lending_split,  test_merge };

/* Takes, gives and purges; errno stays as it was all the time. */
static void use_lent(struct arena *arena)
{
    int flags = MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE;
    /* A slab of some pages would be lent as a small block. */
    size_t least = seen.refuse_split ? 2 * SMALL_BYTES_MAX : 100;
    void *blocks[6];

    errno = 77;
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) {
        blocks[i] = prairie_mallocx(i % 2 != 0 ? 3 * MiB << i / 2 : least, flags);
        assert_non_null(blocks[i]);
        assert_ptr_equal(arena_of_address(blocks[i]), arena);
        memset(blocks[i], 1, 100);
        prairie_check_all();
    }
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) {
        prairie_free(blocks[i]);
        prairie_check_all();
    }
    arena_purge(arena);
    assert_int_equal(errno, 77);
}

static void expect_lent(bool refuse_dalloc, bool refuse_split)
{
    size_t bytes = allocated_bytes();
    struct arena *arena = arena_create();

    seen.refuse_dalloc = refuse_dalloc;
    seen.refuse_split = refuse_split;
    (void)arena_set_hooks(arena, &lending_hooks);
    use_lent(arena);
    assert_true(placed_destroy(arena));
    assert_int_equal(errno, 77);
    assert_int_equal(allocated_bytes(), bytes);
    prairie_check_all();
}

/* An extent that may not be cut up, and is not taken back, stays in the arena until its end. */
static void what_may_not_be_cut_is_not_lost(void **state)
{
    struct arena *arena = hooked_arena();
    size_t bytes;

    (void)state;
    seen.refuse_split = seen.refuse_dalloc = true;
    prairie_free(prairie_mallocx(100, MALLOCX_ARENA(arena->index)));
    bytes = seen.bytes_out;
    assert_true(bytes > 2 * MiB);
    (void)check_free(arena->extents);
    assert_ptr_equal(arena_of_address(prairie_mallocx(2 * MiB, MALLOCX_ARENA(arena->index))),
                     arena);
    assert_int_equal(seen.bytes_out, bytes);
    seen.refuse_dalloc = false;
    assert_true(placed_destroy(arena));
    assert_int_equal(seen.bytes_out, 0);
    assert_int_equal(seen.destroys, 0);
    prairie_check_all();
}

static void blocks_of_prairie_are_lent(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    for (unsigned way = 0; way < 4; way++) expect_lent(way % 2 != 0, way / 2 != 0);
}

/* Their samples live as long as the blocks. */
static void sampled_blocks_are_lent(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    sample_from_now(1);
    for (unsigned way = 0; way < 4; way++) expect_lent(way % 2 != 0, way / 2 != 0);
    assert_int_equal(estimate_now().live, 0);
    assert_true(estimate_now().taken > 0);
}

/* ---- a block that is older than the hooks ---- */

static void a_block_older_than_the_hooks_is_resized(void **state)
{
    struct arena *arena;
    unsigned char *block;
    size_t used;
    int flags;

    (void)state;
    prairie_free(prairie_malloc(1));
    (void)prairie_purge();
    used = page_heaps_used();
    arena = arena_create();
    flags = MALLOCX_ARENA(arena->index);
    block = prairie_mallocx(MiB, flags);
    memset(block, 7, MiB);
    (void)arena_set_hooks(arena, &test_hooks);
    assert_int_equal(prairie_xallocx(block, MiB / 2, 0, flags), MiB / 2);
    prairie_check_all();
    assert_int_equal(prairie_xallocx(block, MiB / 2 + MiB / 4, 0, flags), MiB / 2 + MiB / 4);
    assert_ptr_equal(prairie_realloc(block, MiB / 4), block);
    assert_true(all_bytes_are(block, 7, MiB / 4));
    prairie_check_all();
    assert_int_equal(page_heaps_used(), used + (MiB / 4 >> space.page_shift));
    assert_true(placed_destroy(arena));
    assert_int_equal(page_heaps_used(), used);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(a_cut_needs_no_records), UNIT_TEST(steps_without_records_change_nothing),
          UNIT_TEST(free_pages_of_hooks_are_counted), UNIT_TEST(refused_extents_come_back),
          UNIT_TEST(whatever_is_refused_comes_back),
          UNIT_TEST(a_block_older_than_the_hooks_is_resized),
          UNIT_TEST(numbers_of_the_past_want_a_record), UNIT_TEST(what_may_not_be_cut_is_not_lost),
          UNIT_TEST(blocks_of_prairie_are_lent), UNIT_TEST(sampled_blocks_are_lent))
