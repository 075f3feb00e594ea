/* trios_test.c - any three special cases together: blocks of all kinds are taken, resized and given
 * back, and keep what they promise.
 *
 * Each three live in a process of their own, and so do two and one. What a case alone does is the
 * matter of other tests; here is what holds in every process: a block has the bytes that were asked
 * for, and no other block has them; they read as the options say; a change of size keeps them; the
 * thread's totals are those of its blocks; and when all were given back nothing is allocated, and
 * arenas can go. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "guarded.h"
#include "heap/hardened.h"
#include "hooks.h"
#include "samples.h"
#include "threads.h"

#include <prairie/reserve.h>
#include <sys/wait.h>

enum { JUNK = 0xa5, ANYTHING = 0x100, BLOCKS_MAX = 128, ROUNDS = 3 };

static const size_t sizes[] = { 0,    1,    24,    100,   1000,  1024,   1025,
                                5000, 9000, 14336, 14337, 40000, 100000, 300000 };

/* ---- the cases ---- */

static int flags;       /* of calls that take some */
static int fresh_value; /* of bytes that nobody asks zeros for, or ANYTHING */
static bool in_child, by_another, past_the_end;
static const struct prairie_thread_totals *totals; /* NULL: nobody counts */
static struct arena *made[3];
static unsigned made_count;

static struct arena *note_made(struct arena *arena)
{
    assert_non_null(arena);
    return made[made_count++] = arena;
}

static void set_option(const char *text)
{
    options_parse(text, "test");
    heap_obey_options();
}

static void sampled(void) { sample_from_now(PERIOD / 4); }
static void guarded(void) { guard_from_now(); }
static void hardened(void)
{
    assert_true(hardened_start());
    fresh_value = 0;
}
static void junk(void)
{
    set_option("junk:true");
    fresh_value = JUNK;
}
static void zero(void)
{
    set_option("zero:true");
    fresh_value = 0;
}
static void counted(void)
{
    totals = prairie_thread_totals();
    assert_non_null(totals);
}
static void without_a_cache(void) { assert_true(thread_cache_off()); }
static void with_few_classes(void) { thread_hold_up_to(class_of_size(200)); }
static void bound(void) { thread_bind(note_made(arena_create())); }
static void hooked(void) { thread_bind(note_made(hooked_arena())); }
static void placed(void) { flags |= (int)MALLOCX_ARENA(note_made(arena_create())->index); }
static void cached_explicitly(void) { flags |= (int)MALLOCX_TCACHE(explicit_cache_create()); }
static void cached_nowhere(void)
{
    if (flags_cache((unsigned)flags) == 0) flags |= MALLOCX_TCACHE_NONE;
}
static void limited(void) { limits_set_hard(commit_taken_bytes() + 32 * MiB); }
static void with_a_reserve(void) { assert_false(reserve_min_set(256 * KiB)); }
static void in_a_child(void) { in_child = true; }
static void given_by_another(void) { by_another = true; }
static void given_past_the_end(void) { past_the_end = true; }

/* In the order in which a program would have them. */
static const struct special_case {
    const char *name;
    void (*begin)(void);
} cases[] = {
#define CASE(begin)   \
    {                 \
#begin, begin \
    }
    CASE(sampled),
    CASE(guarded),
    CASE(hardened),
    CASE(junk),
    CASE(zero),
    CASE(counted),
    CASE(without_a_cache),
    CASE(with_few_classes),
    CASE(bound),
    CASE(hooked),
    CASE(placed),
    CASE(cached_explicitly),
    CASE(cached_nowhere),
    CASE(limited),
    CASE(with_a_reserve),
    CASE(in_a_child),
    CASE(given_by_another),
    CASE(given_past_the_end),
#undef CASE
};

/* ---- blocks ---- */

static struct held {
    unsigned char *base;
    size_t size, align, bytes;
    unsigned char own; /* neither 0 nor JUNK */
} held[BLOCKS_MAX];
static unsigned held_count;

static uint64_t held_bytes(void)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < held_count; i++) bytes += held[i].bytes;
    return bytes;
}

/* Of the blocks that the thread took since it was told, and has not given back. */
static uint64_t counted_before;

static void expect_totals(void)
{
    if (totals == NULL) return;
    assert_int_equal(totals->allocated - totals->deallocated - counted_before, held_bytes());
}

static void expect_reads(const struct held *block, size_t from, bool is_zeroed)
{
    int value = is_zeroed ? 0 : fresh_value;

    if (value != ANYTHING && from < block->bytes)
        assert_true(all_bytes_are(block->base + from, (unsigned char)value, block->bytes - from));
}

static void fill_whole(struct held *block)
{
    block->own = (unsigned char)(1 + random_below(JUNK - 1));
    memset(block->base, block->own, block->bytes);
}

static void expect_whole(const struct held *block)
{
    assert_true(all_bytes_are(block->base, block->own, block->bytes));
    assert_int_equal(prairie_usable_size(block->base), block->bytes);
}

static void *take_by(unsigned way, size_t size, size_t align)
{
    void *block = NULL;

    switch (way) {
    case 0: return prairie_malloc(size);
    case 1: return prairie_calloc(1, size);
    case 2: return prairie_realloc(NULL, size);
    case 3: return prairie_aligned_alloc(align, size);
    case 4: return prairie_posix_memalign(&block, align, size) == 0 ? block : NULL;
    case 5: return prairie_mallocx(size, flags);
    default: return prairie_mallocx(size, flags | MALLOCX_ZERO | MALLOCX_ALIGN(align));
    }
}

static void take_block(size_t size)
{
    static const size_t aligns[] = { 16, 64, 4096, 64 * KiB };
    struct held *block = &held[held_count++];
    unsigned way = (unsigned)random_below(7);

    assert_true(held_count <= BLOCKS_MAX);
    *block = (struct held){ .size = size, .align = 1 };
    if (way == 3 || way == 4 || way == 6) block->align = aligns[random_below(ARRAY_COUNT(aligns))];
    block->base = take_by(way, size, block->align);
    assert_non_null(block->base);
    assert_true(is_aligned((uintptr_t)block->base, block->align));
    block->bytes = prairie_usable_size(block->base);
    assert_true(block->bytes >= size);
    expect_reads(block, 0, way == 1 || way == 6);
    fill_whole(block);
    expect_totals();
}

/* In place or to another one; what both sizes have room for is still there. */
static void settle(struct held *block, unsigned char *base, size_t size, bool is_zeroed)
{
    size_t old_bytes = block->bytes, bytes;

    assert_non_null(base);
    bytes = prairie_usable_size(base);
    assert_true(bytes >= size);
    assert_true(all_bytes_are(base, block->own, min_size(old_bytes, bytes)));
    block->base = base;
    block->bytes = bytes;
    block->size = size;
    expect_reads(block, old_bytes, is_zeroed);
    fill_whole(block);
    expect_totals();
}

static void resize(struct held *block)
{
    size_t size = max_size(sizes[random_below(ARRAY_COUNT(sizes))], 1), told;
    bool is_zeroed = random_below(2) == 0;
    int zero_flag = is_zeroed ? MALLOCX_ZERO : 0;

    expect_whole(block);
    switch (random_below(3)) {
    case 0:
        block->align = 1;
        settle(block, prairie_realloc(block->base, size), size, false);
        break;
    case 1:
        block->align = 1;
        settle(block, prairie_rallocx(block->base, size, flags | zero_flag), size, is_zeroed);
        break;
    default:
        told = prairie_xallocx(block->base, size, size / 2, zero_flag);
        assert_int_equal(told, prairie_usable_size(block->base));
        size = told == block->bytes ? block->size : told;
        settle(block, block->base, size, is_zeroed);
    }
}

static void give_block(struct held block)
{
    int align_flag = block.align != 1 ? MALLOCX_ALIGN(block.align) : 0;

    expect_whole(&block);
    switch (random_below(4)) {
    case 0: prairie_free(block.base); break;
    case 1:
        if (block.align != 1) prairie_free_aligned_sized(block.base, block.align, block.size);
        else prairie_free_sized(block.base, block.size);
        break;
    case 2: prairie_dallocx(block.base, flags); break;
    default: prairie_sdallocx(block.base, block.size, flags | align_flag);
    }
}

static void give_one(void)
{
    unsigned at = (unsigned)random_below(held_count);
    struct held block = held[at];

    held[at] = held[--held_count];
    give_block(block);
    expect_totals();
}

static bool is_of_made(const void *block)
{
    for (unsigned i = 0; i < made_count; i++)
        if (arena_of_address(block) == made[i]) return true;
    return false;
}

static void give_all(void)
{
    while (held_count > 0) give_block(held[--held_count]);
}

/* Another thread has never named the arenas that were made: none of their blocks stays with it. */
static void *give_all_and_take(void *unused)
{
    void *block[ARRAY_COUNT(sizes)];

    give_all();
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        block[i] = prairie_malloc(sizes[i]);
        assert_false(is_of_made(block[i]));
    }
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) prairie_free(block[i]);
    return unused;
}

/* ---- a life ---- */

static void live(void)
{
    if (totals != NULL) counted_before = totals->allocated - totals->deallocated;
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < 2 * ARRAY_COUNT(sizes); i++)
            take_block(sizes[i % ARRAY_COUNT(sizes)]);
        for (unsigned i = 0; i < held_count; i++) resize(&held[i]);
        prairie_check_all();
        while (held_count > ARRAY_COUNT(sizes)) give_one();
        for (unsigned i = 0; i < held_count; i++) expect_whole(&held[i]);
        prairie_check_all();
    }
    if (by_another) run_thread(give_all_and_take, NULL);
    if (past_the_end) fake_thread_end();
    give_all();
    if (!by_another && !past_the_end) expect_totals();
    prairie_check_all();
}

static void live_in_child(void)
{
    int status = 0, child = fake_fork();

    assert_true(child >= 0);
    if (child == 0) {
        live();
        fflush(NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void flush(void)
{
    unsigned cache = flags_cache((unsigned)flags);

    if (cache >= CACHE_FIRST_EXPLICIT)
        explicit_cache_flush(explicit_cache_at(cache - CACHE_FIRST_EXPLICIT));
    thread_flush();
}

static const struct special_case *trio[3]; /* one may be there more than once */

static void live_with_all(void)
{
    size_t allocated;

    fresh_value = ANYTHING;
    prairie_free(prairie_malloc(1));
    for (unsigned i = 0; i < ARRAY_COUNT(trio); i++)
        if (i == 0 || trio[i] != trio[i - 1]) trio[i]->begin();
    flush();
    allocated = allocated_bytes();
    if (in_child) live_in_child();
    else live();
    flush();
    assert_int_equal(allocated_bytes(), allocated);
    if (past_the_end) return; /* it stays bound */
    thread_bind(arena_at(arena_first));
    for (unsigned i = 0; i < made_count; i++) assert_true(placed_destroy(made[i]));
    prairie_check_all();
}

/* With any two of itself and those that come after it. */
static void with_the_others(unsigned index)
{
    trio[0] = &cases[index];
    for (unsigned i = index; i < ARRAY_COUNT(cases); i++) {
        trio[1] = &cases[i];
        for (unsigned k = i; k < ARRAY_COUNT(cases); k++) {
            trio[2] = &cases[k];
            print_message("%s, %s, %s\n", trio[0]->name, trio[1]->name, trio[2]->name);
            expect_survival(live_with_all);
        }
    }
}

#define WITH_THE_OTHERS(number, name) \
    static void name(void **state)    \
    {                                 \
        (void)state;                  \
        with_the_others(number);      \
    }
WITH_THE_OTHERS(0, sampled_blocks)
WITH_THE_OTHERS(1, guarded_blocks)
WITH_THE_OTHERS(2, hardened_blocks)
WITH_THE_OTHERS(3, blocks_that_are_junk_at_first)
WITH_THE_OTHERS(4, blocks_that_are_zero_at_first)
WITH_THE_OTHERS(5, counted_blocks)
WITH_THE_OTHERS(6, blocks_of_a_thread_without_a_cache)
WITH_THE_OTHERS(7, blocks_of_a_thread_that_holds_few)
WITH_THE_OTHERS(8, blocks_of_a_bound_thread)
WITH_THE_OTHERS(9, blocks_of_hooks)
WITH_THE_OTHERS(10, placed_blocks)
WITH_THE_OTHERS(11, blocks_of_an_explicit_cache)
WITH_THE_OTHERS(12, uncached_blocks)
WITH_THE_OTHERS(13, blocks_near_a_limit)
WITH_THE_OTHERS(14, blocks_beside_a_reserve)
WITH_THE_OTHERS(15, blocks_of_a_child)
WITH_THE_OTHERS(16, blocks_that_another_thread_gives)
WITH_THE_OTHERS(17, blocks_that_come_back_past_the_end)

UNIT_MAIN(UNIT_TEST(sampled_blocks), UNIT_TEST(guarded_blocks), UNIT_TEST(hardened_blocks),
          UNIT_TEST(blocks_that_are_junk_at_first), UNIT_TEST(blocks_that_are_zero_at_first),
          UNIT_TEST(counted_blocks), UNIT_TEST(blocks_of_a_thread_without_a_cache),
          UNIT_TEST(blocks_of_a_thread_that_holds_few), UNIT_TEST(blocks_of_a_bound_thread),
          UNIT_TEST(blocks_of_hooks), UNIT_TEST(placed_blocks),
          UNIT_TEST(blocks_of_an_explicit_cache), UNIT_TEST(uncached_blocks),
          UNIT_TEST(blocks_near_a_limit), UNIT_TEST(blocks_beside_a_reserve),
          UNIT_TEST(blocks_of_a_child), UNIT_TEST(blocks_that_another_thread_gives),
          UNIT_TEST(blocks_that_come_back_past_the_end))
