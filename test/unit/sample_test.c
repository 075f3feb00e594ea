/* sample_test.c - sampled blocks are found by every free, and cost memory only while they live. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "samples.h"

/* ---- sampled blocks ---- */

static void every_free_finds_it(void **state)
{
    size_t sizes[] = { 1, 8, 24, 200, 1024, 1025, 9000, 14336, 14337, 70000 };

    (void)state;
    sample_from_now(1);
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        void *block[4];

        for (unsigned way = 0; way < 4; way++) {
            block[way] = sampled_block(sizes[i]);
            memset(block[way], 0xa5, prairie_usable_size(block[way]));
            assert_int_equal(prairie_usable_size(block[way]), prairie_nallocx(sizes[i], 0));
        }
        assert_int_equal(estimate_now().live, 4);
        prairie_free(block[0]);
        prairie_free_sized(block[1], sizes[i]);
        prairie_sdallocx(block[2], sizes[i], 0);
        assert_null(prairie_realloc(block[3], 0));
        assert_int_equal(estimate_now().live, 0);
        prairie_check_all();
    }
}

static void a_sized_free_looks_only_where_one_lives(void **state)
{
    unsigned class_index = class_of_size(100);
    uint8_t apart = (uint8_t)(offset_of_class(class_index) + OFFSET_FOR_FREES);
    void *block;

    (void)state;
    sample_from_now(PERIOD);
    assert_int_equal(offset_of_sized_free[100], apart);
    block = sampled_block(100);
    assert_int_equal(offset_of_sized_free[100], 0);
    assert_int_equal(offset_of_sized_free[300], offset_of_size[300] + OFFSET_FOR_FREES);
    prairie_free_sized(block, 100);
    assert_int_equal(offset_of_sized_free[100], apart);
}

/* The countdown of a watch is one word of all threads: nobody writes it while none is. */
static void a_sized_free_that_looks_counts_for_a_watch_only(void **state)
{
    void *block, *other;

    (void)state;
    sample_from_now(PERIOD);
    other = prairie_malloc(100);
    block = sampled_block(100);
    assert_int_equal(offset_of_sized_free[100], 0);
    misuse_note_free(other);
    free_sized_overflow(thread_front(), other, 100);
    assert_int_equal(sized_frees_left, 0);
    prairie_free_sized(block, 100);
}

/* Of each size that the header's table has, to the last. */
static void sized_frees_have_magazines_of_their_own(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    for (unsigned size = 1; size <= TABLE_BYTES_MAX; size++)
        assert_int_equal(offset_of_sized_free[size], offset_of_size[size]);
    sample_from_now((uint64_t)1 << 50);
    for (unsigned size = 1; size <= TABLE_BYTES_MAX; size++)
        assert_int_equal(offset_of_sized_free[size], offset_of_size[size] + OFFSET_FOR_FREES);
}

/* Those that look for a guarded block look on, until nobody watches it any more. */
static void sized_frees_that_watch_go_on_watching(void **state)
{
    unsigned class_index = class_of_size(100);

    (void)state;
    prairie_free(prairie_malloc(1));
    sized_free_look(class_index, 1);
    assert_int_equal(offset_of_sized_free[100], 0);
    sample_from_now((uint64_t)1 << 50);
    assert_int_equal(offset_of_sized_free[100], 0);
    assert_int_equal(offset_of_sized_free[300], offset_of_size[300] + OFFSET_FOR_FREES);
    sized_free_look(class_index, -1);
    assert_int_equal(offset_of_sized_free[100], offset_of_size[100] + OFFSET_FOR_FREES);
}

static void resizing_keeps_contents_and_counts(void **state)
{
    size_t sizes[] = { 10, 1000, 5000, 14000, 20000, 30000, 200000, 150000, 6000, 40, 600000, 10 };
    unsigned char *block;

    (void)state;
    sample_from_now(1);
    block = sampled_block(5);
    memset(block, 1, 5);
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        block = prairie_realloc(block, sizes[i]);
        assert_non_null(block);
        assert_true(all_bytes_are(block, 1, 5));
        memset(block, 1, sizes[i]);
        assert_int_equal(estimate_now().live, 1);
        prairie_check_all();
    }
    prairie_free(block);
    assert_int_equal(estimate_now().live, 0);
}

/* A block that fills pages stays where it is as long as it can, sampled or not. */
static void large_ones_resize_in_place(void **state)
{
    char *block;

    (void)state;
    sample_from_now(1);
    block = sampled_block(400000);
    assert_int_equal(prairie_xallocx(block, 100000, 0, 0), 102400 - PAGE_STAGGERED);
    assert_int_equal(prairie_usable_size(block), 102400 - PAGE_STAGGERED);
    assert_int_equal(prairie_xallocx(block, 300000, 0, 0), 303104 - PAGE_STAGGERED);
    assert_int_equal(prairie_xallocx(block, BY_WORD(1024 * TiB, GiB), 0, 0),
                     303104 - PAGE_STAGGERED);
    assert_int_equal(estimate_now().live, 1);
    assert_ptr_equal(prairie_rallocx(block, 200000, 0), block);
    assert_ptr_equal(prairie_realloc(block, 150000), block);
    assert_int_equal(estimate_now().live, 1);
    prairie_check_all();
    block = prairie_rallocx(block, 30, 0);
    assert_int_equal(prairie_xallocx(block, 3000, 0, 0), 32);
    prairie_dallocx(block, 0);
    assert_int_equal(estimate_now().live, 0);
    prairie_check_all();
}

/* A new size is a chance like a new block, no more: it comes to at most one sample in thousands. */
static void few_of_the_resized_are_sampled(void **state)
{
    enum { ROUNDS = 1000 };
    char *block;

    (void)state;
    sample_from_now((uint64_t)1 << 40);
    block = prairie_malloc(200000);
    for (unsigned i = 0; i < ROUNDS; i++) {
        block = prairie_realloc(block, i % 2 == 0 ? 100000 : 200000);
        assert_non_null(block);
    }
    assert_true(estimate_now().taken < 5);
    prairie_free(block);
    prairie_check_all();
}

static void cleared_blocks_are_clear(void **state)
{
    (void)state;
    sample_from_now(1);
    for (unsigned i = 0; i < 50; i++) {
        size_t bytes = 100 + i * 700;
        unsigned char *block = prairie_calloc(1, bytes);

        assert_true(all_bytes_are(block, 0, bytes));
        memset(block, 0xff, prairie_usable_size(block));
        prairie_free(block);
    }
}

static void alignment_is_kept(void **state)
{
    (void)state;
    sample_from_now(1);
    for (size_t align = 8; align <= 65536; align *= 2) {
        void *block = prairie_aligned_alloc(align, align + 10);

        assert_true(is_aligned((uintptr_t)block, align));
        prairie_free(block);
    }
    assert_int_equal(estimate_now().live, 0);
}

/* A staggered one that is large by its alignment has the bytes of no class. */
static void aligned_ones_are_as_long_as_asked(void **state)
{
    enum { BYTES = 9000 };

    (void)state;
    sample_from_now(1);
    for (size_t size = BYTES; size <= SMALL_BYTES_MAX; size += 100) {
        char *block = prairie_aligned_alloc(2 * page_bytes(), BYTES);

        memset(block, 3, BYTES);
        block = prairie_realloc(block, size);
        assert_true(prairie_usable_size(block) >= size);
        assert_true(all_bytes_are(block, 3, BYTES));
        prairie_free(block);
    }
}

static void free_sampled_twice(void)
{
    void *block;

    sample_from_now(1);
    block = sampled_block(50);
    prairie_free(block);
    prairie_free(block);
}

static void free_inside_sampled(void)
{
    sample_from_now(1);
    prairie_free((char *)sampled_block(9000) + 4096);
}

/* As the plain flavour believes it: into the magazine of the size, which is drained some time
 * later. */
static void drain_sampled(size_t bytes, size_t told)
{
    void *block = sampled_block(bytes);

    arenas_drain(class_of_size(told), &block, 1);
}

static void drain_sampled_as_larger(void)
{
    sample_from_now(1);
    drain_sampled(50, 1000);
}

static void drain_sampled_as_smaller(void)
{
    sample_from_now(1);
    drain_sampled(9000, 50);
}

static void drain_large_sampled(void)
{
    sample_from_now(1);
    drain_sampled(70000, 1000);
}

static void drain_freed_sampled(void)
{
    void *block;

    sample_from_now(1);
    block = sampled_block(50);
    prairie_free(block);
    arenas_drain(class_of_size(1000), &block, 1);
}

static void misuse_is_told(void **state)
{
    (void)state;
    expect_abort(free_sampled_twice, "prairie: double free: ");
    expect_abort(free_inside_sampled, "prairie: free of an interior pointer: ");
    expect_abort(drain_sampled_as_larger, "prairie: double free or wrong size in sized delete: ");
    expect_abort(drain_sampled_as_smaller, "prairie: double free or wrong size in sized delete: ");
    expect_abort(drain_large_sampled, "prairie: double free or wrong size in sized delete: ");
    expect_abort(drain_freed_sampled, "prairie: double free: ");
}

/* ---- switches ---- */

static void nothing_is_sampled_while_it_is_off(void **state)
{
    (void)state;
    sample_from_now(1);
    sampling_active = false;
    for (unsigned i = 0; i < 100; i++) prairie_free(prairie_malloc(i * 300));
    assert_int_equal(estimate_now().taken, 0);
    sampling_active = true;
    ((struct counting_front *)thread_front())->sampler->is_off = true;
    for (unsigned i = 0; i < 100; i++) prairie_free(prairie_malloc(i * 300));
    assert_int_equal(estimate_now().taken, 0);
    ((struct counting_front *)thread_front())->sampler->is_off = false;
    prairie_free(prairie_malloc(10));
    assert_true(estimate_now().taken > 0);
}

static void blocks_from_before_a_reset_are_not_missed(void **state)
{
    void *block;

    (void)state;
    sample_from_now(1);
    block = sampled_block(77);
    samples_reset();
    assert_int_equal(estimate_now().live, 0);
    prairie_free(block);
    assert_int_equal(estimate_now().live, 0);
    prairie_check_all();
}

/* The same stack makes another site, perhaps where the one before was. */
static void a_site_after_a_reset_has_its_own_samples_only(void **state)
{
    uintptr_t stack[] = { 11, 12 };
    struct origin origin = { .return_address = stack, .depth = 2 };
    uint32_t before, after;

    (void)state;
    assert_true(heap_start());
    before = sample_note(&origin, 100);
    samples_reset();
    after = sample_note(&origin, 100);
    sample_forget(before);
    assert_int_equal(estimate_now().live, 1);
    sample_forget(after);
    assert_int_equal(estimate_now().live, 0);
    assert_int_equal(estimate_now().taken, 1);
}

/* Exact totals and samples at the same time. */
static void totals_are_exact_meanwhile(void **state)
{
    const struct prairie_thread_totals *totals;
    uint64_t taken = 0, given = 0;

    (void)state;
    sample_from_now(PERIOD);
    prairie_free(prairie_malloc(100));
    totals = prairie_thread_totals();
    for (unsigned i = 0; i < 30000; i++) {
        void *block = take_somehow(any_size());

        taken += prairie_usable_size(block);
        assert_int_equal(totals->allocated, taken);
        given += prairie_usable_size(block);
        prairie_free(block);
        assert_int_equal(totals->deallocated, given);
    }
    expect_close((double)taken);
    prairie_check_all();
}

/* The doors whose blocks of a size are of one class. */
static void *take_small_somehow(size_t size)
{
    switch (random_below(3)) {
    case 0: return prairie_calloc(1, size);
    case 1: return prairie_mallocx(size, 0);
    default: return prairie_malloc(size);
    }
}

/* Their bytes were touched last, and are in the processor's caches. */
static void what_was_freed_last_is_taken_first(void **state)
{
    enum { BLOCKS = 3 };
    size_t sizes[] = { 8, 48, 1000, 1024, 1025, 9000, 14336 };

    (void)state;
    sample_from_now((uint64_t)1 << 50);
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        void *block[BLOCKS];

        for (unsigned n = 0; n < BLOCKS; n++) block[n] = prairie_malloc(sizes[i]);
        for (unsigned round = 0; round < 10000; round++) {
            unsigned most = magazine_capacity(class_of_size(sizes[i])) < BLOCKS ? 1 : BLOCKS;

            for (unsigned n = 0; n < most; n++) prairie_free(block[n]);
            for (unsigned n = most; n-- > 0;)
                assert_ptr_equal(take_small_somehow(sizes[i]), block[n]);
        }
        for (unsigned n = 0; n < BLOCKS; n++) prairie_free(block[n]);
    }
    assert_int_equal(estimate_now().taken, 0);
    prairie_check_all();
}

static void without_memory_blocks_go_unsampled(void **state)
{
    void *block[200];
    unsigned count = 0;

    (void)state;
    sample_from_now(1);
    prairie_free(prairie_malloc(100));
    fake_fail_all(true);
    while (count < 200 && (block[count] = prairie_malloc(100 + count * 40)) != NULL) count++;
    fake_fail_all(false);
    prairie_check_all();
    while (count > 0) prairie_free(block[--count]);
    assert_int_equal(estimate_now().live, 0);
    prairie_check_all();
}

/* A sample that has no memory for its record, or its site, is not taken, and others go on. */
static void a_refused_sample_leaves_nothing(void **state)
{
    static uint32_t records[40000];
    unsigned taken = 0, refused = 0;

    (void)state;
    assert_true(heap_start());
    for (uintptr_t i = 0; i < ARRAY_COUNT(records); i++) {
        uintptr_t stack[40];
        struct origin origin = { .return_address = stack, .depth = ARRAY_COUNT(stack) };

        if (i == 10) fake_fail_all(true);
        for (unsigned at = 0; at < ARRAY_COUNT(stack); at++) stack[at] = 4096 + i;
        records[i] = sample_note(&origin, 100);
        taken += records[i] != 0;
        refused += records[i] == 0;
    }
    assert_true(taken > 0 && refused > 0);
    assert_int_equal(samples_totals().sites, taken);
    assert_int_equal(estimate_now().live, taken);
    fake_fail_all(false);
    for (unsigned i = 0; i < ARRAY_COUNT(records); i++)
        if (records[i] != 0) sample_forget(records[i]);
    assert_int_equal(estimate_now().live, 0);
}

/* What the hash of a stack is when it goes on, as unwind.h makes it of 64 bits. */
static uint64_t hash_beyond(uint64_t hash, uint64_t address)
{
    hash = (hash ^ address) * UINT64_C(0x9fb21c651e98df25);
    return hash ^ hash >> 29;
}

static void note_hash(const struct site *site, void *context)
{
    uint64_t *hash = context;

    if (hash[0] == 0) hash[0] = site->hash;
    else hash[1] = site->hash;
}

/* Two stacks that differ are two sites, even where all the hash knows of them is the same. */
static void a_hash_of_two_stacks_is_no_site_of_both(void **state)
{
    enum { BYTES = 100, DEPTH = 6, DIFFERS = 4 };
    uintptr_t stack[2][DEPTH] = { { 11, 12, 13, 14, 15, 16 }, { 11, 12, 13, 14, 99, 0 } };
    uint64_t hash[2] = { BYTES * 64, BYTES * 64 };
    uint32_t records[3];

    (void)state;
    if (sizeof(uintptr_t) != sizeof(uint64_t)) skip();
    assert_true(heap_start());
    for (unsigned i = 0; i < 2; i++)
        for (unsigned at = 0; at <= DIFFERS; at++) hash[i] = hash_beyond(hash[i], stack[i][at]);
    stack[1][DEPTH - 1] = (uintptr_t)(stack[0][DEPTH - 1] ^ hash[0] ^ hash[1]);
    for (unsigned i = 0; i < 3; i++) {
        struct origin origin = { .return_address = stack[i % 2], .depth = DEPTH };

        records[i] = sample_note(&origin, BYTES);
        assert_int_not_equal(records[i], 0);
    }
    assert_int_equal(samples_totals().sites, 2);
    assert_int_equal(samples_totals().addresses, 2 * DEPTH);
    hash[0] = 0;
    assert_true(samples_visit(note_hash, hash));
    assert_int_equal(hash[0], hash[1]);
    for (unsigned i = 0; i < 3; i++) sample_forget(records[i]);
    assert_int_equal(estimate_now().live, 0);
}

static void count_names(const struct site *site, void *context)
{
    ((unsigned *)context)[site->name] += (unsigned)site->taken;
}

static void threads_of_a_name_share_a_site(void **state)
{
    uintptr_t stack[] = { 11, 12 };
    unsigned taken[3] = { 0, 0, 0 };

    (void)state;
    assert_true(heap_start());
    for (unsigned i = 0; i < 6; i++) {
        struct origin origin = { .return_address = stack, .depth = 2, .name = i % 3 == 0 ? 1 : 2 };

        assert_int_not_equal(sample_note(&origin, 100), 0);
    }
    assert_int_equal(samples_totals().sites, 2);
    assert_true(samples_visit(count_names, taken));
    assert_int_equal(taken[0], 0);
    assert_int_equal(taken[1], 2);
    assert_int_equal(taken[2], 4);
}

/* A program whose every stack differs: beyond many sites, they are cut short, and become few. */
static void of_very_many_stacks_only_the_tops_differ(void **state)
{
    enum { MANY = 100000, DEPTH = 7, KEPT = 4 };
    const char *next;

    (void)state;
    assert_true(heap_start());
    for (unsigned i = 0; i < MANY + 1000; i++) {
        uintptr_t stack[DEPTH] = { 1, 2, 3, 4, 5, 6, 7 + i };
        struct origin origin = { .return_address = stack, .depth = DEPTH };

        assert_int_not_equal(sample_note(&origin, 100), 0);
        assert_int_equal(samples_totals().sites, min_size(i, MANY) + 1);
    }
    assert_int_equal(samples_totals().addresses, MANY * DEPTH + KEPT);
    for (unsigned i = 0; i < 10; i++) {
        uintptr_t stack[DEPTH] = { 1, 2, 3, 8 + i, 5, 6, 7 };
        struct origin origin = { .return_address = stack, .depth = KEPT - i % 2 };

        assert_int_not_equal(sample_note(&origin, 100), 0);
    }
    assert_int_equal(samples_totals().sites, MANY + 1 + 5 + 1);
    /* A reset makes room for whole stacks again, in the records of those before. */
    samples_reset();
    assert_int_equal(samples_totals().sites + samples_totals().addresses, 0);
    next = meta.next;
    for (unsigned i = 0; i < MANY / 2; i++) {
        uintptr_t stack[DEPTH] = { 1, 2, 3, 4, 5, 6, 7 + i };
        struct origin origin = { .return_address = stack, .depth = DEPTH };

        assert_int_not_equal(sample_note(&origin, 100), 0);
    }
    assert_int_equal(samples_totals().sites, MANY / 2);
    assert_int_equal(samples_totals().addresses, MANY / 2 * DEPTH);
    /* For the samples alone; a few may lie where one of the 7 cut stacks lay. */
    assert_in_range(next - meta.next, (MANY / 2 - 7) * META_UNIT_BYTES, MANY / 2 * META_UNIT_BYTES);
}

/* Names are numbered once, until there are too many. */
static void names_are_numbered(void **state)
{
    unsigned number = 0, last = 0;
    char name[32];

    (void)state;
    assert_true(heap_start());
    assert_int_equal(sample_name(""), 0);
    assert_int_equal(sample_name("one"), 1);
    assert_int_equal(sample_name("two"), 2);
    assert_int_equal(sample_name("one"), 1);
    assert_int_equal(sample_name("on"), 3);
    assert_string_equal(sample_name_text(2), "two");
    assert_string_equal(sample_name_text(0), "");
    assert_int_equal(sample_name("fifteen letters"), 4); /* as long as the kernel's */
    assert_int_equal(sample_name("fifteen letters and more"), 4);
    assert_string_equal(sample_name_text(4), "fifteen letters");
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "thread %u", i);
        number = sample_name(name);
        if (number == 0) break;
        assert_int_equal(number, i + 5);
        last = number;
    }
    assert_int_equal(number, 0);
    assert_true(last > 10);
    assert_int_equal(sample_name("one"), 1);
}

UNIT_MAIN(UNIT_TEST(every_free_finds_it), UNIT_TEST(a_sized_free_looks_only_where_one_lives),
          UNIT_TEST(a_sized_free_that_looks_counts_for_a_watch_only),
          UNIT_TEST(sized_frees_have_magazines_of_their_own),
          UNIT_TEST(sized_frees_that_watch_go_on_watching),
          UNIT_TEST(resizing_keeps_contents_and_counts), UNIT_TEST(large_ones_resize_in_place),
          UNIT_TEST(few_of_the_resized_are_sampled), UNIT_TEST(cleared_blocks_are_clear),
          UNIT_TEST(alignment_is_kept), UNIT_TEST(aligned_ones_are_as_long_as_asked),
          UNIT_TEST(misuse_is_told), UNIT_TEST(nothing_is_sampled_while_it_is_off),
          UNIT_TEST(blocks_from_before_a_reset_are_not_missed),
          UNIT_TEST(a_site_after_a_reset_has_its_own_samples_only),
          UNIT_TEST(what_was_freed_last_is_taken_first), UNIT_TEST(totals_are_exact_meanwhile),
          UNIT_TEST(without_memory_blocks_go_unsampled), UNIT_TEST(a_refused_sample_leaves_nothing),
          UNIT_TEST(a_hash_of_two_stacks_is_no_site_of_both),
          UNIT_TEST(threads_of_a_name_share_a_site),
          UNIT_TEST(of_very_many_stacks_only_the_tops_differ), UNIT_TEST(names_are_numbered))
