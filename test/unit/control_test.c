/* control_test.c - the leaves of the control tree where there is no memory for a heap, and
 * bools. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "control/control_tree.h"
#include "control_tree.h"
#include "heap/hardened.h"
#include "unit.h"

#include <errno.h>

enum { LENGTH_MAX = 64, LEAVES_LEAST = 200 };

/* The leaf's name with 0 for each number in it. */
static void write_name(const struct control_row *row, char *name)
{
    for (const char *at = row->name; *at != '\0'; at++) *name++ = *at == '*' ? '0' : *at;
    *name = '\0';
}

/* Reads it, and writes zeros; whatever comes of it. What is read may go to where the buffer
 * points. */
static void try_leaf(const struct control_row *row)
{
    char name[CONTROL_NAME_BYTES + 1], room[LENGTH_MAX],
        *old[LENGTH_MAX / sizeof(char *)] = { room };
    static const char nothing[LENGTH_MAX];

    write_name(row, name);
    for (size_t bytes = 0; bytes <= 8; bytes++) {
        size_t length = bytes;
        old[0] = room;
        (void)control_by_name(name, old, &length, NULL, 0);
        if (row->type != CONTROL_TEXT && row->type != CONTROL_POINTER)
            (void)control_by_name(name, NULL, NULL, (void *)(uintptr_t)nothing, bytes);
    }
    (void)control_by_name(name, NULL, NULL, NULL, 0);
}

static unsigned try_all_leaves(void)
{
    unsigned leaves = 0;

    for (unsigned table = 0; table < control_table_count; table++)
        for (unsigned i = 0; i < control_tables[table]->count; i++, leaves++)
            try_leaf(&control_tables[table]->rows[i]);
    return leaves;
}

/* Before the first call, and the kernel gives no address space: nothing is there to be looked
 * at. */
static void without_a_heap_every_leaf_answers(void **state)
{
    void *block;

    (void)state;
    fake_fail_all(true);
    assert_true(try_all_leaves() >= LEAVES_LEAST);
    assert_null(prairie_malloc(1));
    assert_int_equal(errno, ENOMEM);
    fake_fail_all(false);
    block = prairie_malloc(1);
    assert_non_null(block);
    prairie_free(block);
    prairie_check_all();
}

static void with_a_heap_and_no_memory_every_leaf_answers(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    fake_fail_all(true);
    assert_true(try_all_leaves() >= LEAVES_LEAST);
    fake_fail_all(false);
    prairie_check_all();
}

/* Of a byte that no bool of C has, nothing undefined is made (UBSan looks); it is true. */
static void every_byte_but_0_is_true(void **state)
{
    unsigned char odd = 2, after = odd;
    size_t length = sizeof after;

    (void)state;
    prairie_free(prairie_malloc(1));
    assert_int_equal(control_by_name("thread.tcache.enabled", NULL, NULL, &odd, sizeof odd), 0);
    assert_int_equal(control_by_name("thread.tcache.enabled", &after, &length, NULL, 0), 0);
    assert_int_equal(after, 1);
    assert_int_equal(control_by_name("background_thread", NULL, NULL, &odd, sizeof odd), 0);
    assert_int_equal(control_by_name("background_thread", &after, &length, NULL, 0), 0);
    assert_int_equal(after, 1);
}

/* A thread holds two magazines of a class, or a wide one. */
static void how_many_blocks_are_held_is_told(void **state)
{
    static const size_t sizes[] = { 0, 1, 16, 48, 1000, 4000, SMALL_BYTES_MAX };

    (void)state;
    prairie_free(prairie_malloc(1));
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        unsigned capacity = magazine_capacity(class_of_size(max_size(sizes[i], 1)));
        size_t blocks = 0, length = sizeof blocks;

        assert_int_equal(control_by_name("thread.tcache.ncached_max.read_sizeclass", &blocks,
                                         &length, (void *)(uintptr_t)&sizes[i], sizeof sizes[i]),
                         0);
        assert_int_equal(blocks, max_size(capacity + capacity, WIDE_BLOCKS_MAX));
    }
}

/* None of its numbers is read when there are none, or more than any name has parts. */
static void a_path_of_no_length_or_an_absurd_one_is_no_leaf(void **state)
{
    size_t path[CONTROL_DEPTH_MAX + 1], length = CONTROL_DEPTH_MAX;

    (void)state;
    prairie_free(prairie_malloc(1));
    assert_int_equal(control_path_of("epoch", path, &length), 0);
    assert_int_equal(control_by_path(path, length, NULL, NULL, NULL, 0), 0);
    length = CONTROL_DEPTH_MAX;
    assert_int_equal(control_path_of("stats.arenas.0.bins.0.mutex.num_ops", path, &length), 0);
    assert_int_equal(length, CONTROL_DEPTH_MAX);
    assert_int_equal(control_by_path(path, length, NULL, NULL, NULL, 0), 0);
    assert_int_equal(control_by_path(NULL, 0, NULL, NULL, NULL, 0), ENOENT);
    assert_int_equal(control_by_path(path, SIZE_MAX / 64, NULL, NULL, NULL, 0), ENOENT);
}

/* How full the slabs of blocks are: free blocks, blocks, bytes of each. Only where the quantum is 8
 * has it a name. */
struct use {
    size_t free_blocks, blocks, bytes;
};

static int ask_for_use(void *const *blocks, size_t blocks_bytes, struct use *uses, size_t *length)
{
    struct control_call call = { .old_buffer = uses,
                                 .old_length = length,
                                 .new_buffer = (void *)(uintptr_t)blocks,
                                 .new_length = blocks_bytes };

    return serve_batch_query(&call);
}

static void the_use_of_many_blocks_is_told_at_once(void **state)
{
    unsigned class_index = class_of_size(100);
    void *blocks[] = { prairie_malloc(100), prairie_malloc(100000), NULL };
    struct use uses[3];
    size_t length = sizeof uses;

    (void)state;
    assert_int_equal(ask_for_use(blocks, sizeof blocks, uses, &length), 0);
    assert_int_equal(uses[0].blocks, slab_shape[class_index].block_count);
    assert_int_equal(uses[0].bytes, uses[0].blocks * class_bytes[class_index]);
    assert_true(uses[0].free_blocks < uses[0].blocks);
    assert_int_equal(uses[1].free_blocks, 0);
    assert_int_equal(uses[1].blocks, 1);
    assert_int_equal(uses[1].bytes, prairie_usable_size(blocks[1]));
    assert_true(all_bytes_are(&uses[2], 0, sizeof uses[2]));
}

static void a_hardened_large_block_is_told_as_one_of_one(void **state)
{
    void *blocks[1];
    struct use use;
    size_t length = sizeof use;

    (void)state;
    assert_true(hardened_start());
    blocks[0] = prairie_malloc(100000);
    assert_int_equal(ask_for_use(blocks, sizeof blocks, &use, &length), 0);
    assert_int_equal(use.free_blocks, 0);
    assert_int_equal(use.blocks, 1);
    assert_in_range(use.bytes, 100000, 100000 + 2 * page_bytes());
}

/* Those that are left out, or of another length than the other says. */
static void a_question_for_use_needs_both_arrays(void **state)
{
    void *blocks[] = { prairie_malloc(100), prairie_malloc(200) };
    struct use uses[2];
    size_t length = sizeof uses, less = sizeof uses[0];

    (void)state;
    memset(uses, 0x5a, sizeof uses);
    assert_int_equal(ask_for_use(blocks, sizeof blocks, NULL, &length), EINVAL);
    assert_int_equal(ask_for_use(NULL, sizeof blocks, uses, &length), EINVAL);
    assert_int_equal(ask_for_use(blocks, sizeof blocks, uses, NULL), EINVAL);
    assert_int_equal(ask_for_use(blocks, sizeof blocks, uses, &less), EINVAL);
    assert_int_equal(ask_for_use(blocks, sizeof blocks - 1, uses, &length), EINVAL);
    length = 0;
    assert_int_equal(ask_for_use(blocks, 0, uses, &length), EINVAL);
    assert_true(all_bytes_are(uses, 0x5a, sizeof uses));
}

/* Who only asks for an option changes nothing; who sets it is obeyed at once. */
static void an_option_is_obeyed_when_it_is_written(void **state)
{
    intptr_t none = 0, decay_ms = 7;
    size_t length = sizeof decay_ms;
    uint64_t purges;

    (void)state;
    prairie_free(memset(prairie_malloc(2 * MiB), 1, 2 * MiB));
    options_parse("dirty_decay_ms:0", "test");
    purges = fake_calls(FAKE_PURGE);
    assert_int_not_equal(page_heap->free_pages[FREE_DIRTY], 0);
    assert_int_equal(control_by_name("arenas.dirty_decay_ms", &decay_ms, &length, NULL, 0), 0);
    assert_int_equal(decay_ms, 0);
    assert_int_equal(fake_calls(FAKE_PURGE), purges);
    assert_int_equal(control_by_name("arenas.dirty_decay_ms", NULL, NULL, &none, sizeof none), 0);
    assert_true(fake_calls(FAKE_PURGE) > purges);
    assert_int_equal(page_heap->free_pages[FREE_DIRTY], 0);
}

/* As many as there can be arenas, and one. */
static void background_threads_have_a_limit_from_1_to_4096(void **state)
{
    static const struct {
        size_t limit;
        int error;
    } rows[] = { { 0, EINVAL }, { 1, 0 }, { 4096, 0 }, { 4097, EINVAL }, { SIZE_MAX, EINVAL } };
    const char *name = "max_background_threads";

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(rows); i++) {
        size_t limit = rows[i].limit;

        assert_int_equal(control_by_name(name, NULL, NULL, &limit, sizeof limit), rows[i].error);
    }
}

/* The numbers that an arena can have end where its table does. */
static void no_arena_has_a_number_beyond_the_last(void **state)
{
    unsigned beyond[] = { ARENA_INDEX_END, ARENA_INDEX_END + 1, UINT32_MAX };

    (void)state;
    prairie_free(prairie_malloc(1));
    for (unsigned i = 0; i < ARRAY_COUNT(beyond); i++) {
        assert_null(made_arena_at(beyond[i]));
        assert_null(manual_arena_at(beyond[i]));
    }
    assert_int_equal(control_arena_kind(ARENA_INDEX_END), CONTROL_ARENA_NONE);
}

UNIT_MAIN(UNIT_TEST(without_a_heap_every_leaf_answers),
          UNIT_TEST(with_a_heap_and_no_memory_every_leaf_answers),
          UNIT_TEST(every_byte_but_0_is_true), UNIT_TEST(how_many_blocks_are_held_is_told),
          UNIT_TEST(a_path_of_no_length_or_an_absurd_one_is_no_leaf),
          UNIT_TEST(the_use_of_many_blocks_is_told_at_once),
          UNIT_TEST(a_hardened_large_block_is_told_as_one_of_one),
          UNIT_TEST(a_question_for_use_needs_both_arrays),
          UNIT_TEST(an_option_is_obeyed_when_it_is_written),
          UNIT_TEST(no_arena_has_a_number_beyond_the_last),
          UNIT_TEST(background_threads_have_a_limit_from_1_to_4096))
