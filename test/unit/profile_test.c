/* profile_test.c - what a profile makes of the addresses that samples have. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

#include <inttypes.h>

/* ---- in order, each once ---- */

enum { ADDRESSES_MAX = 300 };

static void sort_checked(const uintptr_t *given, size_t count)
{
    uintptr_t address[ADDRESSES_MAX], sum = 0;

    memcpy(address, given, count * sizeof *address);
    inside_sort_words(address, count);
    for (size_t i = 0; i < count; i++) sum += given[i] - address[i];
    assert_int_equal(sum, 0);
    for (size_t i = 1; i < count; i++) assert_true(address[i - 1] <= address[i]);
}

static void any_order_of_addresses_is_put_right(void **state)
{
    uintptr_t up[ADDRESSES_MAX], down[ADDRESSES_MAX], any[ADDRESSES_MAX], few[ADDRESSES_MAX];

    (void)state;
    for (size_t i = 0; i < ADDRESSES_MAX; i++) {
        up[i] = i;
        down[i] = ADDRESSES_MAX - i;
        any[i] = (uintptr_t)random_word();
        few[i] = random_below(4);
    }
    for (size_t count = 0; count <= ADDRESSES_MAX; count++) {
        sort_checked(up, count);
        sort_checked(down, count);
        sort_checked(any, count);
        sort_checked(few, count);
    }
}

/* ---- stacks and mappings ---- */

enum { LOW = 0x10000, LOW_END = 0x20000, HIGH = 0x40000, HIGH_END = 0x50000 };

static const struct os_code two_mappings[] = {
    { .start = LOW,
      .limit = LOW_END,
      .offset = 0x1000,
      .path = "/low",
      .build_id = { 0x0f, 0xa5 },
      .build_id_bytes = 2 },
    { .start = HIGH, .limit = HIGH_END, .offset = 0x2000, .path = "/high" },
};

static void note_stack(const uintptr_t *return_address, unsigned depth, size_t bytes)
{
    struct origin origin = { .return_address = return_address, .depth = depth };

    assert_int_not_equal(sample_note(&origin, bytes), 0);
}

/* An address of return is behind its call, which may be the last code of its mapping. */
static void a_stack_goes_as_far_as_its_calls_are_code(void **state)
{
    static const uintptr_t stack[] = { LOW_END, HIGH_END, HIGH + 1, LOW + 5, HIGH, LOW + 5 };
    static const uintptr_t beyond[] = { LOW_END + 1, LOW + 5 };
    struct profile_snapshot snapshot;

    (void)state;
    assert_true(heap_start());
    note_stack(stack, ARRAY_COUNT(stack), 100);
    note_stack(beyond, ARRAY_COUNT(beyond), 200);
    fake_code(two_mappings, ARRAY_COUNT(two_mappings));
    assert_true(profile_snapshot_take(&snapshot));
    assert_int_equal(snapshot.site_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct profile_snapshot_site *site = &snapshot.site[i];
        bool is_first = site->bytes == 100;

        assert_int_equal(site->depth, is_first ? 4 : 0);
        assert_true(site->return_address >= snapshot.address
                    && site->return_address < snapshot.sorted);
        assert_memory_equal(site->return_address, is_first ? stack : beyond,
                            is_first ? sizeof stack : sizeof beyond);
    }
    assert_int_equal(snapshot.site[0].bytes + snapshot.site[1].bytes, 300);
    os_release(snapshot.memory);
}

/* Where no code is known, or not all of it, nothing says what is garbage. */
static void without_all_mappings_stacks_stay_whole(void **state)
{
    static const uintptr_t stack[] = { 5, 6, 7 };
    static struct os_code code[PROFILE_MAPPINGS_MAX + 1];
    struct profile_snapshot snapshot;

    (void)state;
    assert_true(heap_start());
    note_stack(stack, ARRAY_COUNT(stack), 100);
    for (size_t i = 0; i < ARRAY_COUNT(code); i++)
        code[i] =
            (struct os_code){ .start = LOW + 2 * i * 4096, .limit = LOW + (2 * i + 1) * 4096 };
    for (size_t count = 0; count <= ARRAY_COUNT(code); count++) {
        if (count > 1 && count < PROFILE_MAPPINGS_MAX - 1) continue;
        fake_code(code, count);
        assert_true(profile_snapshot_take(&snapshot));
        assert_int_equal(snapshot.site_count, 1);
        assert_int_equal(snapshot.site[0].depth,
                         count == 0 || count >= PROFILE_MAPPINGS_MAX ? ARRAY_COUNT(stack) : 0);
        os_release(snapshot.memory);
    }
}

/* ---- what is written ---- */

enum { FILE_BYTES = 4 * MiB };

static char file[FILE_BYTES + 1];

/* Three sites, of which one has no block that lives, and behind them one that the profile does not
 * have. */
static const uintptr_t first_stack[] = { LOW + 0x30, HIGH + 0x20 }, second_stack[] = { LOW + 0x10 },
                       third_stack[] = { HIGH + 0x20, LOW + 0x10, LOW + 0x20, LOW + 0x30 },
                       stack_behind[] = { HIGH + 0x30 };
enum { SITE_COUNT = 3 };
static struct profile_snapshot_site three_sites[] = {
    { .live = 2, .taken = 5, .bytes = 128, .return_address = first_stack, .depth = 2, .name = 2 },
    { .live = 0, .taken = 7, .bytes = 1000, .return_address = second_stack, .depth = 1 },
    { .live = 3, .taken = 3, .bytes = 200000, .return_address = third_stack, .depth = 4 },
    { .live = 9, .taken = 9, .bytes = 64, .return_address = stack_behind, .depth = 1, .name = 3 },
};

static struct profile_snapshot snapshot_of_three(struct profile_out *out)
{
    static uintptr_t sorted[8];

    assert_true(heap_start());
    sampler_set_period(1000); /* it was changed after the snapshot */
    fake_file(file, FILE_BYTES);
    return (struct profile_snapshot){
        .site = three_sites,
        .site_count = SITE_COUNT,
        .sorted = sorted,
        .mapping = (struct os_code *)(uintptr_t)two_mappings,
        .mapping_count = ARRAY_COUNT(two_mappings),
        .out = out,
        .period = 1000000,
    };
}

static void expect_jeprof(bool with_freed, const char *text)
{
    static struct profile_out out;
    struct profile_snapshot snapshot = snapshot_of_three(&out);

    memset(file, 0, sizeof file);
    assert_true(out_open(&out, "name", false));
    profile_write_jeprof(&snapshot, with_freed);
    assert_true(out_close(&out));
    assert_string_equal(file, text);
}

static void jeprof_reads_what_lives(void **state)
{
    (void)state;
    expect_jeprof(false, "heap_v2/1000000\n"
                         "  t*: 5: 600256 [0: 0]\n"
                         "@ 0x10030 0x40020\n"
                         "  t*: 2: 256 [0: 0]\n"
                         "@ 0x40020 0x10010 0x10020 0x10030\n"
                         "  t*: 3: 600000 [0: 0]\n"
                         "\nMAPPED_LIBRARIES:\n");
}

static void jeprof_reads_what_was_taken(void **state)
{
    (void)state;
    expect_jeprof(true, "heap_v2/1000000\n"
                        "  t*: 5: 600256 [15: 607640]\n"
                        "@ 0x10030 0x40020\n"
                        "  t*: 2: 256 [5: 640]\n"
                        "@ 0x10010\n"
                        "  t*: 0: 0 [7: 7000]\n"
                        "@ 0x40020 0x10010 0x10020 0x10030\n"
                        "  t*: 3: 600000 [3: 600000]\n"
                        "\nMAPPED_LIBRARIES:\n");
}

/* It takes a line without an address for no site, and what follows for the one before. */
static void jeprof_reads_a_site_that_nobody_knows(void **state)
{
    (void)state;
    three_sites[0].depth = 0;
    expect_jeprof(false, "heap_v2/1000000\n"
                         "  t*: 5: 600256 [0: 0]\n"
                         "@ 0x1\n"
                         "  t*: 2: 256 [0: 0]\n"
                         "@ 0x40020 0x10010 0x10020 0x10030\n"
                         "  t*: 3: 600000 [0: 0]\n"
                         "\nMAPPED_LIBRARIES:\n");
    three_sites[0].depth = 2;
}

/* Sites of one stack differ in their sizes or threads, and count as one context; so do those of
 * which nobody knows the stack. */
static void leaks_are_counted_by_stack(void **state)
{
    static const uintptr_t same_stack[] = { LOW + 0x30, HIGH + 0x20 };
    static struct profile_snapshot_site sites[] = {
        { .live = 1, .taken = 1, .bytes = 128, .return_address = first_stack, .depth = 2 },
        { .live = 2, .taken = 2, .bytes = 256, .return_address = same_stack, .depth = 2 },
        { .live = 1, .taken = 1, .bytes = 128, .return_address = first_stack, .depth = 1 },
        { .live = 0, .taken = 1, .bytes = 128, .return_address = second_stack, .depth = 1 },
        { .live = 1, .taken = 1, .bytes = 64, .return_address = third_stack, .depth = 4 },
        { .live = 1, .taken = 1, .bytes = 64, .depth = 0 },
        { .live = 1, .taken = 1, .bytes = 32, .depth = 0 },
    };
    struct profile_snapshot snapshot = snapshot_of_three(NULL);

    (void)state;
    snapshot.period = 1;
    snapshot.site = sites;
    snapshot.site_count = ARRAY_COUNT(sites);
    assert_true(inside_report_leaks(&snapshot));
    assert_string_equal(fake_error_text(), "prairie: Leak approximation summary: ~928 bytes, "
                                           "~7 objects, >= 4 contexts\n");
    snapshot.site = &sites[3];
    snapshot.site_count = 1;
    assert_false(inside_report_leaks(&snapshot));
}

/* At the end of the file are the checksum and the length of what is in it. */
static void a_compressed_profile_has_its_checksum(void **state)
{
    static const unsigned char end[] = { 0x26, 0x39, 0xf4, 0xcb, 9, 0, 0, 0 };
    static struct profile_out out;

    (void)state;
    fake_file(file, FILE_BYTES);
    assert_true(out_open(&out, "name", true));
    out_bytes(&out, "1234", 4);
    out_bytes(&out, "56789", 5);
    assert_true(out_close(&out));
    assert_memory_equal(file + fake_file_bytes() - sizeof end, end, sizeof end);
}

/* A program whose standard input is closed reads what is mapped as file 0. */
static void jeprof_reads_the_mappings_of_file_0_too(void **state)
{
    enum { LENGTH = 2000 };
    static char mappings[LENGTH + 1], text[2 * LENGTH];

    (void)state;
    for (unsigned i = 0; i < LENGTH; i++) mappings[i] = (char)('a' + i % 26);
    for (int number = 0; number < 2; number++) {
        fake_file_to_read(number, mappings);
        snprintf(text, sizeof text, "%s%s",
                 "heap_v2/1000000\n"
                 "  t*: 5: 600256 [0: 0]\n"
                 "@ 0x10030 0x40020\n"
                 "  t*: 2: 256 [0: 0]\n"
                 "@ 0x40020 0x10010 0x10020 0x10030\n"
                 "  t*: 3: 600000 [0: 0]\n"
                 "\nMAPPED_LIBRARIES:\n",
                 mappings);
        expect_jeprof(false, text);
        assert_int_equal(os_file_open("again"), -1); /* it was closed */
    }
}

/* Into a line for each field, with those within in braces. */
static uint64_t varint(const uint8_t **at)
{
    uint64_t value = 0;

    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = *(*at)++;

        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
}

static char decoded[FILE_BYTES];
static size_t decoded_bytes;

static void tell(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    decoded_bytes += (size_t)vsnprintf(decoded + decoded_bytes, sizeof decoded - decoded_bytes,
                                       format, arguments);
    va_end(arguments);
}

enum { SAMPLE = 2, LOCATIONS = 1, VALUES = 2, LABEL = 3, STRING = 6 };

static void decode_fields(const uint8_t *at, const uint8_t *end, unsigned parent);

/* `parent` is the field of the whole profile that it lies in; 0: none. */
static void decode_bytes(const uint8_t *at, const uint8_t *end, unsigned parent, unsigned field)
{
    if (parent == 0 && field == STRING) {
        tell(" \"%.*s\"", (int)(end - at), (const char *)at);
    } else if (parent == SAMPLE && (field == LOCATIONS || field == VALUES)) {
        while (at < end) tell(" %" PRIu64, varint(&at));
    } else {
        tell(" {");
        decode_fields(at, end, parent == 0 ? field : LABEL);
        tell(" }");
    }
}

static void decode_fields(const uint8_t *at, const uint8_t *end, unsigned parent)
{
    while (at < end) {
        uint64_t key = varint(&at), value = varint(&at);

        tell("%s%u:", parent == 0 ? "" : " ", (unsigned)(key >> 3));
        if (key % 8 == 0) {
            tell(" %" PRIu64, value);
        } else {
            assert_int_equal(key % 8, 2);
            assert_true(value <= (size_t)(end - at));
            decode_bytes(at, at + value, parent, (unsigned)(key >> 3));
            at += value;
        }
        if (parent == 0) tell("\n");
    }
    assert_ptr_equal(at, end);
}

static const char pprof_of_three[] =
    "1: { 1: 1 2: 2 }\n"
    "1: { 1: 3 2: 4 }\n"
    "1: { 1: 5 2: 2 }\n"
    "1: { 1: 6 2: 4 }\n"
    "2: { 1: 3 4 2: 39065 5000320 15626 2000128 3: { 1: 4 3: 128 4: 4 } 3: { 1: 8 2: 10 } }\n"
    "2: { 1: 1 2: 7004 7003501 0 0 3: { 1: 4 3: 1000 4: 4 } }\n"
    "2: { 1: 4 1 2 3 2: 17 3309993 17 3309993 3: { 1: 4 3: 200000 4: 4 } }\n"
    "3: { 1: 1 2: 65536 3: 131072 4: 4096 5: 11 6: 12 }\n"
    "3: { 1: 2 2: 262144 3: 327680 4: 8192 5: 13 6: 14 }\n"
    "4: { 1: 1 2: 1 3: 65551 }\n"
    "4: { 1: 2 2: 1 3: 65567 }\n"
    "4: { 1: 3 2: 1 3: 65583 }\n"
    "4: { 1: 4 2: 2 3: 262175 }\n"
    "6: \"\"\n"
    "6: \"alloc_objects\"\n"
    "6: \"count\"\n"
    "6: \"alloc_space\"\n"
    "6: \"bytes\"\n"
    "6: \"inuse_objects\"\n"
    "6: \"inuse_space\"\n"
    "6: \"space\"\n"
    "6: \"thread\"\n"
    "6: \"one\"\n"
    "6: \"two\"\n"
    "6: \"/low\"\n"
    "6: \"0fa5\"\n"
    "6: \"/high\"\n"
    "6: \"\"\n"
    "9: 1000000000\n"
    "11: { 1: 7 2: 4 }\n"
    "12: 1000000\n"
    "14: 6\n";

/* Locations are numbered in the order of their addresses, strings in that of the table. A sample
 * counts for as many blocks as it stands for. */
static void pprof_reads_all_of_it(void **state)
{
    static struct profile_out out;
    struct profile_snapshot snapshot = snapshot_of_three(&out);

    (void)state;
    assert_int_equal(sample_name("one"), 1);
    assert_int_equal(sample_name("two"), 2);
    assert_true(out_open(&out, "name", false));
    profile_write_pprof(&snapshot);
    assert_true(out_close(&out));
    decode_fields((const uint8_t *)file, (const uint8_t *)file + fake_file_bytes(), 0);
    assert_string_equal(decoded, pprof_of_three);
}

/* As deep as they can be, of so many that their numbers are long. */
static void the_deepest_stacks_are_written_whole(void **state)
{
    enum { SITES = 400 };
    static uintptr_t stacks[SITES][UNWIND_DEPTH_MAX], sorted[SITES * UNWIND_DEPTH_MAX];
    static struct profile_snapshot_site sites[SITES];
    static struct profile_out out;
    struct profile_snapshot snapshot = snapshot_of_three(&out);
    const uint8_t *at = (const uint8_t *)file;
    unsigned site = 0, depth;

    (void)state;
    for (unsigned i = 0; i < SITES; i++) {
        for (unsigned j = 0; j < UNWIND_DEPTH_MAX; j++)
            stacks[i][j] = HIGH + (uintptr_t)i * UNWIND_DEPTH_MAX + j;
        sites[i] = (struct profile_snapshot_site){ 1, 1, 8, stacks[i], UNWIND_DEPTH_MAX, 0 };
    }
    snapshot.site = sites;
    snapshot.site_count = SITES;
    snapshot.sorted = sorted;
    assert_true(out_open(&out, "name", false));
    profile_write_pprof(&snapshot);
    assert_true(out_close(&out));
    while (site < SITES) {
        uint64_t key = varint(&at), bytes = varint(&at);
        const uint8_t *end = at + bytes;

        if (key >> 3 == SAMPLE) {
            assert_int_equal(varint(&at) >> 3, LOCATIONS);
            (void)varint(&at);
            for (depth = 0; depth < UNWIND_DEPTH_MAX; depth++)
                assert_int_equal(varint(&at), 1 + site * UNWIND_DEPTH_MAX + depth);
            assert_int_equal(varint(&at) >> 3, VALUES);
            site++;
        }
        at = end;
    }
}

UNIT_MAIN(UNIT_TEST(any_order_of_addresses_is_put_right),
          UNIT_TEST(a_stack_goes_as_far_as_its_calls_are_code),
          UNIT_TEST(without_all_mappings_stacks_stay_whole), UNIT_TEST(jeprof_reads_what_lives),
          UNIT_TEST(leaks_are_counted_by_stack), UNIT_TEST(jeprof_reads_what_was_taken),
          UNIT_TEST(jeprof_reads_a_site_that_nobody_knows),
          UNIT_TEST(jeprof_reads_the_mappings_of_file_0_too),
          UNIT_TEST(a_compressed_profile_has_its_checksum), UNIT_TEST(pprof_reads_all_of_it),
          UNIT_TEST(the_deepest_stacks_are_written_whole))
