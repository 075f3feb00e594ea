/* guarded_test.c - guarded blocks: where they lie, how long their cells rest, and what is said of
 * whoever does wrong with them. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "guard/guarded.h"
#include "heap/guarded_doors.h"
#include "policy/limits.h"
#include "unit.h"

#include <jemalloc/jemalloc.h>
#include <sys/wait.h>

/* ---- the pool alone ---- */

static void start_pool(unsigned cells)
{
    assert_true(heap_start());
    assert_true(guarded_start(cells));
}

/* Of the n-th site. */
static char *take_of(unsigned site, size_t size, size_t align)
{
    struct guarded_trace taken = { .thread = 1, .depth = 1, .return_address = { 4096 + site } };

    return guarded_take(size, align, class_of_size(size), &taken);
}

static void give(const char *block)
{
    struct guarded_trace given = { .thread = 2, .depth = 1, .return_address = { 4711 } };

    assert_true(guarded_give(block, &given));
}

static bool is_beside_guards(const char *block)
{
    const char *page = (const char *)round_down((uintptr_t)block, page_bytes());

    return fake_is_committed(page, page_bytes())
        && !fake_is_committed(page - page_bytes(), page_bytes())
        && !fake_is_committed(page + page_bytes(), page_bytes());
}

static void it_lies_at_either_end_of_a_page(void **state)
{
    bool is_left = false, is_right = false;

    (void)state;
    start_pool(8);
    for (unsigned i = 0; i < 200; i++) {
        size_t size = 1 + random_below(page_bytes()), align = (size_t)1 << random_below(10);
        unsigned class_index = class_of_aligned(size, align);
        struct guarded_trace taken = { .depth = 0 };
        char *block = guarded_take(size, align, class_index, &taken);
        size_t at = (uintptr_t)block % page_bytes(), end = at + class_bytes[class_index];

        if (class_bytes[class_index] > page_bytes()) {
            assert_null(block);
            continue;
        }
        assert_non_null(block);
        assert_true(is_beside_guards(block));
        assert_true(is_aligned((uintptr_t)block, align));
        assert_true(at == 0 || end + align > page_bytes());
        assert_true(end <= page_bytes() && all_bytes_are(block, 0, class_bytes[class_index]));
        if (class_bytes[class_index] < page_bytes() / 2) {
            is_left |= at == 0;
            is_right |= at != 0;
        }
        __builtin_memset(block, 0xee, class_bytes[class_index]);
        give(block);
        assert_false(
            fake_is_committed((char *)round_down((uintptr_t)block, page_bytes()), page_bytes()));
        guarded_check();
    }
    assert_true(is_left && is_right);
}

static void cells_rest_as_long_as_can_be(void **state)
{
    char *page[8];

    (void)state;
    start_pool(8);
    for (unsigned i = 0; i < 8; i++) {
        char *block = take_of(i, 48, 16);
        page[i] = (char *)round_down((uintptr_t)block, page_bytes());
        for (unsigned other = 0; other < i; other++) assert_ptr_not_equal(page[i], page[other]);
        give(block);
    }
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < 8; i++) {
            char *block = take_of(i, 48, 16);
            assert_ptr_equal((char *)round_down((uintptr_t)block, page_bytes()), page[i]);
            give(block);
            guarded_check();
        }
}

static void some_cells_always_rest(void **state)
{
    unsigned held = 0;

    (void)state;
    start_pool(16);
    for (unsigned i = 0; i < 100; i++) held += take_of(i, 48, 16) != NULL;
    assert_int_equal(held, 12);
    guarded_check();
}

static void a_site_cannot_fill_the_pool(void **state)
{
    char *block[100];
    unsigned held = 0;

    (void)state;
    start_pool(64);
    for (unsigned i = 0; i < 100; i++) {
        block[held] = take_of(1, 48, 16);
        held += block[held] != NULL;
    }
    assert_int_equal(held, 8);
    assert_non_null(take_of(2, 48, 16));
    give(block[0]);
    assert_non_null(take_of(1, 48, 16));
    assert_null(take_of(1, 48, 16));
    guarded_check();
}

/* By whom they are taken: the first four callers, of more than that. */
static void a_site_is_four_callers(void **state)
{
    struct guarded_trace taken = { .thread = 1,
                                   .depth = 6,
                                   .return_address = { 4001, 4002, 4003, 4004, 4005, 4006 } };
    unsigned class_index = class_of_size(48);

    (void)state;
    start_pool(8); /* of which a site may have one */
    assert_non_null(guarded_take(48, 16, class_index, &taken));
    assert_null(guarded_take(48, 16, class_index, &taken));
    taken.return_address[4]++;
    assert_null(guarded_take(48, 16, class_index, &taken));
    for (unsigned i = 0; i < 4; i++) {
        taken.return_address[i]++;
        assert_non_null(guarded_take(48, 16, class_index, &taken));
    }
    taken.depth = 3;
    assert_non_null(guarded_take(48, 16, class_index, &taken));
    taken.return_address[3]++;
    assert_null(guarded_take(48, 16, class_index, &taken));
    guarded_check();
}

static void memory_may_be_refused(void **state)
{
    (void)state;
    start_pool(4);
    fake_fail_kind(FAKE_COMMIT, true);
    for (unsigned i = 0; i < 10; i++) assert_null(take_of(i, 48, 16));
    guarded_check();
    fake_fail_kind(FAKE_COMMIT, false);
    assert_non_null(take_of(1, 48, 16));
    guarded_check();
}

/* ---- finding ---- */

static const char *found_at(const char *address) { return guarded_find(address).cell.block; }

/* Of a guard's bytes: those nearer to one held block or the other, or to one cell or the other. */
static void a_guard_is_of_the_nearer_block(void **state)
{
    char *block[3], *guard[4];

    (void)state;
    start_pool(8);
    for (unsigned i = 0; i < 3; i++) block[i] = take_of(i, 48, 16);
    for (unsigned i = 0; i < 4; i++) guard[i] = strays.first + 2 * i * page_bytes();
    assert_int_equal(guarded_find(guard[3] + page_bytes()).kind, GUARDED_NONE); /* never used */
    for (size_t at = 0; at < page_bytes(); at++) {
        char *address = guard[1] + at;
        bool is_left = address - (block[0] + 48) < block[1] - address;

        assert_ptr_equal(found_at(address), is_left ? block[0] : block[1]);
        assert_ptr_equal(found_at(guard[0] + at), block[0]);
        assert_ptr_equal(found_at(guard[3] + at), block[2]);
    }
    give(block[1]);
    for (size_t at = 0; at < page_bytes(); at++) {
        assert_ptr_equal(found_at(guard[1] + at), block[0]);
        assert_ptr_equal(found_at(guard[2] + at), block[2]);
    }
    give(block[0]);
    give(block[2]);
    for (size_t at = 0; at < page_bytes(); at++) {
        unsigned nearer = at < page_bytes() / 2 ? 0 : 1;

        assert_ptr_equal(found_at(guard[0] + at), block[0]);
        assert_ptr_equal(found_at(guard[1] + at), block[nearer]);
        assert_ptr_equal(found_at(guard[2] + at), block[1 + nearer]);
        assert_ptr_equal(found_at(guard[3] + at), block[2]);
    }
}

static void each_byte_of_a_held_block_is_its_own(void **state)
{
    char *block;

    (void)state;
    assert_true(heap_start());
    assert_false(guarded_start(0));
    start_pool(1);
    block = take_of(1, 40, 16);
    for (size_t at = 0; at < 48; at++) assert_true(guarded_holds(block + at));
    assert_false(guarded_holds(block - 1) || guarded_holds(block + 48));
    give(block);
    assert_false(guarded_holds(block) || guarded_holds(block + 1));
    assert_true(guarded_find(block).is_watched); /* who freed it is known */
    block = take_of(1, 40, 16);
    guarded_end_watch();
    assert_false(guarded_find(block).is_watched);
}

static void around_a_block_are_its_page_and_guards(void **state)
{
    char *block, *page;

    (void)state;
    start_pool(1);
    for (;;) {
        block = take_of(1, 40, 16);
        page = (char *)round_down((uintptr_t)block, page_bytes());
        if (block != page) break;
        give(block);
    }
    assert_int_equal(guarded_find(page - page_bytes()).kind, GUARDED_BEFORE);
    assert_int_equal(guarded_find(page - 1).kind, GUARDED_BEFORE);
    assert_int_equal(guarded_find(page).kind, GUARDED_INSIDE);
    assert_int_equal(guarded_find(block).kind, GUARDED_BLOCK);
    assert_int_equal(guarded_find(page + page_bytes() - 1).kind, GUARDED_INSIDE);
    assert_int_equal(guarded_find(page + page_bytes()).kind, GUARDED_BEHIND);
    assert_int_equal(guarded_find(page + 2 * page_bytes() - 1).kind, GUARDED_BEHIND);
    assert_int_equal(guarded_find(page + 2 * page_bytes()).kind, GUARDED_NONE);
    assert_true(guarded_let_pass(block)); /* it is there */
    give(block);
    assert_int_equal(guarded_find(block).kind, GUARDED_GONE);
}

/* ---- sized frees ---- */

static bool sized_frees_look(size_t size) { return offset_of_sized_free[size] == 0; }

static void sized_frees_look_while_it_is_watched(void **state)
{
    char *first, *second;

    (void)state;
    start_pool(16);
    assert_false(sized_frees_look(48));
    first = take_of(1, 48, 16);
    second = take_of(2, 48, 16);
    assert_true(sized_frees_look(48) && !sized_frees_look(64));
    give(first);
    assert_true(sized_frees_look(48));
    give(second);
    assert_false(sized_frees_look(48));
    first = take_of(1, 48, 16);
    second = take_of(2, 200, 16);
    guarded_end_watch();
    assert_false(sized_frees_look(48) || sized_frees_look(200));
    guarded_check();
    give(first);
    assert_false(sized_frees_look(48));
    first = take_of(1, 200, 16);
    assert_true(sized_frees_look(200));
    give(second);
    assert_true(sized_frees_look(200));
    give(first);
    assert_false(sized_frees_look(200));
    guarded_check();
}

static void free_told(void *block, size_t size)
{
    misuse_note_free(block);
    free_sized_overflow(thread_front(), block, size);
}

/* Frees of the right size that look count down, until the class is watched no more. */
static void sized_frees_look_for_a_while(void **state)
{
    char *guarded;

    (void)state;
    start_pool(16);
    for (unsigned round = 0; round < 2; round++) {
        guarded = take_of(1, 48, 16);
        for (unsigned i = 1; i < inside_watched_frees; i++) {
            free_told(prairie_malloc(48), 48);
            assert_true(sized_frees_look(48));
        }
        assert_int_equal(guarded_find(guarded).kind, GUARDED_BLOCK);
        assert_true(guarded_find(guarded).is_watched);
        free_sized_overflow(thread_front(), prairie_malloc(48), 48);
        assert_false(sized_frees_look(48));
        assert_false(guarded_find(guarded).is_watched);
        give(guarded);
    }
    prairie_check_all();
}

static void free_of_another_class(void) { free_told(prairie_malloc(100), 48); }
static void free_of_its_class(void) { free_told(prairie_malloc(48), 33); }

static void sized_frees_that_look_see_another_size(void **state)
{
    (void)state;
    start_pool(16);
    (void)take_of(1, 48, 16);
    expect_abort(free_of_another_class, "prairie: wrong size in sized delete: 0x");
    expect_survival(free_of_its_class);
}

static void sized_frees_that_look_find_it(void **state)
{
    char *guarded;

    (void)state;
    start_pool(16);
    guarded = take_of(1, 48, 16);
    free_sized_overflow(thread_front(), guarded, 48);
    assert_int_equal(guarded_find(guarded).kind, GUARDED_GONE);
    prairie_check_all();
}

static uint64_t held_of(size_t size)
{
    struct guarded_numbers numbers;

    guarded_count(&numbers);
    return numbers.held[class_of_size(size)];
}

/* As it comes out of a magazine, among other blocks. */
static void a_stray_is_taken_back(void **state)
{
    void *blocks[3] = { prairie_malloc(48), NULL, prairie_malloc(48) };
    struct guarded_finding finding;

    (void)state;
    start_pool(16);
    blocks[1] = take_of(1, 48, 16);
    guarded_end_watch();
    assert_int_equal(held_of(48), 1);
    thread_flush();
    misuse_note_free(blocks[0]);
    misuse_note_free(blocks[2]);
    arenas_drain(class_of_size(48), blocks, 3);
    assert_int_equal(held_of(48), 0);
    finding = guarded_find(blocks[1]);
    assert_int_equal(finding.kind, GUARDED_GONE);
    assert_false(finding.is_watched);
    assert_false(
        fake_is_committed((char *)round_down((uintptr_t)blocks[1], page_bytes()), page_bytes()));
    prairie_check_all();
}

/* As the last of them, and where a magazine had a hole. */
static void a_stray_that_comes_alone_is_taken_back(void **state)
{
    void *blocks[3] = { NULL, NULL, NULL };

    (void)state;
    start_pool(16);
    blocks[1] = take_of(1, 48, 16);
    guarded_end_watch();
    assert_int_equal(held_of(48), 1);
    thread_flush();
    arenas_drain(class_of_size(48), blocks, 2);
    assert_int_equal(held_of(48), 0);
    prairie_check_all();
}

/* Of the largest pool, wherever its cell is; more cells there are not. */
static void every_stray_is_taken_back(void **state)
{
    void *blocks[1 + STRAYS_MAX] = { NULL };
    unsigned held = 0;

    (void)state;
    start_pool(STRAYS_MAX + 1);
    assert_int_equal(strays.bytes, (2 * STRAYS_MAX + 1) * page_bytes());
    while ((blocks[1 + held] = take_of(held, 48, 16)) != NULL) held++;
    assert_int_equal(held, STRAYS_MAX / 4 * 3);
    for (unsigned i = 0; i < STRAYS_MAX / 4; i++) give(blocks[1 + i]);
    for (unsigned i = 0; i < STRAYS_MAX / 4; i++)
        assert_non_null(blocks[1 + i] = take_of(i, 48, 16));
    guarded_end_watch();
    assert_int_equal(held_of(48), held);
    arenas_drain(class_of_size(48), blocks + 1, held);
    assert_int_equal(held_of(48), 0);
    for (unsigned i = 0; i < held; i++)
        assert_int_equal(guarded_find(blocks[1 + i]).kind, GUARDED_GONE);
    prairie_check_all();
}

static char *stray;

static void drain_stray_twice(void)
{
    void *blocks[2] = { stray, stray };

    arenas_drain(class_of_size(48), blocks, 2);
}

static void drain_stray_of_another_class(void)
{
    void *block = stray;

    arenas_drain(class_of_size(64), &block, 1);
}

static void drain_within_stray(void)
{
    void *block = stray + 16;

    arenas_drain(class_of_size(48), &block, 1);
}

static void what_is_no_stray_is_misuse(void **state)
{
    (void)state;
    start_pool(16);
    stray = take_of(1, 48, 16);
    expect_abort(drain_stray_twice, "prairie: double free or wrong size in sized delete: 0x");
    expect_abort(drain_stray_of_another_class,
                 "prairie: double free or wrong size in sized delete: 0x");
    expect_abort(drain_within_stray, "prairie: double free or wrong size in sized delete: 0x");
}

/* ---- behind the doors ---- */

static void guard_from_now(void)
{
    fake_watch_faults();
    option_values[OPTION_GUARD_SAMPLE] = 1;
    option_values[OPTION_GUARD_INTERVAL] = 0;
    guarded_obey_options();
}

static void recover_from_now(void)
{
    option_values[OPTION_GUARD_RECOVER] = 1;
    guard_from_now();
}

/* Others stay with the program, so that magazines run empty. */
static char *guarded_block(size_t size)
{
    for (unsigned i = 0; i < 10000; i++) {
        char *block = prairie_malloc(size);

        if (stray_pool_has(block)) return block;
    }
    fail_msg("no guarded block of %zu bytes", size);
    return NULL;
}

static void short_programs_pay_nothing(void **state)
{
    uint64_t reserved;

    (void)state;
    fake_watch_faults();
    prairie_free(prairie_malloc(1));
    reserved = fake_calls(FAKE_RESERVE);
    for (unsigned i = 0; i < 500; i++) assert_non_null(prairie_malloc(100));
    assert_int_equal(fake_calls(FAKE_RESERVE), reserved);
    assert_false(fake_faults_are_watched());
}

static void one_comes_in_the_end(void **state)
{
    (void)state;
    fake_watch_faults();
    for (unsigned i = 0; i < 1000000; i++)
        if (stray_pool_has(prairie_malloc(1000))) return;
    fail();
}

static void none_comes_before_its_time(void **state)
{
    unsigned before = 0, after = 0;

    (void)state;
    option_values[OPTION_GUARD_INTERVAL] = 100;
    fake_watch_faults();
    option_values[OPTION_GUARD_SAMPLE] = 1;
    guarded_obey_options();
    for (unsigned i = 0; i < 10000; i++) before += stray_pool_has(prairie_malloc(1000));
    fake_clock_ms(99);
    for (unsigned i = 0; i < 10000; i++) before += stray_pool_has(prairie_malloc(1000));
    fake_clock_ms(1);
    for (unsigned i = 0; i < 10000; i++) after += stray_pool_has(prairie_malloc(1000));
    assert_int_equal(before, 1);
    assert_int_equal(after, 1);
}

/* By the thread's refills: each malloc is one here, but for those that are guarded. */
static unsigned refills_to_next(void)
{
    uint64_t before = thread_front()->cache->refills;

    for (;;) {
        char *block = prairie_malloc(100);
        bool is_guarded = stray_pool_has(block);

        prairie_free(block);
        thread_flush();
        if (is_guarded) return (unsigned)(thread_front()->cache->refills - before);
        assert_true(thread_front()->cache->refills - before < 1000);
    }
}

static void one_comes_after_each_refill(void **state)
{
    (void)state;
    guard_from_now();
    assert_true(stray_pool_has(prairie_malloc(100))); /* the very first */
    (void)refills_to_next();
    for (unsigned i = 0; i < 100; i++) assert_int_equal(refills_to_next(), 1);
}

/* The gaps are of all lengths up to nearly twice the mean; the first is one more of the mean. */
static void the_gaps_have_their_mean(void **state)
{
    enum { MEAN = 8, GAPS = 2000 };
    unsigned seen[2 * MEAN] = { 0 }, sum = 0, first;

    (void)state;
    fake_watch_faults();
    option_values[OPTION_GUARD_SAMPLE] = MEAN;
    option_values[OPTION_GUARD_INTERVAL] = 0;
    guarded_obey_options();
    prairie_free(prairie_malloc(1));
    first = (unsigned)thread_front()->cache->refills;
    thread_flush();
    first += refills_to_next();
    assert_in_range(first, MEAN + 1, 2 * MEAN);
    for (unsigned i = 0; i < GAPS; i++) {
        unsigned gap = refills_to_next();

        assert_in_range(gap, 1, 2 * MEAN - 1);
        seen[gap]++;
        sum += gap;
    }
    for (unsigned gap = 1; gap < 2 * MEAN; gap++) assert_true(seen[gap] > 0);
    assert_in_range(sum, (MEAN - 1) * GAPS, (MEAN + 1) * GAPS);
}

static void zero_is_off(void **state)
{
    (void)state;
    option_values[OPTION_GUARD_SAMPLE] = 0;
    option_values[OPTION_GUARD_INTERVAL] = 0;
    fake_watch_faults();
    guarded_obey_options();
    for (unsigned i = 0; i < 100000; i++) assert_false(stray_pool_has(prairie_malloc(100)));
    assert_false(fake_faults_are_watched());
}

static void none_without_a_watch(void **state)
{
    (void)state;
    option_values[OPTION_GUARD_SAMPLE] = 1;
    option_values[OPTION_GUARD_INTERVAL] = 0;
    guarded_obey_options();
    for (unsigned i = 0; i < 10000; i++) assert_false(stray_pool_has(prairie_malloc(100)));
}

static void none_where_addresses_are_scarce(void **state)
{
    (void)state;
    fake_address_space(256 * MiB, 0);
    guard_from_now();
    for (unsigned i = 0; i < 10000; i++) assert_false(stray_pool_has(prairie_malloc(100)));
    assert_int_equal(class_map.mask, 0);
    assert_false(fake_faults_are_watched());
    assert_false(guarded_start(8));
}

static void none_without_memory(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    guard_from_now();
    fake_fail_kind(FAKE_RESERVE, true);
    for (unsigned i = 0; i < 100; i++) assert_false(stray_pool_has(prairie_malloc(100)));
    fake_fail_kind(FAKE_RESERVE, false);
    prairie_check_all();
}

static void none_under_a_hard_limit(void **state)
{
    char *block;

    (void)state;
    guard_from_now();
    block = guarded_block(100);
    limits_set_hard(commit_used_bytes() + 64 * MiB);
    for (unsigned i = 0; i < 10000; i++) assert_false(stray_pool_has(prairie_malloc(100)));
    prairie_free(block);
    prairie_check_all();
}

static void every_door_keeps_its_contract(void **state)
{
    (void)state;
    guard_from_now();
    for (unsigned i = 0; i < 3000; i++) {
        size_t size = 1 + random_below(5000), bytes;
        int flags = random_below(2) == 0 ? 0 : MALLOCX_LG_ALIGN(random_below(9));
        unsigned char value = (unsigned char)i;
        char *block = flags != 0 ? prairie_mallocx(size, flags) : prairie_calloc(1, size);
        bool is_guarded = stray_pool_has(block);

        bytes = prairie_usable_size(block);
        __builtin_memset(block, value, bytes);
        switch (random_below(5)) {
        case 0: prairie_sdallocx(block, size, flags); continue;
        case 1:
            block = prairie_realloc(block, 1 + random_below(5000));
            if (prairie_usable_size(block) < bytes) bytes = prairie_usable_size(block);
            assert_true(all_bytes_are(block, value, bytes));
            break;
        case 2:
            block = prairie_rallocx(block, 1 + random_below(5000), 0);
            if (prairie_usable_size(block) < bytes) bytes = prairie_usable_size(block);
            assert_true(all_bytes_are(block, value, bytes));
            break;
        case 3:
            if (is_guarded) assert_int_equal(prairie_xallocx(block, bytes + 1, 0, 0), bytes);
            break;
        default: break;
        }
        if (random_below(3) != 0) prairie_free(block); /* others stay */
        if (i % 100 == 0) prairie_check_all();
    }
}

static void sizes_are_those_of_nallocx(void **state)
{
    (void)state;
    guard_from_now();
    for (size_t size = 1; size <= 4096; size += 97) {
        char *block = guarded_block(size);

        assert_int_equal(prairie_usable_size(block), prairie_nallocx(size, 0));
        prairie_sdallocx(block, size, 0);
        assert_int_equal(guarded_find(block).kind, GUARDED_GONE);
    }
}

static void it_is_counted(void **state)
{
    struct prairie_stats before = { .struct_bytes = sizeof before }, after = before;
    char *block;

    (void)state;
    prairie_free(prairie_malloc(1));
    guard_from_now();
    prairie_stats_read(&before);
    block = prairie_malloc(1000);
    assert_true(stray_pool_has(block)); /* the first one is */
    prairie_stats_read(&after);
    assert_int_equal(after.allocated - before.allocated, prairie_nallocx(1000, 0));
    assert_true(after.active >= after.allocated && after.mapped >= after.active);
    prairie_free(block);
    prairie_stats_read(&after);
    assert_int_equal(after.allocated, before.allocated);
}

/* ---- reports ---- */

static void expect_words(const char *words)
{
    if (strstr(fake_error_text(), words) == NULL)
        fail_msg("'%s' is not in\n%s", words, fake_error_text());
}

static char *guarded_right(size_t size)
{
    char *block;

    while (is_aligned((uintptr_t)(block = guarded_block(size)), page_bytes())) prairie_free(block);
    return block;
}

static char *guarded_left(size_t size)
{
    char *block;

    while (!is_aligned((uintptr_t)(block = guarded_block(size)), page_bytes())) prairie_free(block);
    return block;
}

static void an_overflow_is_named(void **state)
{
    char *block;

    (void)state;
    guard_from_now();
    block = guarded_right(1000);
    assert_false(fake_fault(block + 1024));
    expect_words("prairie: overflow of a block: 0x");
    expect_words("a read 24 bytes beyond the end of a block of 1000 bytes at 0x");
    expect_words("prairie:   taken by thread 7:\n");
    assert_null(strstr(fake_error_text(), "freed"));
}

static void an_underflow_is_named(void **state)
{
    char *block;

    (void)state;
    guard_from_now();
    block = guarded_left(1000);
    assert_false(fake_fault(block - 1));
    expect_words("prairie: underflow of a block: 0x");
    expect_words("1 byte before the start of a block of 1000 bytes at 0x");
}

static void a_use_after_free_is_named(void **state)
{
    char *block;

    (void)state;
    guard_from_now();
    block = guarded_block(1000);
    prairie_free(block);
    assert_false(fake_fault(block + 999));
    expect_words("prairie: use after free: 0x");
    expect_words("999 bytes into a freed block of 1000 bytes at 0x");
    expect_words("prairie:   freed by thread 7:\n");
}

/* No code lies where the callers are: their traces are empty. */
static void hide_callers(void)
{
    static const struct os_code code = { .start = 0x40000, .limit = 0x41000, .path = "code" };

    fake_code(&code, 1);
}

static void expect_report(const char *head, const char *where, const char *rest,
                          const char *address, const char *block)
{
    char text[1000];

    snprintf(text, sizeof text,
             "prairie: %s: 0x%llx\nprairie:   %s of 1000 bytes at 0x%llx\n"
             "prairie:   done by thread 7:\n%s",
             head, (unsigned long long)(uintptr_t)address, where,
             (unsigned long long)(uintptr_t)block, rest);
    assert_string_equal(fake_error_text(), text);
}

static void reports_are_whole(void **state)
{
    char *block;
    void *drained;

    (void)state;
    recover_from_now();
    hide_callers();
    block = guarded_right(1000);
    (void)fake_fault(block + 1024);
    expect_report("overflow of a block", "a read 24 bytes beyond the end of a block",
                  "prairie:   taken by thread 7:\n", block + 1024, block);
    prairie_free(block);
    fake_error_clear();
    block = guarded_right(1000);
    prairie_free(block);
    prairie_free(block);
    expect_report("double free", "the address is at the start of a freed block",
                  "prairie:   taken by thread 7:\nprairie:   freed by thread 7:\n", block, block);
    fake_error_clear();
    block = guarded_right(1000);
    guarded_end_watch();
    (void)fake_fault(block + 1024);
    expect_report("overflow of a block", "a read 24 bytes beyond the end of a block",
                  "prairie:   if it is freed with its size: it may have been taken again since:\n"
                  "prairie:   taken by thread 7:\n",
                  block + 1024, block);
    fake_error_clear();
    block = guarded_right(1000);
    guarded_end_watch();
    drained = block;
    thread_flush();
    arenas_drain(class_of_size(1000), &drained, 1);
    (void)held_of(1000);
    (void)fake_fault(block + 1000);
    expect_report("use after free", "a read at the end of a freed block",
                  "prairie:   if it is freed with its size: it may have been taken again since:\n"
                  "prairie:   taken by thread 7:\n"
                  "prairie:   freed with its size, which nobody saw\n",
                  block + 1000, block);
}

static void a_new_size_is_reported(void **state)
{
    char *block;

    (void)state;
    guard_from_now();
    block = guarded_right(1000);
    assert_ptr_equal(prairie_realloc(block, 1010), block);
    (void)fake_fault(block + 1024);
    expect_words("14 bytes beyond the end of a block of 1010 bytes at 0x");
}

/* The one that moves away was never that long. */
static void the_size_of_what_moved_is_not_reported(void **state)
{
    char *block;

    (void)state;
    guard_from_now();
    block = guarded_right(1000);
    assert_ptr_not_equal(prairie_realloc(block, 3000), block);
    (void)fake_fault(block);
    expect_words("a read at the start of a freed block of 1000 bytes at 0x");
}

/* Where pages are long enough for it. */
static void the_largest_new_size_is_reported(void **state)
{
    char *block, *end;

    (void)state;
    fake_page_bytes(64 * KiB);
    guard_from_now();
    block = guarded_right(SMALL_BYTES_MAX - 500);
    end = (char *)round_up((uintptr_t)block, page_bytes());
    assert_ptr_equal(prairie_realloc(block, SMALL_BYTES_MAX), block);
    (void)fake_fault(end);
    expect_words(" a block of 14336 bytes at 0x");
}

/* It is looked up as it is: the byte before it, as of a return address, may be no code. */
static void the_instruction_of_an_access_is_named(void **state)
{
    enum { CODE = 0x40000 };
    static const struct os_code code = { .start = CODE, .limit = CODE + 0x1000, .path = "code" };
    char *block;

    (void)state;
    guard_from_now();
    fake_code(&code, 1);
    block = guarded_right(1000);
    (void)fake_fault_from(CODE, NULL, block + 1024);
    expect_words("prairie:   done by thread 7:\nprairie:     0x40000 code+0x0\n");
}

/* They are where they return to, which may be behind all code, and end where there is none. */
static void the_callers_of_an_access_are_named(void **state)
{
    enum { CODE = 0x40000, END = CODE + 0x1000 };
    static const struct os_code code = { .start = CODE, .limit = END, .path = "code" };
    static uintptr_t stack[8] = { 0, CODE + 0x10, 0, END, 0, END + 0x1000, 0, CODE + 0x20 };
    char *block;

    (void)state;
    for (unsigned i = 0; i < 6; i += 2) stack[i] = (uintptr_t)&stack[i + 2];
    fake_stack(stack, sizeof stack);
    guard_from_now();
    fake_code(&code, 1);
    block = guarded_right(1000);
    (void)fake_fault_from(CODE, stack, block + 1024);
    expect_words("prairie:   done by thread 7:\nprairie:     0x40000 code+0x0\n"
                 "prairie:     0x40010 code+0x10\nprairie:     0x41000 code+0x1000\n"
                 "prairie:   taken by thread 7:\n");
    assert_null(strstr(fake_error_text(), "0x40020"));
}

static unsigned lines_with(const char *words)
{
    unsigned count = 0;

    for (const char *at = fake_error_text(); (at = strstr(at, words)) != NULL; at++) count++;
    return count;
}

/* As many as there is room for, with the instruction. */
static void callers_beyond_the_depth_are_left_out(void **state)
{
    enum { CODE = 0x40000, FRAMES = GUARDED_DEPTH + 10 };
    static const struct os_code code = { .start = CODE, .limit = CODE + 0x1000, .path = "code" };
    static uintptr_t stack[2 * FRAMES];
    char *block;

    (void)state;
    for (unsigned i = 0; i < FRAMES; i++) {
        stack[2 * i] = (uintptr_t)&stack[2 * i + 2];
        stack[2 * i + 1] = CODE + 0x10;
    }
    fake_stack(stack, sizeof stack);
    guard_from_now();
    fake_code(&code, 1);
    block = guarded_right(1000);
    (void)fake_fault_from(CODE, stack, block + 1024);
    assert_int_equal(lines_with(" code+0x0\n"), 1);
    assert_int_equal(lines_with(" code+0x10\n"), GUARDED_DEPTH - 1);
    fake_error_clear();
    block = guarded_right(1000);
    (void)fake_fault_from(0, stack, block + 1024);
    assert_int_equal(lines_with(" code+0x10\n"), GUARDED_DEPTH);
}

/* The outermost frame may be the last that can be read. */
static void one_caller_is_named(void **state)
{
    enum { CODE = 0x40000, END = CODE + 0x1000 };
    static const struct os_code code = { .start = CODE, .limit = END, .path = "code" };
    static uintptr_t stack[2] = { 0, CODE + 0x10 };
    char *block;

    (void)state;
    fake_stack(stack, sizeof stack);
    guard_from_now();
    fake_code(&code, 1);
    block = guarded_right(1000);
    (void)fake_fault_from(0, stack, block + 1024);
    expect_words("prairie:   done by thread 7:\nprairie:     0x40010 code+0x10\n"
                 "prairie:   taken by thread 7:\n");
    fake_error_clear();
    block = guarded_right(1000);
    (void)fake_fault_from(CODE, (char *)stack + 1, block + 1024); /* no frame */
    expect_words("prairie:   done by thread 7:\nprairie:     0x40000 code+0x0\n"
                 "prairie:   taken by thread 7:\n");
}

/* Another thread has opened the page meanwhile: the access is made again, but no block is run. */
static void an_access_to_a_held_block_is_made_again(void **state)
{
    char *block;

    (void)state;
    guard_from_now();
    block = guarded_block(1000);
    assert_false(fake_fault(block) || fake_fault(block + 999));
    option_values[OPTION_GUARD_RECOVER] = 1;
    assert_true(fake_fault(block) && fake_fault(block + 999));
    assert_false(fake_fault_from((uintptr_t)block, NULL, block));
    assert_string_equal(fake_error_text(), "");
}

static uint64_t sleeps_left;

static void leave_pool(void)
{
    if (sleeps_left > 0 && --sleeps_left == 0) lock_give(&guarded_lock);
}

/* A signal may have interrupted who holds the lock: it is waited for, and not for ever. */
static void a_fault_waits_for_the_pool(void **state)
{
    uint64_t before;
    char *block;

    (void)state;
    guard_from_now();
    block = guarded_right(1000);
    lock_take(&guarded_lock);
    before = os_now_ms();
    sleeps_left = 3;
    fake_on_sleep(leave_pool);
    assert_int_equal(guarded_find_anywhere(block).kind, GUARDED_BLOCK);
    assert_int_equal(fake_calls(FAKE_SLEEP), 3);
    assert_int_equal(os_now_ms() - before, 3);
    assert_int_equal(guarded_find(block).kind, GUARDED_BLOCK); /* it is free again */
    lock_take(&guarded_lock);
    before = os_now_ms();
    assert_int_equal(guarded_find_anywhere(block).kind, GUARDED_BLOCK);
    assert_int_equal(os_now_ms() - before, inside_lock_waits_max);
    lock_give(&guarded_lock);
}

static void end_report(void)
{
    if (sleeps_left > 0 && --sleeps_left == 0) *inside_report_turn() = 0;
}

/* And for a report that another thread writes, which may have ended meanwhile. */
static void reports_take_turns(void **state)
{
    uint64_t before;

    (void)state;
    guard_from_now();
    *inside_report_turn() = 1;
    before = os_now_ms();
    sleeps_left = 3;
    fake_on_sleep(end_report);
    (void)fake_fault(guarded_right(1000) + 1024);
    expect_words("prairie: overflow of a block: 0x");
    assert_int_equal(os_now_ms() - before, 3 * inside_turn_wait_ms);
    assert_int_equal(*inside_report_turn(), 0);
    fake_error_clear();
    *inside_report_turn() = 1;
    before = os_now_ms();
    (void)fake_fault(guarded_right(1000) + 1024);
    expect_words("prairie: overflow of a block: 0x");
    assert_int_equal(os_now_ms() - before, inside_turn_waits_max * inside_turn_wait_ms);
    assert_int_equal(*inside_report_turn(), 0);
}

static void other_faults_are_not_ours(void **state)
{
    (void)state;
    guard_from_now();
    (void)guarded_block(100);
    assert_false(fake_fault(NULL));
    assert_false(fake_fault(state));
    assert_string_equal(fake_error_text(), "");
}

static void one_report_for_each_block(void **state)
{
    char *block;

    (void)state;
    recover_from_now();
    block = guarded_right(1000);
    assert_true(fake_fault(block + 1024));
    assert_non_null(strstr(fake_error_text(), "overflow"));
    fake_error_clear();
    assert_true(fake_fault(block + 2048));
    assert_string_equal(fake_error_text(), "");
    block[1024] = 1; /* the page is there */
    prairie_free(block);
    assert_true(fake_fault(block));
    block[0] = 1;
    assert_string_equal(fake_error_text(), "");
    prairie_check_all();
}

/* Also where the cell had others of which there was a report. */
static void each_new_block_has_its_report(void **state)
{
    (void)state;
    option_values[OPTION_GUARD_CELLS] = 1;
    recover_from_now();
    for (unsigned i = 0; i < 3; i++) {
        char *block = guarded_right(1000);

        fake_error_clear();
        assert_true(fake_fault(block + 1024));
        expect_words("prairie: overflow of a block: 0x");
        prairie_free(block);
    }
}

static void a_cell_is_closed_again_after_a_report(void **state)
{
    char *block, *page;

    (void)state;
    option_values[OPTION_GUARD_CELLS] = 1;
    option_values[OPTION_GUARD_RECOVER] = 1;
    assert_true(heap_start());
    start_pool(2);
    block = take_of(1, 48, 16);
    page = (char *)round_down((uintptr_t)block, page_bytes());
    assert_true(guarded_let_pass(page + page_bytes()) && guarded_let_pass(page - 1));
    give(block);
    assert_true(guarded_let_pass(block));
    __builtin_memset(page, 0xee, page_bytes());
    block = take_of(1, 48, 16); /* the other cell */
    give(block);
    block = take_of(1, 48, 16);
    assert_ptr_equal((char *)round_down((uintptr_t)block, page_bytes()), page);
    assert_true(is_beside_guards(block));
    assert_true(all_bytes_are(page, 0, page_bytes()));
}

/* The page between two cells is both's: who is taken first closes it. */
static void a_guard_between_two_is_closed_once(void **state)
{
    char *blocks[2];

    (void)state;
    start_pool(8);
    for (unsigned i = 0; i < 2; i++) blocks[i] = take_of(i, 48, 16);
    assert_true(
        guarded_let_pass((char *)round_down((uintptr_t)blocks[0], page_bytes()) + page_bytes()));
    for (unsigned i = 0; i < 2; i++) give(blocks[i]);
    for (unsigned i = 2; i < 10; i++) {
        blocks[0] = take_of(i, 48, 16);
        assert_true(is_beside_guards(blocks[0]));
        give(blocks[0]);
    }
    guarded_check();
}

/* A page that could not be opened is as it was: closed, whatever a report had opened. */
static void a_refused_cell_is_closed_once(void **state)
{
    char *block;

    (void)state;
    start_pool(1);
    block = take_of(1, 48, 16);
    give(block);
    assert_true(guarded_let_pass(block));
    fake_fail_kind(FAKE_COMMIT, true);
    for (unsigned i = 0; i < 3; i++) assert_null(take_of(1, 48, 16));
    fake_fail_kind(FAKE_COMMIT, false);
    block = take_of(1, 48, 16);
    assert_true(is_beside_guards(block));
    give(block);
    guarded_check();
}

static void bad_frees_are_reported(void **state)
{
    char *block;

    (void)state;
    recover_from_now();
    block = guarded_block(1000);
    prairie_free(block + 16);
    expect_words("prairie: free of an interior pointer: 0x");
    expect_words("the address is 16 bytes into a block of 1000 bytes at 0x");
    prairie_free(block);
    block = guarded_block(1000);
    fake_error_clear();
    prairie_free(block);
    prairie_free(block);
    expect_words("prairie: double free: 0x");
    expect_words("the address is at the start of a freed block of 1000 bytes at 0x");
    fake_error_clear();
    prairie_free(block);
    assert_string_equal(fake_error_text(), "");
    block = guarded_block(1000);
    prairie_free(block);
    assert_non_null(prairie_realloc(block, 10));
    expect_words("prairie: realloc of a freed pointer: 0x");
    block = guarded_block(1000);
    prairie_free(block);
    assert_int_equal(prairie_usable_size(block), 0);
    expect_words("prairie: malloc_usable_size of a freed pointer: 0x");
    prairie_check_all();
}

static char *never_used;

static void free_never_used(void) { prairie_free(never_used); }
static void realloc_never_used(void) { (void)prairie_realloc(never_used, 10); }

/* Where no block ever was there is nothing to report. */
static void what_was_never_a_block_is_foreign(void **state)
{
    (void)state;
    guard_from_now();
    (void)guarded_block(1000);
    never_used = strays.first + strays.bytes - 2 * page_bytes();
    expect_abort(free_never_used, "prairie: free of a foreign pointer: 0x");
    expect_abort(realloc_never_used, "prairie: realloc of a foreign pointer: 0x");
    assert_false(fake_fault(never_used));
}

static bool some_are_guarded(void)
{
    for (unsigned i = 0; i < 1000; i++)
        if (stray_pool_has(prairie_malloc(100))) return true;
    return false;
}

static void expect_pool_in_child(void)
{
    int status;

    assert_false(some_are_guarded());
    if (fake_fork() == 0) _exit(some_are_guarded() ? 0 : 1);
    assert_true(wait(&status) > 0 && status == 0);
}

/* The child does not have the thread that was at it. */
static void a_child_opens_what_another_thread_was_opening(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    guard_from_now();
    *inside_pool_opener() = 1;
    expect_pool_in_child();
    start_pool(8);
    expect_pool_in_child();
}

static void a_child_has_the_pool(void **state)
{
    char *block;
    int status;

    (void)state;
    guard_from_now();
    block = guarded_block(100);
    if (fake_fork() == 0) {
        prairie_free(block);
        prairie_free(guarded_block(100));
        prairie_check_all();
        _exit(guarded_find(block).kind == GUARDED_GONE ? 0 : 1);
    }
    assert_true(wait(&status) > 0 && status == 0);
    assert_int_equal(guarded_find(block).kind, GUARDED_BLOCK);
    prairie_free(block);
}

/* Blocks go to where nobody saw them come from. */
static void *free_there(void *block)
{
    prairie_free(block);
    return NULL;
}

static void another_thread_may_free_it(void **state)
{
    char *block;
    pthread_t thread;

    (void)state;
    guard_from_now();
    block = guarded_block(100);
    assert_int_equal(pthread_create(&thread, NULL, free_there, block), 0);
    (void)pthread_join(thread, NULL);
    assert_int_equal(guarded_find(block).kind, GUARDED_GONE);
    prairie_check_all();
}

static void *take_and_give(void *unused)
{
    for (unsigned i = 0; i < 3000; i++) {
        char *kept[8];

        for (unsigned k = 0; k < 8; k++) {
            kept[k] = prairie_malloc(16 * (k + 1));
            *kept[k] = 1;
        }
        for (unsigned k = 0; k < 8; k++) prairie_free(kept[k]);
        if (i % 100 == 0) thread_flush();
    }
    return unused;
}

static void threads_share_the_pool(void **state)
{
    pthread_t thread[3];

    (void)state;
    guard_from_now();
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, take_and_give, NULL), 0);
    for (unsigned i = 0; i < 3; i++) (void)pthread_join(thread[i], NULL);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(it_lies_at_either_end_of_a_page), UNIT_TEST(cells_rest_as_long_as_can_be),
          UNIT_TEST(some_cells_always_rest), UNIT_TEST(a_site_cannot_fill_the_pool),
          UNIT_TEST(memory_may_be_refused), UNIT_TEST(sized_frees_look_while_it_is_watched),
          UNIT_TEST(a_stray_is_taken_back), UNIT_TEST(a_stray_that_comes_alone_is_taken_back),
          UNIT_TEST(what_is_no_stray_is_misuse), UNIT_TEST(short_programs_pay_nothing),
          UNIT_TEST(one_comes_in_the_end), UNIT_TEST(none_comes_before_its_time),
          UNIT_TEST(zero_is_off), UNIT_TEST(none_without_a_watch),
          UNIT_TEST(none_where_addresses_are_scarce), UNIT_TEST(none_without_memory),
          UNIT_TEST(none_under_a_hard_limit), UNIT_TEST(every_door_keeps_its_contract),
          UNIT_TEST(sizes_are_those_of_nallocx), UNIT_TEST(it_is_counted),
          UNIT_TEST(an_overflow_is_named), UNIT_TEST(an_underflow_is_named),
          UNIT_TEST(a_use_after_free_is_named), UNIT_TEST(a_new_size_is_reported),
          UNIT_TEST(the_instruction_of_an_access_is_named), UNIT_TEST(other_faults_are_not_ours),
          UNIT_TEST(one_report_for_each_block), UNIT_TEST(a_cell_is_closed_again_after_a_report),
          UNIT_TEST(a_guard_between_two_is_closed_once), UNIT_TEST(a_refused_cell_is_closed_once),
          UNIT_TEST(bad_frees_are_reported), UNIT_TEST(a_child_has_the_pool),
          UNIT_TEST(another_thread_may_free_it), UNIT_TEST(threads_share_the_pool),
          UNIT_TEST(sized_frees_look_for_a_while),
          UNIT_TEST(sized_frees_that_look_see_another_size),
          UNIT_TEST(sized_frees_that_look_find_it), UNIT_TEST(every_stray_is_taken_back),
          UNIT_TEST(one_comes_after_each_refill), UNIT_TEST(the_gaps_have_their_mean),
          UNIT_TEST(the_largest_new_size_is_reported),
          UNIT_TEST(the_callers_of_an_access_are_named), UNIT_TEST(a_fault_waits_for_the_pool),
          UNIT_TEST(reports_take_turns), UNIT_TEST(one_caller_is_named),
          UNIT_TEST(a_site_is_four_callers), UNIT_TEST(around_a_block_are_its_page_and_guards),
          UNIT_TEST(a_guard_is_of_the_nearer_block),
          UNIT_TEST(each_byte_of_a_held_block_is_its_own), UNIT_TEST(each_new_block_has_its_report),

          UNIT_TEST(callers_beyond_the_depth_are_left_out),
          UNIT_TEST(an_access_to_a_held_block_is_made_again),
          UNIT_TEST(the_size_of_what_moved_is_not_reported), UNIT_TEST(reports_are_whole),
          UNIT_TEST(what_was_never_a_block_is_foreign),
          UNIT_TEST(a_child_opens_what_another_thread_was_opening))
