/* extents_test.c - arenas whose memory the program supplies: from the default hooks, from
 * elsewhere, or not at all; and what is asked of which hook. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "heap/hardened.h"
#include "hooks.h"

/* Blocks of all kinds, filled, checked, resized and freed in changing order. */
static void use_arena(struct arena *arena, unsigned rounds)
{
    enum { COUNT = 120 };
    struct {
        unsigned char *block;
        size_t size;
    } live[COUNT] = { { NULL, 0 } };
    unsigned cache = explicit_cache_create();

    for (unsigned round = 0; round < rounds; round++) {
        unsigned at = (unsigned)random_below(COUNT);
        int flags =
            MALLOCX_ARENA(arena->index) | (round % 3 ? MALLOCX_TCACHE(cache) : MALLOCX_TCACHE_NONE);
        size_t size = 1 + random_below(round % 16 ? 3000 : 120000);
        if (round % 5 == 0) flags |= MALLOCX_ALIGN(64);
        if (round % 64 == 0) flags |= MALLOCX_ALIGN(16384);
        if (live[at].block != NULL) {
            assert_true(all_bytes_are(live[at].block, (unsigned char)live[at].size, live[at].size));
            if (round % 7 == 0) {
                unsigned char *block = prairie_rallocx(live[at].block, size, flags);
                assert_non_null(block);
                assert_true(all_bytes_are(block, (unsigned char)live[at].size,
                                          min_size(size, live[at].size)));
                live[at].block = block;
            } else {
                if (round % 2) prairie_free(live[at].block);
                else prairie_dallocx(live[at].block, flags);
                live[at].block = prairie_mallocx(size, flags | MALLOCX_ZERO);
                assert_non_null(live[at].block);
                assert_true(all_bytes_are(live[at].block, 0, size));
            }
        } else {
            live[at].block = prairie_mallocx(size, flags);
        }
        assert_non_null(live[at].block);
        assert_ptr_equal(arena_of_address(live[at].block), arena);
        live[at].size = size;
        memset(live[at].block, (unsigned char)size, size);
        if (round % 50 == 0) prairie_check_all();
    }
    for (unsigned i = 0; i < COUNT; i++)
        if (live[i].block != NULL) prairie_free(live[i].block);
    explicit_cache_destroy(cache);
    prairie_check_all();
}

static void memory_from_elsewhere(void **state)
{
    struct arena *arena = hooked_arena();
    char *start = seen.next, *block;

    (void)state;
    block = prairie_mallocx(100, MALLOCX_ARENA(arena->index));
    assert_true(block >= start && block < seen.end);
    prairie_free(block);
    block = prairie_mallocx(200000, MALLOCX_ARENA(arena->index));
    assert_true(block >= start && block < seen.end);
    assert_int_equal(prairie_usable_size(block), prairie_nallocx(200000, 0));
    prairie_free(block);
    assert_int_equal(seen.arena, arena->index);
    use_arena(arena, 2000);
    assert_int_equal(allocated_bytes(), 0);
    assert_true(placed_destroy(arena));
    assert_int_equal(seen.bytes_out, 0);
    prairie_check_all();
    assert_int_equal(page_at(start), 0);
}

static void memory_from_the_default_hooks(void **state)
{
    struct arena *arena = hooked_arena();

    (void)state;
    seen.from_default = true;
    use_arena(arena, 2000);
    assert_true(seen.allocs > 0);
    assert_true(placed_destroy(arena));
    assert_int_equal(seen.bytes_out, 0);
    assert_int_equal(allocated_bytes(), 0);
    prairie_check_all();
}

/* The default hooks, called as a chained hook calls them. They take back what they gave, whole, and
 * nothing else. */
static void the_default_hooks_take_back_what_they_gave(void **state)
{
    struct extent_hooks hooks = extent_hooks_default, *own = &hooks;
    size_t bytes;
    uint64_t leases_before;
    bool zero = true, committed = false;
    char *base, *small;

    (void)state;
    small = prairie_malloc(100);
    bytes = 10 * page_bytes();
    leases_before = page_heap->leases;
    assert_null(own->alloc(own, small, bytes, 1, &zero, &committed, 1));
    assert_null(own->alloc(own, NULL, 0, 1, &zero, &committed, 1));
    assert_null(own->alloc(own, NULL, ((size_t)space.page_count_max << space.page_shift) + 1, 1,
                           &zero, &committed, 1));
    assert_int_equal(page_heap->leases, leases_before);
    base = own->alloc(own, NULL, bytes, 16 * page_bytes(), &zero, &committed, 1);
    assert_non_null(base);
    assert_int_equal((uintptr_t)base % (16 * page_bytes()), 0);
    assert_true(zero && committed);
    assert_true(all_bytes_are(base, 0, bytes));
    assert_int_equal(page_heap->leases, leases_before + 1);
    memset(base, 1, bytes);

    assert_true(own->dalloc(own, base + page_bytes(), bytes - page_bytes(), true, 1));
    assert_true(own->dalloc(own, base, bytes - page_bytes(), true, 1));
    assert_true(own->dalloc(own, base, bytes + 1, true, 1));
    assert_true(own->dalloc(own, small, page_bytes(), true, 1));
    assert_true(own->dalloc(own, &zero, bytes, true, 1));
    assert_true(all_bytes_are(base, 1, bytes));

    assert_false(own->commit(own, base, bytes, 0, bytes, 1));
    assert_true(own->decommit(own, base, bytes, 0, bytes, 1));
    assert_false(own->split(own, base, bytes, bytes / 2, bytes / 2, true, 1));
    assert_false(own->merge(own, base, bytes / 2, base + bytes / 2, bytes / 2, true, 1));
    assert_true(own->merge(own, base, bytes / 2, base + bytes, bytes / 2, true, 1));
    if (!OS_PURGE_CLOSES) {
        assert_false(own->purge_forced(own, base, bytes, page_bytes(), page_bytes(), 1));
        assert_true(all_bytes_are(base, 1, page_bytes()));
        assert_true(all_bytes_are(base + page_bytes(), 0, page_bytes()));
        assert_true(all_bytes_are(base + 2 * page_bytes(), 1, bytes - 2 * page_bytes()));
    }

    assert_false(own->dalloc(own, base, bytes, true, 1));
    assert_true(own->dalloc(own, base, bytes, true, 1)); /* it is free */
    zero = true;
    base = own->alloc(own, NULL, bytes, 1, &zero, &committed, 1);
    assert_true(all_bytes_are(base, 0, bytes));
    own->destroy(own, base, bytes, true, 1);
    assert_true(own->dalloc(own, base, bytes, true, 1));
    prairie_free(small);
    prairie_check_all();
}

/* Pages come back as a new mapping, clean; or as they are, where there is none. What the kernel
 * closed and would not commit again is lost, and nothing else. */
static void the_default_hooks_take_back_new_pages(void **state)
{
    struct extent_hooks hooks = extent_hooks_default, *own = &hooks;
    size_t bytes;
    uint64_t closes;
    bool zero = false, committed = false;
    char *base;

    (void)state;
    prairie_free(prairie_malloc(1));
    bytes = 10 * page_bytes();
    base = own->alloc(own, NULL, bytes, 1, &zero, &committed, 1);
    memset(base, 1, bytes);
    closes = fake_calls(FAKE_CLOSE);
    assert_false(own->dalloc(own, base, bytes, true, 1));
    assert_int_equal(fake_calls(FAKE_CLOSE), closes + 1);
    assert_int_equal(page_record(page_at(base))->state, PAGE_CLEAN);
    assert_true(fake_is_committed(base, bytes));

    base = own->alloc(own, NULL, bytes, 1, &zero, &committed, 1);
    fake_fail_kind(FAKE_CLOSE, true);
    assert_false(own->dalloc(own, base, bytes, true, 1));
    fake_fail_kind(FAKE_CLOSE, false);
    assert_int_equal(page_record(page_at(base))->state, PAGE_DIRTY);

    base = own->alloc(own, NULL, bytes, 1, &zero, &committed, 1);
    fake_fail_kind(FAKE_COMMIT, true);
    assert_false(own->dalloc(own, base, bytes, true, 1));
    fake_fail_kind(FAKE_COMMIT, false);
    assert_int_equal(page_record(page_at(base))->state, PAGE_USED);
    prairie_check_all();
}

/* A hook may hand out a large block of prairie's own. */
static void *malloc_alloc(struct extent_hooks *hooks, void *new_address, size_t bytes, size_t align,
                          bool *zero, bool *commit, unsigned arena)
{
    (void)hooks, (void)new_address, (void)zero, (void)commit, (void)arena;
    return prairie_aligned_alloc(align, bytes);
}

static bool malloc_dalloc(struct extent_hooks *hooks, void *base, size_t bytes, bool committed,
                          unsigned arena)
{
    (void)hooks, (void)bytes, (void)committed, (void)arena;
    prairie_free(base);
    return false;
}

static void memory_from_malloc(void **state)
{
    static struct extent_hooks hooks = {
        .alloc = malloc_alloc, .dalloc = malloc_dalloc, .split = test_split, .merge = test_merge
    };
    struct arena *arena = hooked_arena();

    (void)state;
    assert_ptr_equal(arena_set_hooks(arena, &hooks), &test_hooks);
    use_arena(arena, 1000);
    assert_true(placed_destroy(arena));
    assert_int_equal(allocated_bytes(), 0);
    prairie_check_all();
}

/* In a hardened process as well, where such a block has no page more behind it. */
static void memory_from_malloc_of_a_hardened_process(void **state)
{
    static struct extent_hooks hooks = {
        .alloc = malloc_alloc, .dalloc = malloc_dalloc, .split = test_split, .merge = test_merge
    };
    const size_t sizes[] = { 100, 20000, 3 * MiB };
    struct arena *arena;
    char *block;

    (void)state;
    assert_true(hardened_start());
    arena = hooked_arena();
    assert_ptr_equal(arena_set_hooks(arena, &hooks), &test_hooks);
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        block = prairie_mallocx(sizes[i], MALLOCX_ARENA(arena->index));
        assert_non_null(block);
        assert_ptr_equal(arena_of_address(block), arena);
        memset(block, 1, sizes[i]);
        prairie_check_all();
        if (i != 0) prairie_free(block);
    }
    block = prairie_malloc(100000); /* others have one */
    assert_int_equal(prairie_usable_size(block), 100000);
    prairie_free(block);
    assert_true(placed_destroy(arena));
    prairie_check_all();
}

static void extents_are_asked_for_in_growing_pieces(void **state)
{
    struct arena *arena = hooked_arena();

    (void)state;
    assert_non_null(prairie_mallocx(100, MALLOCX_ARENA(arena->index)));
    assert_int_equal(seen.allocs, 1);
    assert_int_equal(seen.largest, 2 * MiB);
    for (unsigned i = 0; i < 100; i++)
        assert_non_null(prairie_mallocx(50000, MALLOCX_ARENA(arena->index)));
    assert_true(seen.allocs <= 3);
    assert_true(seen.largest >= 4 * MiB);
    arena_reset(arena);
    assert_true(seen.dallocs > 0);
    prairie_check_all();
}

/* Each is twice as long as the one before, until the limit, which is whole pages. */
static void each_extent_is_twice_the_one_before(void **state)
{
    static const size_t asked[] = { 2 * MiB, 4 * MiB, 8 * MiB, 12 * MiB, 12 * MiB, 5 * 4096 };
    struct arena *arena = hooked_arena();
    size_t before = 0;

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(asked); i++) {
        unsigned allocs = seen.allocs;

        while (seen.allocs == allocs)
            assert_non_null(prairie_mallocx(i < 5 ? MiB : 4 * 4096, MALLOCX_ARENA(arena->index)));
        assert_int_equal(seen.bytes_out - before, asked[i]);
        before = seen.bytes_out;
        if (i == 1) extents_limit_growth(arena->extents, 12 * MiB + 100);
        if (i == 4) extents_limit_growth(arena->extents, 6 * 4096 - 1);
    }
    prairie_check_all();
}

static void failing_destroy(struct extent_hooks *hooks, void *base, size_t bytes, bool committed,
                            unsigned arena)
{
    test_destroy(hooks, base, bytes, committed, arena);
    errno = EBUSY;
}

static void the_end_of_an_arena_keeps_errno(void **state)
{
    struct extent_hooks hooks = test_hooks;
    struct arena *arena = hooked_arena();

    (void)state;
    hooks.destroy = failing_destroy;
    hooks.dalloc = NULL; /* what is free stays until the end */
    assert_ptr_equal(arena_set_hooks(arena, &hooks), &test_hooks);
    assert_non_null(prairie_mallocx(100000, MALLOCX_ARENA(arena->index)));
    errno = ENOTTY;
    assert_true(placed_destroy(arena));
    assert_int_equal(errno, ENOTTY);
    assert_true(seen.destroys > 0);
}

/* A large block that is refused leaves no record behind. */
static void a_refused_block_has_no_record(void **state)
{
    struct arena *arena = hooked_arena();
    int flags = MALLOCX_ARENA(arena->index);
    size_t records = 0;

    (void)state;
    seen.refused = 1;
    for (unsigned i = 0; i < 100; i++) {
        if (i == 1) records = commit.record_bytes;
        assert_null(prairie_mallocx(100000, flags));
    }
    assert_int_equal(commit.record_bytes, records);
    prairie_check_all();
}

/* Without more than is wanted, what is wanted will do. */
static void large_requests_are_refused(void **state)
{
    struct arena *arena = hooked_arena();
    int flags = MALLOCX_ARENA(arena->index);

    (void)state;
    seen.refused = 1 * MiB;
    assert_non_null(prairie_mallocx(100, flags));
    assert_non_null(prairie_mallocx(100000, flags));
    errno = 0;
    assert_null(prairie_mallocx(2 * MiB, flags));
    assert_int_equal(errno, ENOMEM);
    seen.refused = 1;
    assert_null(prairie_mallocx(500000, flags));
    prairie_check_all();
}

static void extents_that_may_not_be_cut(void **state)
{
    for (unsigned who = 0; who < 3; who++) {
        struct extent_hooks hooks = test_hooks;
        struct arena *arena;

        memset(&seen, 0, sizeof seen);
        arena = hooked_arena();
        if (who == 0) seen.refuse_split = true;
        if (who == 1) seen.refuse_merge = true;
        if (who == 2) hooks.split = NULL;
        (void)arena_set_hooks(arena, &hooks);
        use_arena(arena, 500);
        assert_true(seen.splits <= 1 && seen.merges <= 1);
        assert_true(arena->extents->whole);
        assert_true(placed_destroy(arena));
        assert_int_equal(seen.bytes_out, 0);
    }
    (void)state;
}

/* Where each block has an extent, the list of all is followed neither for one that comes back nor
 * for one that is taken again: it is damaged here. */
static void extents_in_use_are_passed_by(void **state)
{
    struct page_piece *list;
    struct arena *arena;
    int flags;
    void *blocks[5];

    (void)state;
    arena = hooked_arena();
    flags = (int)(MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
    seen.refuse_split = true;
    for (unsigned i = 0; i < 5; i++) assert_non_null(blocks[i] = prairie_mallocx(100000, flags));
    assert_true(arena->extents->whole);
    prairie_free(blocks[1]); /* spare */
    list = arena->extents->heap.pieces;
    arena->extents->heap.pieces = (struct page_piece *)(uintptr_t)1;
    assert_ptr_equal(prairie_mallocx(100000, flags), blocks[1]);
    prairie_free(blocks[3]);
    arena->extents->heap.pieces = list;
    prairie_check_all();
    prairie_free(blocks[1]);
    assert_int_equal(seen.dallocs, 2); /* the first one that was not to be cut, and this or that */
    assert_true(placed_destroy(arena));
    assert_int_equal(seen.bytes_out, 0);
}

static void *to_free;

static uint64_t locks_of_free(const struct arena *arena)
{
    uint64_t before = lock_numbers(&arena->lock).taken;

    prairie_free(to_free);
    return lock_numbers(&arena->lock).taken - before;
}

/* Runs that are free in one extent, or in two that are in use, are no reason to look for more. */
static void hooks_are_thought_of_when_an_extent_is_spare(void **state)
{
    struct arena *arena = hooked_arena();
    int flags = (int)(MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
    void *blocks[64], *small[2];

    (void)state;
    for (unsigned i = 0; i < 64; i++) assert_non_null(blocks[i] = prairie_mallocx(100000, flags));
    for (unsigned i = 0; i < 2; i++) assert_non_null(small[i] = prairie_mallocx(64, flags));
    for (unsigned i = 0; i < 64; i += 4) {
        to_free = blocks[i];
        assert_int_equal(locks_of_free(arena), 1);
    }
    to_free = small[0];
    assert_int_equal(locks_of_free(arena), 1);
    prairie_check_all();
    for (unsigned i = 0; i < 64; i++)
        if (i % 4 != 0) prairie_free(blocks[i]);
    assert_true(seen.dallocs > 0);
    assert_true(placed_destroy(arena));
    assert_int_equal(seen.bytes_out, 0);
}

/* A block that cannot be cut is moved to become smaller, with all that the new one has room for. */
static void a_shorter_block_keeps_its_usable_bytes(void **state)
{
    struct extent_hooks hooks = test_hooks;
    struct arena *arena = hooked_arena();
    unsigned char *block, *moved;

    (void)state;
    hooks.split = NULL;
    (void)arena_set_hooks(arena, &hooks);
    block = prairie_mallocx(100000, MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
    memset(block, 7, prairie_usable_size(block));
    moved = prairie_realloc(block, 50001);
    assert_ptr_not_equal(moved, block);
    assert_true(all_bytes_are(moved, 7, prairie_usable_size(moved)));
    prairie_free(moved);
    prairie_check_all();
}

static void memory_that_must_be_committed(void **state)
{
    struct arena *arena = hooked_arena();

    (void)state;
    seen.uncommitted = true;
    assert_non_null(prairie_mallocx(100, MALLOCX_ARENA(arena->index)));
    assert_int_equal(seen.commits, 1);
    seen.refuse_commit = true;
    assert_null(prairie_mallocx(30 * MiB, MALLOCX_ARENA(arena->index)));
    assert_true(seen.dallocs > 0);
    prairie_check_all();
}

/* Who refuses to take memory back keeps it in the arena, and is told when that ends. */
static void memory_that_stays(void **state)
{
    struct arena *arena = hooked_arena();
    void *block;

    (void)state;
    seen.refuse_dalloc = true;
    for (unsigned i = 0; i < 20; i++) {
        block = prairie_mallocx(3 * MiB, MALLOCX_ARENA(arena->index));
        prairie_free(block);
    }
    assert_true(seen.allocs <= 2);
    use_arena(arena, 500);
    assert_true(placed_destroy(arena));
    assert_int_equal(seen.dallocs, 0);
    assert_int_equal(seen.destroys, seen.allocs);
    assert_int_equal(seen.bytes_out, 0);
    prairie_check_all();
}

/* A thread that is bound to such an arena, whose hooks allocate. */
static void a_bound_thread(void **state)
{
    struct arena *arena = hooked_arena(), *before = thread_arena();
    void *blocks[500];

    (void)state;
    thread_bind(arena);
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) {
        blocks[i] = prairie_malloc(1 + random_below(10000));
        assert_ptr_equal(arena_of_address(blocks[i]), arena);
    }
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) prairie_free(blocks[i]);
    thread_bind(before);
    assert_true(placed_destroy(arena));
    assert_int_equal(seen.bytes_out, 0);
    assert_int_equal(allocated_bytes(), 0);
    prairie_check_all();
}

static void large_blocks_move_their_end(void **state)
{
    struct arena *arena = hooked_arena();
    int flags = MALLOCX_ARENA(arena->index);
    char *block = prairie_mallocx(MiB, flags);

    (void)state;
    assert_int_equal(prairie_xallocx(block, MiB / 2, 0, flags), MiB / 2);
    assert_int_equal(prairie_xallocx(block, MiB, 0, flags), MiB);
    assert_int_equal(prairie_xallocx(block, 60 * MiB, 0, flags), MiB);
    prairie_check_all();
    prairie_free(block);
    prairie_check_all();
    assert_true(placed_destroy(arena));
    assert_int_equal(seen.bytes_out, 0);
}

static size_t purged_bytes;

static bool test_purge(struct extent_hooks *hooks, void *base, size_t bytes, size_t offset,
                       size_t length, unsigned arena)
{
    (void)hooks, (void)arena;
    assert_true(offset + length <= bytes && length > 0);
    memset((char *)base + offset, 0, length);
    purged_bytes += length;
    return false;
}

static bool refuse_purge(struct extent_hooks *hooks, void *base, size_t bytes, size_t offset,
                         size_t length, unsigned arena)
{
    (void)hooks, (void)base, (void)bytes, (void)offset, (void)length, (void)arena;
    return true;
}

/* Free spans alone are purged, through the hook that does not refuse. */
static void free_spans_are_purged(void **state)
{
    struct arena *arena = hooked_arena();
    struct extent_hooks hooks = test_hooks;
    char *kept, *given;

    (void)state;
    hooks.purge_forced = refuse_purge;
    hooks.purge_lazy = test_purge;
    (void)arena_set_hooks(arena, &hooks);
    kept = prairie_mallocx(100000, MALLOCX_ARENA(arena->index));
    given = prairie_mallocx(100000, MALLOCX_ARENA(arena->index));
    memset(kept, 5, 100000);
    prairie_free(given);
    arena_purge(arena);
    assert_int_equal(purged_bytes, 2 * MiB - round_up(100000, page_bytes()));
    assert_true(all_bytes_are(kept, 5, 100000));
    prairie_check_all();
    assert_ptr_equal(prairie_mallocx(100000, MALLOCX_ARENA(arena->index)), given);
}

static void expect_free(const struct arena *arena, size_t dirty, size_t clean)
{
    supplied_check(&arena->extents->heap);
    assert_int_equal(arena->extents->heap.free_pages[FREE_DIRTY], dirty);
    assert_int_equal(arena->extents->heap.free_pages[FREE_CLEAN], clean);
}

static void *zero_alloc(struct extent_hooks *hooks, void *new_address, size_t bytes, size_t align,
                        bool *zero, bool *commit, unsigned arena)
{
    void *base = test_alloc(hooks, new_address, bytes, align, zero, commit, arena);

    if (base != NULL) memset(base, 0, bytes);
    *zero = true;
    return base;
}

/* Pages that came as zeros are clean, and so are those that were purged; what blocks lay in is
 * dirty. */
static void free_pages_are_clean_or_dirty(void **state)
{
    struct arena *arena = hooked_arena();
    struct extent_hooks hooks = test_hooks;
    size_t all = 2 * MiB >> space.page_shift, pages = 10;
    int flags = MALLOCX_ARENA(arena->index);
    char *first, *second, *aligned;

    (void)state;
    hooks.alloc = zero_alloc;
    hooks.purge_forced = test_purge;
    (void)arena_set_hooks(arena, &hooks);
    first = prairie_mallocx(pages << space.page_shift, flags);
    second = prairie_mallocx(pages << space.page_shift, flags);
    expect_free(arena, 0, all - 2 * pages);
    prairie_free(first);
    expect_free(arena, pages, all - 2 * pages);
    aligned = prairie_mallocx(64 * KiB, flags | MALLOCX_ALIGN(256 * KiB));
    prairie_free(second); /* what touches becomes one, and the sum stays */
    expect_free(arena, 2 * pages, all - 2 * pages - (64 * KiB >> space.page_shift));
    first = prairie_mallocx(2 * MiB / 16, flags);
    assert_int_equal(prairie_xallocx(first, 2 * MiB / 32, 0, flags), 2 * MiB / 32);
    prairie_free(first);
    prairie_free(aligned);
    assert_int_equal(arena->extents->heap.free_pages[FREE_DIRTY]
                         + arena->extents->heap.free_pages[FREE_CLEAN],
                     all);
    assert_true(arena->extents->heap.free_pages[FREE_DIRTY] > 0);
    arena_purge(arena);
    expect_free(arena, 0, all);
    prairie_check_all();
}

static void pages_that_are_purged_lazily_stay_dirty(void **state)
{
    struct arena *arena = hooked_arena();
    struct extent_hooks hooks = test_hooks;

    (void)state;
    hooks.purge_forced = refuse_purge;
    hooks.purge_lazy = test_purge;
    (void)arena_set_hooks(arena, &hooks);
    prairie_free(prairie_mallocx(100000, MALLOCX_ARENA(arena->index)));
    expect_free(arena, 2 * MiB >> space.page_shift, 0);
    arena_purge(arena);
    expect_free(arena, 2 * MiB >> space.page_shift, 0);
}

static void growth_is_limited(void **state)
{
    struct arena *arena = hooked_arena();

    (void)state;
    extents_limit_growth(arena->extents, 200000);
    for (unsigned i = 0; i < 100; i++)
        assert_non_null(prairie_mallocx(5000, MALLOCX_ARENA(arena->index)));
    assert_true(seen.largest <= 200000);
    assert_non_null(prairie_mallocx(5 * MiB, MALLOCX_ARENA(arena->index)));
    prairie_check_all();
}

/* Numbers of foreign extents are used again. */
static void places_are_used_again(void **state)
{
    struct arena *arena = hooked_arena();
    uint32_t places;

    (void)state;
    for (unsigned i = 0; i < 3000; i++) {
        void *block = prairie_mallocx(MiB, MALLOCX_ARENA(arena->index));
        assert_non_null(block);
        prairie_free(block);
        arena_reset(arena);
        if (seen.next + 20 * MiB > seen.end) seen.next = seen.end - OUTSIDE_MIB * MiB;
        if (i == 100) places = space.foreign_from;
        if (i > 100) assert_int_equal(space.foreign_from, places);
        if (i % 500 == 0) prairie_check_all();
    }
}

static void records_run_out(void **state)
{
    struct arena *arena = hooked_arena();

    (void)state;
    for (unsigned nth = 1; nth < 30; nth++) {
        fake_fail_nth(nth);
        for (unsigned i = 0; i < 40; i++)
            (void)prairie_mallocx(1 + random_below(60000), MALLOCX_ARENA(arena->index));
        fake_fail_nth(0);
        prairie_check_all();
        arena_reset(arena);
        seen.next = seen.end - OUTSIDE_MIB * MiB;
        prairie_check_all();
        assert_true(placed_destroy(arena));
        assert_int_equal(seen.bytes_out, 0);
        arena = arena_create();
        (void)arena_set_hooks(arena, &test_hooks);
    }
}

UNIT_MAIN(UNIT_TEST(memory_from_elsewhere), UNIT_TEST(memory_from_the_default_hooks),
          UNIT_TEST(the_default_hooks_take_back_what_they_gave),
          UNIT_TEST(the_default_hooks_take_back_new_pages), UNIT_TEST(memory_from_malloc),
          UNIT_TEST(memory_from_malloc_of_a_hardened_process),
          UNIT_TEST(extents_are_asked_for_in_growing_pieces),
          UNIT_TEST(each_extent_is_twice_the_one_before), UNIT_TEST(a_refused_block_has_no_record),
          UNIT_TEST(the_end_of_an_arena_keeps_errno), UNIT_TEST(large_requests_are_refused),
          UNIT_TEST(extents_that_may_not_be_cut), UNIT_TEST(extents_in_use_are_passed_by),
          UNIT_TEST(hooks_are_thought_of_when_an_extent_is_spare),
          UNIT_TEST(a_shorter_block_keeps_its_usable_bytes),
          UNIT_TEST(memory_that_must_be_committed), UNIT_TEST(memory_that_stays),
          UNIT_TEST(a_bound_thread), UNIT_TEST(large_blocks_move_their_end),
          UNIT_TEST(free_spans_are_purged), UNIT_TEST(free_pages_are_clean_or_dirty),
          UNIT_TEST(pages_that_are_purged_lazily_stay_dirty), UNIT_TEST(growth_is_limited),
          UNIT_TEST(places_are_used_again), UNIT_TEST(records_run_out))
