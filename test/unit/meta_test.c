/* meta_test.c - records of metadata: where they lie, that they are zero, reused, refused. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

enum { ZONE_BYTES = 1024 * 1024 };

static void start_zone(void)
{
    struct os_range zone = os_reserve(ZONE_BYTES, 64 * KiB);

    assert_non_null(zone.base);
    meta_start(zone);
}

static void records_are_zero_aligned_and_apart(void **state)
{
    char *end;

    (void)state;
    start_zone();
    end = meta.zone_end;
    for (size_t bytes = 1; bytes <= 3000; bytes += 37) {
        char *record = meta_take(bytes);
        assert_true(is_aligned((uintptr_t)record, META_UNIT_BYTES));
        assert_true(record + bytes <= end); /* below the one before */
        assert_true(all_bytes_are(record, 0, bytes));
        memset(record, 0xee, round_up(bytes, META_UNIT_BYTES));
        end = record;
    }
    assert_true(meta.next == end && meta.open_base <= end && meta.zone_base <= meta.open_base);
}

static void numbers_name_records(void **state)
{
    (void)state;
    start_zone();
    for (unsigned i = 0; i < 1000; i++) {
        void *record = meta_take(1 + i % 300);
        uint32_t number = meta_number(record);
        assert_int_not_equal(number, 0);
        assert_ptr_equal(meta_record(number), record);
    }
}

static void records_of_whole_pages_start_at_pages(void **state)
{
    (void)state;
    start_zone();
    for (unsigned i = 0; i < 5; i++) {
        assert_non_null(meta_take(64));
        assert_true(is_aligned((uintptr_t)meta_take(4096), 4096));
        assert_non_null(meta_take(64));
        assert_true(is_aligned((uintptr_t)meta_take(8192), 4096));
    }
}

static void a_given_record_is_reused_for_its_size_only(void **state)
{
    char *first, *second, *other;

    (void)state;
    start_zone();
    first = meta_take(200);
    second = meta_take(200);
    memset(first, 1, 256);
    memset(second, 2, 256);
    meta_give(first, 200);
    meta_give(second, 200);
    other = meta_take(257);
    assert_true(other != first && other != second);
    other = meta_take(192);
    assert_true(other != first && other != second);
    assert_ptr_equal(meta_take(256), second); /* 256 bytes are four units, like 200 */
    assert_true(all_bytes_are(second, 0, 256));
    assert_ptr_equal(meta_take(193), first);
    assert_true(all_bytes_are(first, 0, 256));
    other = meta_take(200);
    assert_true(other != first && other != second);
}

/* More than one page can name. */
enum { PAGES = 1100, PAGES_ZONE_BYTES = (PAGES + 1) * 4096 };

static char *page_of[PAGES];

static void take_pages(void)
{
    for (unsigned i = 0; i < PAGES; i++) {
        page_of[i] = meta_take(4096);
        assert_true(is_aligned((uintptr_t)page_of[i], 4096));
        assert_true(all_bytes_are(page_of[i], 0, 4096));
    }
}

static void give_pages(void)
{
    for (unsigned i = 0; i < PAGES; i++) {
        memset(page_of[i], 0xee, 4096);
        meta_give(page_of[i], 4096);
    }
}

/* None of them twice, and no other one. */
static void expect_the_same_pages(const char *next)
{
    take_pages();
    assert_ptr_equal(meta.next, next);
    for (unsigned i = 0; i < PAGES; i++) memset(page_of[i], (int)(i % 251), 4096);
    for (unsigned i = 0; i < PAGES; i++)
        assert_true(all_bytes_are(page_of[i], (int)(i % 251), 4096));
}

static void unused_pages_are_purged_and_come_back(enum fake_purge what)
{
    struct os_range zone = os_reserve(PAGES_ZONE_BYTES, 64 * KiB);
    uint64_t purged = fake_purged_bytes();
    char *next, *beside;

    fake_purge_does(what);
    assert_non_null(zone.base);
    meta_start(zone);
    beside = memset(meta_take(64), 7, 64);
    take_pages();
    next = meta.next;
    give_pages();
    meta_purge_pages();
    assert_int_equal(fake_purged_bytes() - purged, (PAGES - 2) * 4096); /* two name the others */
    meta_purge_pages();
    assert_int_equal(fake_purged_bytes() - purged, (PAGES - 2) * 4096);
    expect_the_same_pages(next);
    assert_int_equal(commit.record_bytes, PAGES * 4096 + 64);
    assert_true(all_bytes_are(beside, 7, 64));
    give_pages();
    expect_the_same_pages(next);
}

static void purged_pages_come_back(void **state)
{
    (void)state;
    unused_pages_are_purged_and_come_back(FAKE_PURGE_ZEROES);
}

static void scribbled_pages_come_back_zeroed(void **state)
{
    (void)state;
    unused_pages_are_purged_and_come_back(FAKE_PURGE_SCRIBBLES);
}

static void a_purge_that_is_refused_loses_no_page(void **state)
{
    struct os_range zone = os_reserve(PAGES_ZONE_BYTES, 64 * KiB);
    char *next;

    (void)state;
    assert_non_null(zone.base);
    meta_start(zone);
    take_pages();
    next = meta.next;
    give_pages();
    fake_fail_kind(FAKE_PURGE, true);
    meta_purge_pages();
    fake_fail_kind(FAKE_PURGE, false);
    assert_int_equal(fake_purged_bytes(), 0);
    expect_the_same_pages(next);
}

static void used_bytes_are_counted(void **state)
{
    void *record[64];
    size_t used = 0;

    (void)state;
    start_zone();
    for (unsigned i = 0; i < 64; i++) {
        record[i] = meta_take(i * 100 + 1);
        used += round_up(i * 100 + 1, META_UNIT_BYTES);
        assert_int_equal(commit.record_bytes, used);
    }
    for (unsigned i = 0; i < 64; i++) meta_give(record[i], i * 100 + 1);
    assert_int_equal(commit.record_bytes, 0);
}

/* The zone opens in steps: few calls, and never far ahead of what is used. */
static void the_zone_opens_as_it_is_used(void **state)
{
    (void)state;
    start_zone();
    assert_int_equal(fake_committed_bytes(), 0);
    while (meta_take(META_RECORD_BYTES_MAX) != NULL) {
        size_t used = (size_t)(meta.zone_end - meta.next);
        assert_int_equal(fake_committed_bytes(), meta.zone_end - meta.open_base);
        assert_true(fake_committed_bytes() <= used + META_OPEN_BYTES + used / 4);
    }
    assert_int_equal(fake_committed_bytes(), ZONE_BYTES);
    assert_int_equal(commit.record_bytes, ZONE_BYTES);
    assert_true(fake_calls(FAKE_COMMIT) <= ZONE_BYTES / META_OPEN_BYTES);
}

static void a_full_zone_refuses_and_goes_on(void **state)
{
    void *last = NULL, *record;
    char *next;

    (void)state;
    start_zone();
    while ((record = meta_take(4096)) != NULL) last = record;
    next = meta.next;
    assert_null(meta_take(4096));
    assert_ptr_equal(meta.next, next);
    assert_int_equal(commit.record_bytes, ZONE_BYTES);
    meta_give(last, 4096);
    assert_ptr_equal(meta_take(4096), last);
    assert_null(meta_take(64));
}

static void refused_memory_leaves_the_zone_as_it_was(void **state)
{
    (void)state;
    start_zone();
    for (unsigned i = 0; i < 20; i++) {
        struct meta before = meta;
        fake_fail_kind(FAKE_COMMIT, true);
        before.lock.taken++;
        if (meta_take(META_RECORD_BYTES_MAX) == NULL) {
            assert_memory_equal(&before, &meta, sizeof meta);
            assert_false(lock_is_mine(&meta.lock));
        }
        fake_fail_kind(FAKE_COMMIT, false);
        assert_non_null(meta_take(META_RECORD_BYTES_MAX));
    }
    assert_true(fake_failures() > 0);
}

/* When the usual step is too much, exactly what is missing may still be there. */
static void a_refused_step_is_tried_smaller(void **state)
{
    (void)state;
    start_zone();
    fake_fail_nth(1);
    assert_non_null(meta_take(64));
    assert_int_equal(fake_failures(), 1);
    assert_int_equal(fake_committed_bytes(), 4096);
    fake_commit_bytes_max(4096);
    for (unsigned i = 1; i < 4096 / 64; i++) assert_non_null(meta_take(64));
    assert_null(meta_take(64));
}

/* Opened ahead, records can be had when nothing else can. */
static void what_is_opened_ahead_is_there(void **state)
{
    (void)state;
    start_zone();
    assert_true(meta_open_ahead(100 * KiB));
    assert_true(fake_committed_bytes() >= 100 * KiB);
    assert_int_equal(commit.record_bytes, 0);
    fake_fail_all(true);
    assert_true(meta_open_ahead(100 * KiB));
    assert_true(meta_open_ahead(1));
    assert_false(meta_open_ahead(ZONE_BYTES));
    for (unsigned i = 0; i < 100 * KiB / META_UNIT_BYTES; i++) assert_non_null(meta_take(64));
    fake_fail_all(false);
    assert_true(meta_open_ahead(ZONE_BYTES));
    assert_true(meta_open_ahead(SIZE_MAX / 2)); /* all there is will do */
    assert_int_equal(fake_committed_bytes(), ZONE_BYTES);
}

/* No limit counts what is open: pages that an alignment leaves free may be many. */
static void opening_ahead_takes_nothing(void **state)
{
    (void)state;
    start_zone();
    commit.limit_bytes = 4 * KiB;
    assert_true(meta_open_ahead(100 * KiB));
    assert_true(fake_committed_bytes() >= 100 * KiB);
    assert_int_equal(commit_taken_bytes(), 0);
    for (unsigned i = 0; i < 4 * KiB / META_UNIT_BYTES; i++) assert_non_null(meta_take(64));
    assert_null(meta_take(64));
    commit.limit_bytes = SIZE_MAX;
}

/* Beyond the hard limit there is no record, whether its memory was used before or not. */
static void a_given_record_counts_again(void **state)
{
    void *given;

    (void)state;
    start_zone();
    given = meta_take(256);
    assert_non_null(given);
    meta_give(given, 256);
    assert_non_null(meta_take(1024));
    commit.limit_bytes = commit_taken_bytes() + 255;
    assert_null(meta_take(256));
    assert_true(commit_taken_bytes() <= commit.limit_bytes);
    commit.limit_bytes++;
    assert_ptr_equal(meta_take(256), given);
    commit.limit_bytes = SIZE_MAX;
}

/* ---- rows ---- */

enum { ROW_RECORD = 5 * META_UNIT_BYTES };

static void a_row_serves_many_for_one_lock(void **state)
{
    struct meta_row row = { 0 };
    char *record, *before = NULL;

    (void)state;
    start_zone();
    record = meta_take_from_row(&row, ROW_RECORD);
    for (unsigned i = 0; row.bytes >= ROW_RECORD; i++) {
        uint64_t taken = meta.lock.taken;
        uint32_t left = row.bytes;

        before = record;
        record = meta_take_from_row(&row, ROW_RECORD - i % META_UNIT_BYTES);
        assert_ptr_equal(record, before - ROW_RECORD);
        assert_true(all_bytes_are(record, 0, ROW_RECORD));
        memset(record, 0xee, ROW_RECORD);
        assert_int_equal(row.bytes, left - ROW_RECORD);
        assert_int_equal(meta.lock.taken, taken);
    }
    assert_non_null(before);
}

static void the_rest_of_a_row_serves_others(void **state)
{
    struct meta_row row = { 0 };
    uint32_t rest;
    char *base;

    (void)state;
    start_zone();
    do (void)meta_take_from_row(&row, ROW_RECORD);
    while (row.bytes >= ROW_RECORD);
    rest = row.bytes;
    base = row.base;
    assert_in_range(rest, META_UNIT_BYTES, ROW_RECORD - META_UNIT_BYTES);
    (void)meta_take_from_row(&row, ROW_RECORD);
    assert_true(row.bytes >= ROW_RECORD);
    assert_ptr_equal(meta_take(rest), base);
}

static void what_was_given_goes_before_a_row(void **state)
{
    struct meta_row row = { 0 };
    char *record;

    (void)state;
    start_zone();
    record = meta_take_from_row(&row, ROW_RECORD);
    memset(record, 0xee, ROW_RECORD);
    meta_give(record, ROW_RECORD);
    assert_ptr_equal(meta_take_from_row(&row, ROW_RECORD), record);
    assert_true(all_bytes_are(record, 0, ROW_RECORD));
    assert_ptr_not_equal(meta_take_from_row(&row, ROW_RECORD), record);
}

static void long_records_are_of_no_row(void **state)
{
    struct meta_row row = { 0 };
    char *record;

    (void)state;
    start_zone();
    record = meta_take_from_row(&row, META_RECORD_BYTES_MAX);
    assert_ptr_equal(record, meta.next);
    assert_int_equal(row.bytes, 0);
}

static void a_row_that_a_limit_refuses_is_one_record(void **state)
{
    struct meta_row row = { 0 };
    size_t used;

    (void)state;
    start_zone();
    assert_true(meta_open_ahead(META_OPEN_BYTES));
    used = commit_taken_bytes();
    commit.limit_bytes = used + ROW_RECORD;
    assert_non_null(meta_take_from_row(&row, ROW_RECORD));
    assert_int_equal(row.bytes, 0);
    assert_int_equal(commit_taken_bytes(), used + ROW_RECORD);
    assert_null(meta_take_from_row(&row, ROW_RECORD));
    commit.limit_bytes = SIZE_MAX;
}

/* What was given before as well as what must be opened first; the kernel may still refuse. */
static void some_records_pass_the_limit(void **state)
{
    void *given;

    (void)state;
    start_zone();
    given = meta_take(256);
    assert_non_null(given);
    meta_give(given, 256);
    commit.limit_bytes = commit_taken_bytes();
    assert_null(meta_take(256));
    assert_ptr_equal(meta_take_past_limit(256), given);
    assert_int_equal(commit_taken_bytes(), commit.limit_bytes + 256);
    for (size_t bytes = 0; bytes < 4 * META_OPEN_BYTES; bytes += META_RECORD_BYTES_MAX)
        assert_non_null(meta_take_past_limit(META_RECORD_BYTES_MAX));
    assert_null(meta_take(256));
    fake_fail_kind(FAKE_COMMIT, true);
    while (meta_take_past_limit(META_RECORD_BYTES_MAX) != NULL) {}
    fake_fail_kind(FAKE_COMMIT, false);
    assert_non_null(meta_take_past_limit(META_RECORD_BYTES_MAX));
    commit.limit_bytes = SIZE_MAX;
}

static void larger_pages_open_whole(void **state)
{
    (void)state;
    fake_page_bytes(64 * KiB);
    start_zone();
    while (meta_take(META_RECORD_BYTES_MAX) != NULL) {} /* the fake aborts on parts of pages */
    assert_int_equal(fake_committed_bytes(), ZONE_BYTES);
}

/* ---- random operations against an array ---- */

enum { RECORDS_MAX = 200, OPERATIONS = 20000 };

static struct {
    unsigned char *base;
    size_t bytes;
    unsigned char stamp;
} records[RECORDS_MAX];

static void take_or_give(unsigned index)
{
    if (records[index].base == NULL) {
        size_t bytes = 1 + random_below(random_below(8) == 0 ? META_RECORD_BYTES_MAX : 500);
        unsigned char *record = meta_take(bytes);
        if (record == NULL) return;
        assert_true(all_bytes_are(record, 0, bytes));
        records[index].base = record;
        records[index].bytes = bytes;
        records[index].stamp = (unsigned char)(1 + random_below(255));
        memset(record, records[index].stamp, bytes);
        return;
    }
    assert_true(all_bytes_are(records[index].base, records[index].stamp, records[index].bytes));
    meta_give(records[index].base, records[index].bytes);
    records[index].base = NULL;
}

static void random_records_never_overlap(void **state)
{
    size_t used = 0;

    (void)state;
    start_zone();
    for (unsigned i = 0; i < OPERATIONS; i++) {
        if (random_below(16) == 0) fake_fail_nth(1);
        take_or_give((unsigned)random_below(RECORDS_MAX));
        fake_fail_nth(0);
    }
    for (unsigned i = 0; i < RECORDS_MAX; i++)
        if (records[i].base != NULL) used += round_up(records[i].bytes, META_UNIT_BYTES);
    assert_int_equal(commit.record_bytes, used);
}

/* ---- misuse ---- */

static void take_nothing(void) { start_zone(), (void)meta_take(0); }
static void take_too_much(void) { start_zone(), (void)meta_take(META_RECORD_BYTES_MAX + 1); }

static void absurd_sizes_abort(void **state)
{
    (void)state;
    expect_abort(take_nothing, "prairie: broken invariant: bytes > 0");
    expect_abort(take_too_much, "prairie: broken invariant: bytes > 0");
}

UNIT_MAIN(UNIT_TEST(records_are_zero_aligned_and_apart), UNIT_TEST(numbers_name_records),
          UNIT_TEST(records_of_whole_pages_start_at_pages),
          UNIT_TEST(a_given_record_is_reused_for_its_size_only), UNIT_TEST(purged_pages_come_back),
          UNIT_TEST(scribbled_pages_come_back_zeroed),
          UNIT_TEST(a_purge_that_is_refused_loses_no_page), UNIT_TEST(used_bytes_are_counted),
          UNIT_TEST(the_zone_opens_as_it_is_used), UNIT_TEST(a_full_zone_refuses_and_goes_on),
          UNIT_TEST(refused_memory_leaves_the_zone_as_it_was),
          UNIT_TEST(a_refused_step_is_tried_smaller), UNIT_TEST(what_is_opened_ahead_is_there),
          UNIT_TEST(opening_ahead_takes_nothing), UNIT_TEST(a_given_record_counts_again),
          UNIT_TEST(a_row_serves_many_for_one_lock), UNIT_TEST(the_rest_of_a_row_serves_others),
          UNIT_TEST(what_was_given_goes_before_a_row), UNIT_TEST(long_records_are_of_no_row),
          UNIT_TEST(a_row_that_a_limit_refuses_is_one_record),
          UNIT_TEST(some_records_pass_the_limit), UNIT_TEST(larger_pages_open_whole),
          UNIT_TEST(random_records_never_overlap), UNIT_TEST(absurd_sizes_abort))
