/* outside_test.c - the map for readers of another process, read in this one: it leads to
 * everything, and what is counted by it is what a snapshot counts. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include <jemalloc/jemalloc.h>

#include "blackbox/outside.h"
#include "cache/quarantine.h"
#include "guard/guarded.h"
#include "heap/hardened.h"
#include "unit.h"
#include "view/outside.h"
#include "view/snapshot.h"

static struct outside outside;

static bool read_own(const struct outside *reader, uint64_t address, void *to, size_t bytes)
{
    (void)reader;
    memcpy(to, (const void *)(uintptr_t)address, bytes);
    return true;
}

static int find_note(struct dl_phdr_info *file, size_t bytes, void *found)
{
    (void)bytes;
    for (unsigned i = 0; i < file->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &file->dlpi_phdr[i];
        uint64_t note =
            part->p_type == PT_NOTE
                ? outside_note_in(&outside, file->dlpi_addr + part->p_vaddr, part->p_memsz)
                : 0;

        if (note != 0) *(uint64_t *)found = note;
    }
    return 0;
}

static void take_map(void)
{
    uint64_t note = 0;

    outside.read = read_own;
    (void)dl_iterate_phdr(find_note, &note);
    assert_int_not_equal(note, 0);
    outside_take_map(&outside, note);
}

/* ---- the map ---- */

static void the_note_leads_to_every_root(void **state)
{
    const struct {
        const char *name;
        const void *address;
    } roots[] = {
        { "arenas", arenas },
        { "arena_end", &arena_end },
        { "arena_limit", &arena_limit },
        { "arena_hops", &arena_hops },
        { "past_arenas", &past_arenas },
        { "threads_lock", &threads_lock },
        { "first_cache", cache_list_address() },
        { "explicit_cache_end", &explicit_cache_end },
        { "explicit_caches", explicit_cache_table_address() },
        { "large_cache_takes_before", &large_cache_takes_before },
        { "large_staggered_before", &large_staggered_before },
        { "guarded_numbers", &guarded_numbers },
        { "page_heap", page_heap },
        { "purge", &purge },
        { "decay_looks", &decay_looks },
        { "limits", &limits },
        { "reserve", &reserve },
        { "commit", &commit },
        { "space", &space },
        { "meta", &meta },
        { "class_map", &class_map },
        { "slab_shape", slab_shape },
        { "snapshot_begin_ms", &snapshot_begin_ms },
    };

    (void)state;
    take_map();
    assert_int_equal(outside.root_count, ARRAY_COUNT(roots));
    for (unsigned i = 0; i < ARRAY_COUNT(roots); i++)
        assert_int_equal(outside_root(&outside, roots[i].name), (uintptr_t)roots[i].address);
    assert_string_equal(outside.release, PRAIRIE_VERSION);
}

static const struct outside_row *struct_of(const struct outside_row *member)
{
    size_t length = (size_t)(strchr(member->name, '.') - member->name);

    for (unsigned i = 0; i < outside_layout.row_count; i++) {
        const struct outside_row *row = &outside_layout.rows[i];

        if (row->kind == OUTSIDE_STRUCT && strlen(row->name) == length
            && memcmp(row->name, member->name, length) == 0)
            return row;
    }
    fail_msg("%s is of no struct", member->name);
    return NULL;
}

static void names_are_whole_and_stand_once(void **state)
{
    (void)state;
    for (unsigned i = 0; i < outside_layout.row_count; i++) {
        const struct outside_row *row = &outside_layout.rows[i];

        assert_int_equal(row->name[sizeof row->name - 1], 0);
        for (unsigned j = 0; j < i; j++)
            if (row->kind == outside_layout.rows[j].kind)
                assert_string_not_equal(row->name, outside_layout.rows[j].name);
        if (row->kind != OUTSIDE_MEMBER) continue;
        assert_true(row->offset + (size_t)row->bytes * row->count <= struct_of(row)->bytes);
    }
}

/* ---- what is counted by it ---- */

static void expect_the_snapshot(void)
{
    struct outside_figures figures = outside_count(&outside);
    struct snapshot numbers;

    snapshot_sum(&numbers);
    assert_int_equal(outside.torn, 0);
    assert_int_equal(figures.small, numbers.all.small.allocated);
    assert_int_equal(figures.large, numbers.all.large.allocated);
    assert_int_equal(figures.active, numbers.all.active);
    assert_int_equal(figures.dirty, numbers.all.dirty);
    assert_int_equal(figures.clean, numbers.all.clean);
    assert_int_equal(figures.cached, numbers.all.cached);
    assert_int_equal(figures.metadata, numbers.all.metadata);
    assert_int_equal(figures.resident, numbers.all.resident);
    assert_int_equal(figures.mapped, numbers.all.mapped);
    assert_int_equal(figures.purged, numbers.all.purged_bytes);
    assert_int_equal(figures.threads, numbers.all.threads);
    assert_int_equal(figures.arenas, numbers.arenas_made);
    assert_int_equal(figures.leases, numbers.leases);
    assert_int_equal(figures.returns, numbers.returns);
    assert_int_equal(figures.refills, numbers.refills);
    assert_int_equal(figures.overflows, numbers.overflows);
    assert_int_equal(figures.fills, numbers.all.small.fills);
    assert_int_equal(figures.drains, numbers.all.small.drains);
}

/* Blocks of all sizes come and go, placed with `flags`. */
static void churn(unsigned steps, int flags)
{
    enum { BLOCKS = 500 };
    static void *blocks[BLOCKS];

    for (unsigned step = 0; step < steps; step++) {
        unsigned at = (unsigned)random_below(BLOCKS);
        size_t size = random_below(16) == 0 ? random_below(400000) : random_below(3000);

        if (blocks[at] != NULL) prairie_dallocx(blocks[at], flags);
        blocks[at] = random_below(3) == 0 ? NULL : prairie_mallocx(size + 1, flags);
        if (step % 101 == 0) expect_the_snapshot();
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (blocks[i] != NULL) prairie_dallocx(blocks[i], flags);
        blocks[i] = NULL;
    }
    expect_the_snapshot();
}

static void before_the_first_call_there_is_nothing(void **state)
{
    struct outside_figures figures;

    (void)state;
    take_map();
    figures = outside_count(&outside);
    assert_int_equal(figures.active + figures.mapped + figures.threads, 0);
}

static void one_thread_is_counted_exactly(void **state)
{
    (void)state;
    take_map();
    fake_cores(1);
    churn(5000, 0);
}

static void *churn_apart(void *state)
{
    (void)state;
    churn(500, 0);
    return NULL;
}

/* Those of threads that ended are gone, but for what they counted. */
static void threads_come_and_go(void **state)
{
    (void)state;
    take_map();
    churn(100, 0);
    for (unsigned i = 0; i < 8; i++) {
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, churn_apart, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        expect_the_snapshot();
    }
}

static void a_hardened_process_is_counted_exactly(void **state)
{
    (void)state;
    take_map();
    assert_true(hardened_start());
    churn(5000, 0);
}

static void manual_arenas_and_explicit_caches_are_counted(void **state)
{
    struct arena *arena;

    (void)state;
    take_map();
    prairie_free(prairie_malloc(1));
    arena = arena_create();
    assert_non_null(arena);
    churn(3000, MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
    churn(3000, MALLOCX_TCACHE(explicit_cache_create()));
}

static void guarded_blocks_are_counted(void **state)
{
    const struct guarded_trace trace = { .thread = 0 };
    void *block;

    (void)state;
    take_map();
    prairie_free(prairie_malloc(1));
    assert_true(guarded_start(8));
    block = guarded_take(100, 16, class_of_size(100), &trace);
    assert_non_null(block);
    expect_the_snapshot();
    assert_int_equal(outside_count(&outside).small, class_bytes[class_of_size(100)]);
    assert_true(guarded_give(block, &trace));
    expect_the_snapshot();
}

/* ---- what does not hold still is known ---- */

static void a_held_lock_is_seen(void **state)
{
    (void)state;
    take_map();
    prairie_free(prairie_malloc(1));
    lock_take(&arenas[0]->lock);
    (void)outside_count(&outside);
    lock_give(&arenas[0]->lock);
    assert_int_equal(outside.torn, 1);
    lock_take(&threads_lock);
    (void)outside_count(&outside);
    lock_give(&threads_lock);
    assert_int_equal(outside.torn, 2);
    (void)outside_count(&outside);
    assert_int_equal(outside.torn, 2);
}

/* Somebody takes and gives the lock between the two copies, a few times. */
static bool read_while_it_moves(const struct outside *reader, uint64_t address, void *to,
                                size_t bytes)
{
    static unsigned moves;

    if (address == (uintptr_t)arenas[0] && moves++ % 2 == 0 && moves < 10) {
        (void)read_own(reader, address, to, bytes);
        lock_take(&arenas[0]->lock);
        lock_give(&arenas[0]->lock);
        return true;
    }
    return read_own(reader, address, to, bytes);
}

static void a_change_between_two_copies_is_seen(void **state)
{
    (void)state;
    take_map();
    prairie_free(prairie_malloc(1));
    outside.read = read_while_it_moves;
    (void)outside_count(&outside);
    assert_int_equal(outside.torn, 0);
    assert_true(lock_numbers(&arenas[0]->lock).taken >= 5);
}

UNIT_MAIN(UNIT_TEST(the_note_leads_to_every_root), UNIT_TEST(names_are_whole_and_stand_once),
          UNIT_TEST(before_the_first_call_there_is_nothing),
          UNIT_TEST(one_thread_is_counted_exactly), UNIT_TEST(threads_come_and_go),
          UNIT_TEST(a_hardened_process_is_counted_exactly),
          UNIT_TEST(manual_arenas_and_explicit_caches_are_counted),
          UNIT_TEST(guarded_blocks_are_counted), UNIT_TEST(a_held_lock_is_seen),
          UNIT_TEST(a_change_between_two_copies_is_seen))
