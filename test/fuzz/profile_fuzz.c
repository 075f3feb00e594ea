/* profile_fuzz.c - heap profiles of any samples: what is written can be read, and says what was
 * noted. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "fuzz.h"
#include "sample/sample.h"

const unsigned fuzz_bytes_max = 400;

enum { RECORDS = 64, FILE_BYTES = 1 << 20, LOCATIONS_MAX = 4096 };

static uint32_t records[RECORDS]; /* 0: none */
static uint64_t taken_count, live_count;
static unsigned char file[FILE_BYTES];

/* ---- samples ---- */

static void note(unsigned slot)
{
    uintptr_t stack[UNWIND_DEPTH_MAX];
    unsigned depth = (unsigned)random_below(UNWIND_DEPTH_MAX + 1);
    struct origin origin = { .return_address = stack, .depth = depth };

    if (random_below(2) == 0) depth = origin.depth = (unsigned)random_below(6);
    for (unsigned i = 0; i < depth; i++) stack[i] = 1 + (uintptr_t)random_below((uint64_t)1 << 47);
    if (random_below(4) == 0) {
        char name[12];
        snprintf(name, sizeof name, "thread %u", (unsigned)random_below(40));
        origin.name = sample_name(name);
    }
    records[slot] = sample_note(&origin, 1 + random_below((uint64_t)1 << random_below(30)));
    taken_count += records[slot] != 0;
    live_count += records[slot] != 0;
}

static void forget(unsigned slot)
{
    sample_forget(records[slot]);
    records[slot] = 0;
    live_count--;
}

static void add_counts(const struct site *site, void *context)
{
    uint64_t *sum = context;

    sum[0] += site->taken;
    sum[1] += site->live;
}

static void check_counts(void)
{
    uint64_t sum[2] = { 0, 0 };

    assert_true(samples_visit(add_counts, sum));
    assert_int_equal(sum[0], taken_count);
    assert_int_equal(sum[1], live_count);
}

/* ---- reading what was written ---- */

struct bytes {
    const unsigned char *at, *end;
};

static uint32_t read_32(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint32_t checksum(const unsigned char *bytes, size_t count)
{
    uint32_t sum = UINT32_MAX;

    for (size_t i = 0; i < count; i++) {
        sum ^= bytes[i];
        for (unsigned bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
    }
    return ~sum;
}

/* Stored blocks, put together in their place. */
static struct bytes contents_of_gzip(size_t written)
{
    unsigned char *from = file + 10, *to = file, *end = file + written;
    bool last = false;
    size_t length;

    assert_true(written > 18 && file[0] == 0x1f && file[1] == 0x8b && file[2] == 8);
    while (!last) {
        uint32_t head = read_32(from + 1);
        assert_true(from[0] <= 1);
        last = from[0];
        length = head & 0xffff;
        assert_int_equal(head >> 16, ~head & 0xffff);
        memmove(to, from + 5, length);
        to += length;
        from += 5 + length;
        assert_true(from + 8 <= end);
    }
    assert_ptr_equal(from + 8, end);
    assert_int_equal(read_32(from), checksum(file, (size_t)(to - file)));
    assert_int_equal(read_32(from + 4), to - file);
    return (struct bytes){ file, to };
}

static uint64_t read_varint(struct bytes *bytes)
{
    uint64_t value = 0;

    for (unsigned shift = 0;; shift += 7) {
        assert_true(bytes->at < bytes->end && shift < 64);
        value |= (uint64_t)(*bytes->at & 0x7f) << shift;
        if ((*bytes->at++ & 0x80) == 0) return value;
    }
}

/* The next field: its number, and its value or its bytes. 0: there is none. */
static unsigned read_field(struct bytes *bytes, uint64_t *value, struct bytes *inside)
{
    uint64_t tag;

    if (bytes->at == bytes->end) return 0;
    tag = read_varint(bytes);
    *inside = (struct bytes){ NULL, NULL };
    *value = read_varint(bytes);
    if ((tag & 7) == 2) {
        assert_true(*value <= (size_t)(bytes->end - bytes->at));
        *inside = (struct bytes){ bytes->at, bytes->at + *value };
        bytes->at = inside->end;
    } else {
        assert_int_equal(tag & 7, 0);
    }
    return (unsigned)(tag >> 3);
}

/* profile.proto, as far as prairie writes it. */
static void check_pprof(struct bytes profile)
{
    uint64_t value, strings = 0, locations = 0, samples = 0, location_max = 0, string_max = 0;
    struct bytes inside;
    unsigned field;

    while ((field = read_field(&profile, &value, &inside)) != 0) {
        struct bytes part;
        unsigned part_field;

        strings += field == 6;
        locations += field == 4;
        samples += field == 2;
        if (field != 2) continue;
        while ((part_field = read_field(&inside, &value, &part)) != 0) {
            unsigned count = 0;
            uint64_t label;
            struct bytes none;

            if (part_field == 3) {
                while (read_field(&part, &label, &none) == 2)
                    if (label > string_max) string_max = label;
                continue;
            }
            for (; part.at != part.end; count++) {
                uint64_t number = read_varint(&part);
                if (part_field == 1 && number > location_max) location_max = number;
            }
            if (part_field == 2) assert_int_equal(count, 4);
        }
    }
    assert_true(location_max <= locations && string_max < strings);
    assert_true((samples > 0) == (taken_count > 0));
}

static void write_profile(void)
{
    bool gzip = random_below(2) == 0, written;
    size_t room = random_below(4) == 0 ? random_below(5000) : FILE_BYTES;
    struct profile_snapshot snapshot;

    fake_file(file, room);
    if (!profile_snapshot_take(&snapshot)) return;
    assert_true(out_open(snapshot.out, "any", gzip));
    if (gzip) profile_write_pprof(&snapshot);
    else profile_write_jeprof(&snapshot, random_below(2) == 0);
    written = out_close(snapshot.out);
    os_release(snapshot.memory);
    assert_true(written || room < FILE_BYTES);
    if (!written) return;
    if (gzip) check_pprof(contents_of_gzip(fake_file_bytes()));
    else assert_memory_equal(file, "heap_v2/", 8);
}

void fuzz_one(void)
{
    assert_true(heap_start());
    sampler_set_period(1 + random_below(1 << 20));
    while (!random_is_over()) {
        unsigned slot = (unsigned)random_below(RECORDS);

        if (random_below(6) == 0) write_profile();
        else if (records[slot] == 0) note(slot);
        else forget(slot);
        check_counts();
    }
    write_profile();
}
