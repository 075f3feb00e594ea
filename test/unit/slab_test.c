/* slab_test.c - shapes of slabs, blocks going out and coming back, wrong blocks, and S1 to S5. */
/* SPDX-License-Identifier: MIT */
#include "library.h"
#include "page_heap/run_find.h"

#include "pages.h"

enum { BLOCKS_MAX = 16384 };

static void *blocks[BLOCKS_MAX];

static void start_slabs(void)
{
    start_pages();
    slabs_start();
}

static struct slab *open_one(unsigned class_index)
{
    struct slab *slab = open_test_slab(class_index, 5);

    assert_non_null(slab);
    return slab;
}

/* Takes `count` blocks; slots[0] is what a magazine would hand out first. */
static unsigned take(struct slab *slab, void **slots, unsigned count)
{
    void *reversed[BLOCKS_MAX];
    unsigned got = slab_fill(slab, reversed + count, count);

    for (unsigned i = 0; i < got; i++) slots[i] = reversed[count - 1 - i];
    slab_check(slab);
    return got;
}

static enum slab_fault put_one(struct slab *slab, void *block)
{
    enum slab_fault fault;
    unsigned put = slab_put(slab, &block, 1, &fault);

    assert_int_equal(put, fault == SLAB_FAULT_NONE);
    slab_check(slab);
    return fault;
}

/* ---- shapes ---- */

static void check_shapes(void)
{
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        const struct slab_shape *shape = &slab_shape[class_index];
        size_t block_bytes = class_bytes[class_index];

        assert_int_equal(shape->block_bytes, block_bytes);
        assert_true(is_aligned(shape->bytes, page_bytes()) && shape->bytes >= SLAB_BYTES_MIN);
        assert_int_equal(shape->block_count, shape->bytes / block_bytes);
        assert_true(shape->block_count >= SLAB_BLOCKS_MIN);
        assert_int_equal(shape->span_bytes, shape->block_count * block_bytes);
        assert_true(shape->bytes - shape->span_bytes <= shape->bytes / 64);
        assert_int_equal(shape->word_count, (shape->block_count + 63) / 64);
        assert_true(shape->record_bytes
                    >= sizeof(struct slab) + (CHECKED ? 2u : 1u) * shape->word_count * 8);
        assert_true(shape->record_bytes <= META_RECORD_BYTES_MAX);
    }
}

/* Every offset in every shape: a block begins there, or a put says that none does. */
static void check_every_offset(void)
{
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        struct slab *slab = open_one(class_index);
        const struct slab_shape *shape = &slab_shape[class_index];

        slab->free_count = 0;
        slab->hint = shape->word_count;
        memset(slab->free, 0, shape->word_count * sizeof(uint64_t));
        for (size_t offset = 0; offset < shape->bytes; offset++) {
            void *block = slab->base + offset;
            enum slab_fault fault;
            bool begins = offset % shape->block_bytes == 0
                       && offset / shape->block_bytes < shape->block_count;
            unsigned put = slab_put(slab, &block, 1, &fault);

            assert_int_equal(put, begins);
            assert_int_equal(fault, begins ? SLAB_FAULT_NONE : SLAB_FAULT_INTERIOR);
        }
        assert_int_equal(slab->free_count, shape->block_count);
        slab_check(slab);
    }
}

static size_t page_size_to_try;

static void look_at_one_page_size(void)
{
    fake_page_bytes(page_size_to_try);
    start_slabs();
    check_shapes();
    check_every_offset();
}

static void all_shapes_on_all_page_sizes(void **state)
{
    (void)state;
    for (page_size_to_try = 4 * KiB; page_size_to_try <= 64 * KiB; page_size_to_try *= 4)
        expect_survival(look_at_one_page_size);
}

/* ---- out and back ---- */

static void blocks_come_in_ascending_order(void **state)
{
    (void)state;
    start_slabs();
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        struct slab *slab = open_one(class_index);
        unsigned count = slab->block_count, got = 0;

        while (got < count) {
            unsigned wanted = (unsigned)(1 + random_below(150));
            unsigned left = count - got;
            assert_int_equal(take(slab, blocks + got, wanted), wanted < left ? wanted : left);
            got += wanted < left ? wanted : left;
        }
        for (unsigned i = 0; i < count; i++)
            assert_ptr_equal(blocks[i], slab->base + i * class_bytes[class_index]);
        assert_int_equal(take(slab, blocks, 1), 0);
        assert_int_equal(slab->free_count, 0);
    }
}

/* The lowest free block goes first, wherever the hint stood. */
static void freed_blocks_are_found_again_lowest_first(void **state)
{
    void *again[3];
    struct slab *slab;
    unsigned count;

    (void)state;
    start_slabs();
    slab = open_one(class_of_size(16));
    count = slab->block_count;
    assert_int_equal(take(slab, blocks, count), count);
    assert_int_equal(put_one(slab, blocks[count - 1]), SLAB_FAULT_NONE);
    assert_int_equal(put_one(slab, blocks[3]), SLAB_FAULT_NONE);
    assert_int_equal(put_one(slab, blocks[100]), SLAB_FAULT_NONE);
    assert_int_equal(take(slab, again, 3), 3);
    assert_ptr_equal(again[0], blocks[3]);
    assert_ptr_equal(again[1], blocks[100]);
    assert_ptr_equal(again[2], blocks[count - 1]);
}

/* A put ends at the first block of another slab and leaves that to the caller. */
static void a_put_ends_where_the_slab_ends(void **state)
{
    struct slab *slab, *other;
    enum slab_fault fault;
    void *mixed[5];

    (void)state;
    start_slabs();
    slab = open_one(class_of_size(64));
    other = open_one(class_of_size(64));
    (void)take(slab, blocks, 3);
    (void)take(other, blocks + 3, 2);
    memcpy(mixed, blocks, sizeof mixed);
    assert_int_equal(slab_put(slab, mixed, 5, &fault), 3);
    assert_int_equal(fault, SLAB_FAULT_NONE);
    slab_check(slab);
    assert_int_equal(slab->free_count, slab->block_count);
    assert_int_equal(other->free_count, other->block_count - 2);
    mixed[1] = NULL;
    (void)take(slab, blocks, 1);
    mixed[0] = blocks[0];
    assert_int_equal(slab_put(slab, mixed, 5, &fault), 1);
    assert_int_equal(fault, SLAB_FAULT_NONE);
}

static void wrong_blocks_are_told_and_change_nothing(void **state)
{
    enum slab_fault fault;
    struct slab *slab;
    void *bad[4];
    unsigned free_count;

    (void)state;
    start_slabs();
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        slab = open_one(class_index);
        assert_true(take(slab, blocks, 2) == 2);
        free_count = slab->free_count;
        assert_int_equal(put_one(slab, (char *)blocks[0] + 1), SLAB_FAULT_INTERIOR);
        assert_int_equal(put_one(slab, (char *)blocks[1] - 1), SLAB_FAULT_INTERIOR);
        assert_int_equal(put_one(slab, (char *)blocks[1] + class_bytes[class_index] / 2),
                         SLAB_FAULT_INTERIOR);
        assert_int_equal(slab->free_count, free_count);
        assert_int_equal(put_one(slab, blocks[0]), SLAB_FAULT_NONE);
        assert_int_equal(put_one(slab, blocks[0]), SLAB_FAULT_TWICE);
        assert_int_equal(slab->free_count, free_count + 1);
        /* In the middle of many, those before the wrong one are put. */
        bad[0] = blocks[1], bad[1] = blocks[1], bad[2] = blocks[1], bad[3] = NULL;
        assert_int_equal(slab_put(slab, bad, 4, &fault), 1);
        assert_int_equal(fault, SLAB_FAULT_TWICE);
        slab_check(slab);
        assert_int_equal(slab->free_count, slab->block_count);
    }
}

static void turn_round(void **slots, unsigned count)
{
    for (unsigned i = 0; i < count / 2; i++) {
        void *block = slots[i];
        slots[i] = slots[count - 1 - i];
        slots[count - 1 - i] = block;
    }
}

/* Stretches of any length, from any place, in either direction, are put as if one by one. */
static void neighbours_are_put_together(void **state)
{
    struct slab *slab;
    enum slab_fault fault;

    (void)state;
    start_slabs();
    slab = open_one(class_of_size(48));
    for (unsigned first = 0; first < slab->block_count; first += 1 + slab->block_count / 23) {
        for (unsigned count = 1; first + count <= slab->block_count;
             count += 1 + slab->block_count / 19) {
            bool down = (first + count) % 2 == 0;

            assert_int_equal(take(slab, blocks, slab->block_count), slab->block_count);
            if (down) turn_round(blocks + first, count);
            assert_int_equal(slab_put(slab, blocks + first, count, &fault), count);
            assert_int_equal(fault, SLAB_FAULT_NONE);
            slab_check(slab);
            assert_int_equal(slab->free_count, count);
            if (down) turn_round(blocks + first, count);
            for (unsigned i = 0; i < slab->block_count; i++)
                if (i < first || i >= first + count)
                    assert_int_equal(put_one(slab, blocks[i]), SLAB_FAULT_NONE);
        }
    }
}

static void put_each_from(struct slab *slab, unsigned first, unsigned count)
{
    for (unsigned i = first; i < count; i++)
        assert_int_equal(put_one(slab, blocks[i]), SLAB_FAULT_NONE);
}

/* One that is free already is found at its place, whichever way its neighbours come. */
static void a_free_block_among_neighbours_is_told(void **state)
{
    enum slab_fault fault;
    unsigned count, put;
    struct slab *slab;

    (void)state;
    start_slabs();
    slab = open_one(class_of_size(48));
    count = slab->block_count;
    for (unsigned wrong = 0; wrong < count; wrong += 1 + count / 31) {
        for (unsigned down = 0; down < 2; down++) {
            assert_int_equal(take(slab, blocks, count), count);
            assert_int_equal(put_one(slab, blocks[wrong]), SLAB_FAULT_NONE);
            if (down) turn_round(blocks, count);
            put = slab_put(slab, blocks, count, &fault);
            assert_int_equal(fault, SLAB_FAULT_TWICE);
            assert_int_equal(put, down ? count - 1 - wrong : wrong);
            assert_int_equal(slab->free_count, put + 1);
            slab_check(slab);
            put_each_from(slab, put + 1, count);
        }
    }
}

static unsigned put_until_fault(struct slab *slab, unsigned count, enum slab_fault *fault)
{
    unsigned put = 0;

    do put += slab_put(slab, blocks + put, count - put, fault);
    while (*fault == SLAB_FAULT_NONE && put < count);
    slab_check(slab);
    return put;
}

/* The next block, too, where one is missing: it is not taken for the one that is still out. */
static void a_block_twice_among_neighbours_is_told(void **state)
{
    enum slab_fault fault;
    unsigned count, put;
    struct slab *slab;

    (void)state;
    start_slabs();
    slab = open_one(class_of_size(48));
    count = min_size(slab->block_count, 40);
    for (unsigned missing = 0; missing + 1 < count; missing++) {
        for (unsigned down = 0; down < 2; down++) {
            void *out;

            assert_int_equal(take(slab, blocks, count), count);
            if (down) turn_round(blocks, count);
            out = blocks[missing];
            blocks[missing] = blocks[missing + 1];
            put = put_until_fault(slab, count, &fault);
            assert_int_equal(fault, SLAB_FAULT_TWICE);
            assert_int_equal(put, missing + 1);
            assert_int_equal(put_one(slab, out), SLAB_FAULT_NONE);
            put_each_from(slab, put + 1, count);
        }
    }
}

/* Two slabs side by side: addresses go on, the slab does not. */
static void neighbours_end_with_their_slab(void **state)
{
    unsigned class_index = class_of_size(64), count;
    struct slab *low, *high;
    enum slab_fault fault;

    (void)state;
    start_slabs();
    low = open_one(class_index);
    high = open_one(class_index);
    assert_ptr_equal(high->base, low->base + slab_shape[class_index].bytes);
    count = low->block_count;
    assert_int_equal(take(low, blocks, count), count);
    assert_int_equal(take(high, blocks + count, count), count);
    assert_int_equal(slab_put(low, blocks + 5, 2 * count - 5, &fault), count - 5);
    assert_int_equal(fault, SLAB_FAULT_NONE);
    slab_check(low);
    assert_int_equal(slab_put(low, blocks, 5, &fault), 5);
    slab_check(low);
    turn_round(blocks + count, count);
    blocks[2 * count] = low->base + (count - 1) * 64; /* goes on downwards */
    assert_int_equal(slab_put(high, blocks + count, count + 1, &fault), count);
    assert_int_equal(fault, SLAB_FAULT_NONE);
    slab_check(high);
}

static void blocks_know_their_slab(void **state)
{
    struct slab *slab;
    unsigned class_index = class_of_size(100);
    char *end;

    (void)state;
    start_slabs();
    slab = open_one(class_index);
    end = slab->base + slab_shape[class_index].bytes;
    for (char *at = slab->base; at < end; at += 8) {
        assert_ptr_equal(slab_of(at, class_index), slab);
        assert_null(slab_of(at, class_index + 1));
        assert_int_equal(class_map_at(at), offset_of_class(class_index));
    }
    assert_null(slab_of(NULL, class_index));
    assert_null(slab_of(&slab, class_index));
    assert_null(slab_of(end, class_index));
    assert_null(slab_of(slab->base - 1, class_index));
    assert_ptr_equal(slab_record(slab_number(slab)), slab);
}

/* ---- open and close ---- */

static void closing_gives_everything_back(void **state)
{
    size_t used;

    (void)state;
    start_slabs();
    close_test_slab(open_one(class_of_size(1)));
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        struct slab *slab;
        char *base;

        used = commit.record_bytes;
        slab = open_one(class_index);
        base = slab->base;
        check_runs();
        assert_int_equal(take(slab, blocks, 1), 1);
        assert_int_equal(put_one(slab, blocks[0]), SLAB_FAULT_NONE);
        close_test_slab(slab);
        meta_give(slab, slab_shape[class_index].record_bytes);
        check_runs();
        assert_int_equal(commit.record_bytes, used);
        assert_int_equal(page_heap_used_pages(page_heap), 0);
        assert_int_equal(class_map_at(base), 0);
        assert_int_equal(page_record(page_at(base))->class_at, 0);
    }
}

/* A record is as good as new when it is opened again. */
static void a_record_can_be_opened_again(void **state)
{
    struct slab *slab;
    unsigned class_index = class_of_size(40);

    (void)state;
    start_slabs();
    slab = open_one(class_index);
    for (unsigned round = 0; round < 5; round++) {
        unsigned count = slab->block_count;
        assert_int_equal(take(slab, blocks, count), count);
        for (unsigned i = 0; i < count; i++)
            assert_int_equal(put_one(slab, blocks[count - 1 - i]), SLAB_FAULT_NONE);
        close_test_slab(slab);
        check_runs();
        slab_open(slab, class_index, 5, run_lease(slab_pages(class_index), 1, PAGE_USED).page);
        slab_check(slab);
        check_runs();
        assert_int_equal(slab->free_count, count);
    }
}

static void close_with_a_block_out(void)
{
    struct slab *slab;

    start_slabs();
    slab = open_one(3);
    (void)take(slab, blocks, 1);
    close_test_slab(slab);
}

static void closing_with_blocks_out_aborts(void **state)
{
    (void)state;
    expect_abort(close_with_a_block_out, "prairie: broken invariant: slab->free_count");
}

static void refused_memory_opens_nothing(void **state)
{
    unsigned refused = 0;

    (void)state;
    start_slabs();
    for (unsigned budget = 0; budget < 64; budget++) {
        size_t used = commit.record_bytes, pages = page_heap_used_pages(page_heap);
        struct slab *slab;

        fake_commit_bytes_max(fake_committed_bytes() + budget * page_bytes());
        slab = open_test_slab(20, 0);
        check_runs();
        if (slab == NULL) {
            refused++;
            assert_int_equal(commit.record_bytes, used);
            assert_int_equal(page_heap_used_pages(page_heap), pages);
        }
        fake_commit_bytes_max(SIZE_MAX);
        while (slab == NULL || run_find(page_heap, slab_shape[20].bytes >> space.page_shift) != 0) {
            slab = open_test_slab(20, 0); /* until the next one needs memory again */
            assert_non_null(slab);
        }
    }
    assert_true(refused >= 2);
}

/* ---- random blocks against an array ---- */

static void random_blocks_against_a_model(void **state)
{
    static bool out[BLOCKS_MAX];
    unsigned used = 0;
    struct slab *slab;

    (void)state;
    start_slabs();
    slab = open_one(class_of_size(24));
    for (unsigned step = 0; step < 20000; step++) {
        unsigned index = (unsigned)random_below(slab->block_count);
        void *block = slab->base + index * slab_shape[slab->class_index].block_bytes;
        void *taken;

        if (random_below(2) == 0) {
            unsigned lowest = 0;
            unsigned got = take(slab, &taken, 1);
            assert_int_equal(got, used < slab->block_count);
            if (got == 0) continue;
            while (out[lowest]) lowest++;
            assert_ptr_equal(taken,
                             slab->base + lowest * slab_shape[slab->class_index].block_bytes);
            out[lowest] = true;
            used++;
        } else {
            assert_int_equal(put_one(slab, block), out[index] ? SLAB_FAULT_NONE : SLAB_FAULT_TWICE);
            used -= out[index];
            out[index] = false;
        }
        assert_int_equal(slab->free_count, slab->block_count - used);
    }
}

/* ---- pages without a block ---- */

/* By the addresses of the blocks that are out, one by one. */
static bool has_block_out(const struct slab *slab, size_t page)
{
    const struct slab_shape *shape = &slab_shape[slab->class_index];

    for (unsigned i = 0; i < shape->block_count; i++) {
        size_t begin = (size_t)i * shape->block_bytes, end = begin + shape->block_bytes;

        if (!slab_has_free(slab, i) && begin < (page + 1) * page_bytes()
            && end > page * page_bytes())
            return true;
    }
    return false;
}

static void check_unused_pages(const struct slab *slab)
{
    size_t pages = slab_pages(slab->class_index), first = 0, found = 0;

    while (found != pages) {
        size_t run = slab_unused_pages(slab, &first);

        for (; found < first; found++)
            assert_true(has_block_out(slab, found) || (slab->purged >> found & 1) != 0);
        for (; found < first + run; found++) {
            assert_false(has_block_out(slab, found));
            assert_int_equal(slab->purged >> found & 1, 0);
        }
        assert_true(run != 0 || first == pages);
        first += run;
    }
}

static void pages_without_a_block_are_found(void **state)
{
    (void)state;
    start_slabs();
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        struct slab *slab = open_one(class_index);
        unsigned all = take(slab, blocks, slab->block_count);
        size_t first = 0;

        check_unused_pages(slab);
        for (unsigned put = 0; put < all; put++) {
            size_t at = put + random_below(all - put);
            void *block = blocks[at];

            blocks[at] = blocks[put];
            assert_int_equal(put_one(slab, block), SLAB_FAULT_NONE);
            check_unused_pages(slab);
            if (put % 7 == 3 && slab_unused_pages(slab, &first) != 0)
                slab_mark_purged(slab, first, 1);
            slab_check(slab);
            check_unused_pages(slab);
            first = 0;
        }
        slab->purged |= SLAB_IDLE;
        (void)take(slab, blocks, 1);
        assert_int_equal(slab->purged, 0);
        assert_int_equal(put_one(slab, blocks[0]), SLAB_FAULT_NONE);
        assert_int_equal(slab_unused_pages(slab, &first), slab_pages(class_index));
        slab_mark_purged(slab, 0, slab_pages(class_index));
        first = 0;
        assert_int_equal(slab_unused_pages(slab, &first), 0);
        close_test_slab(slab);
    }
}

/* In the checking flavours words of the second bitmap are changed by atomic operations. */
static void a_word_lies_on_one_line(void **state)
{
    struct slab *slab;

    (void)state;
    start_slabs();
    slab = open_one(1);
    assert_true(is_aligned((uintptr_t)slab->free, sizeof slab->free[0]));
    assert_true(is_aligned((uintptr_t)guarded_pool.came, sizeof guarded_pool.came[0]));
}

UNIT_MAIN(UNIT_TEST(all_shapes_on_all_page_sizes), UNIT_TEST(a_word_lies_on_one_line),
          UNIT_TEST(blocks_come_in_ascending_order),
          UNIT_TEST(freed_blocks_are_found_again_lowest_first),
          UNIT_TEST(a_put_ends_where_the_slab_ends),
          UNIT_TEST(wrong_blocks_are_told_and_change_nothing),
          UNIT_TEST(neighbours_are_put_together), UNIT_TEST(a_free_block_among_neighbours_is_told),
          UNIT_TEST(a_block_twice_among_neighbours_is_told),
          UNIT_TEST(neighbours_end_with_their_slab), UNIT_TEST(blocks_know_their_slab),
          UNIT_TEST(closing_gives_everything_back), UNIT_TEST(a_record_can_be_opened_again),
          UNIT_TEST(closing_with_blocks_out_aborts), UNIT_TEST(refused_memory_opens_nothing),
          UNIT_TEST(random_blocks_against_a_model), UNIT_TEST(pages_without_a_block_are_found))
