/* profile_pprof.c - samples as pprof's profile.proto.
 *
 * A profile is one message of numbered fields; a field that is a message itself goes out with its
 * length before it, so each is built in a small buffer first. Strings are named by their number in
 * a table.
 * SPDX-License-Identifier: MIT
 */
#include "profile.h"

#include "../cache/sampler.h"
#include "../sample/sample.h"

/* Numbers of fields, from profile.proto. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE,
    PROFILE_MAPPING,
    PROFILE_LOCATION,
    PROFILE_STRING = 6,
    PROFILE_TIME_NS = 9,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD,
    PROFILE_DEFAULT_TYPE = 14
};
enum { TYPE_TYPE = 1, TYPE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER, LABEL_UNIT };
enum {
    MAPPING_ID = 1,
    MAPPING_START,
    MAPPING_LIMIT,
    MAPPING_OFFSET,
    MAPPING_PATH,
    MAPPING_BUILD_ID
};
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS };

static const char *const fixed_strings[] = {
    "",      "alloc_objects", "count", "alloc_space", "bytes", "inuse_objects", "inuse_space",
    "space", "thread",
};
/* Then names of threads, and what mappings have. */
enum { STRING_FIRST_NAME = ARRAY_COUNT(fixed_strings) };

static unsigned string_number(const char *text)
{
    unsigned number = 0;

    while (__builtin_strcmp(fixed_strings[number], text) != 0) number++;
    return number;
}

/* Room for a sample: a number of 5 bytes for each location, and values. */
struct message {
    size_t used;
    uint8_t bytes[UNWIND_DEPTH_MAX * 5 + 256];
};

static void put_varint(struct message *message, uint64_t value)
{
    while (value >= 0x80) {
        message->bytes[message->used++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    message->bytes[message->used++] = (uint8_t)value;
}

static void put_number(struct message *message, unsigned field, uint64_t value)
{
    put_varint(message, field << 3);
    put_varint(message, value);
}

/* A field of bytes: a message, a text, or packed numbers. */
static void put_bytes(struct message *message, unsigned field, const void *bytes, size_t count)
{
    put_varint(message, field << 3 | 2);
    put_varint(message, count);
    __builtin_memcpy(message->bytes + message->used, bytes, count);
    message->used += count;
}

static void out_field(struct profile_out *out, unsigned field, const void *bytes, size_t count)
{
    struct message head = { .used = 0 };

    put_varint(&head, field << 3 | 2);
    put_varint(&head, count);
    out_bytes(out, head.bytes, head.used);
    out_bytes(out, bytes, count);
}

static void out_message(struct profile_out *out, unsigned field, const struct message *message)
{
    out_field(out, field, message->bytes, message->used);
}

static void out_field_number(struct profile_out *out, unsigned field, uint64_t value)
{
    struct message message = { .used = 0 };

    put_number(&message, field, value);
    out_bytes(out, message.bytes, message.used);
}

/* ---- locations: each address once, in order; its place is its number ---- */

struct locations {
    uintptr_t *address;
    size_t count;
};

static struct locations locations_of(const struct profile_snapshot *snapshot)
{
    uintptr_t *address = snapshot->sorted;
    size_t count = 0;

    for (size_t i = 0; i < snapshot->site_count; i++)
        for (uint32_t at = 0; at < snapshot->site[i].depth; at++)
            address[count++] = snapshot->site[i].return_address[at];
    return (struct locations){ address, profile_snapshot_sort(address, count) };
}

static uint64_t location_number(const struct locations *locations, uintptr_t address)
{
    size_t low = 0, high = locations->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (locations->address[middle] < address) low = middle + 1;
        else high = middle;
    }
    return low + 1;
}

static void write_locations(const struct profile_snapshot *snapshot,
                            const struct locations *locations)
{
    for (size_t i = 0; i < locations->count; i++) {
        uintptr_t address = locations->address[i] - 1; /* within the call, not behind it */
        size_t mapping = profile_snapshot_mapping_of(snapshot, address);
        struct message message = { .used = 0 };

        put_number(&message, LOCATION_ID, i + 1);
        if (mapping < snapshot->mapping_count) put_number(&message, LOCATION_MAPPING, mapping + 1);
        put_number(&message, LOCATION_ADDRESS, address);
        out_message(snapshot->out, PROFILE_LOCATION, &message);
    }
}

/* ---- the other tables ---- */

static void put_type(struct profile_out *out, unsigned field, const char *type, const char *unit)
{
    struct message message = { .used = 0 };

    put_number(&message, TYPE_TYPE, string_number(type));
    put_number(&message, TYPE_UNIT, string_number(unit));
    out_message(out, field, &message);
}

static unsigned name_count(const struct profile_snapshot *snapshot)
{
    unsigned count = 0;

    for (size_t i = 0; i < snapshot->site_count; i++)
        if (snapshot->site[i].name > count) count = snapshot->site[i].name;
    return count;
}

static void write_strings(const struct profile_snapshot *snapshot, unsigned names)
{
    for (unsigned i = 0; i < STRING_FIRST_NAME; i++)
        out_field(snapshot->out, PROFILE_STRING, fixed_strings[i],
                  __builtin_strlen(fixed_strings[i]));
    for (unsigned i = 1; i <= names; i++) {
        const char *name = sample_name_text(i);

        out_field(snapshot->out, PROFILE_STRING, name, __builtin_strlen(name));
    }
    for (size_t i = 0; i < snapshot->mapping_count; i++) {
        const struct os_code *mapping = &snapshot->mapping[i];
        char hex[2 * OS_BUILD_ID_MAX];

        for (size_t at = 0; at < mapping->build_id_bytes; at++) {
            hex[2 * at] = "0123456789abcdef"[mapping->build_id[at] >> 4];
            hex[2 * at + 1] = "0123456789abcdef"[mapping->build_id[at] & 15];
        }
        out_field(snapshot->out, PROFILE_STRING, mapping->path, __builtin_strlen(mapping->path));
        out_field(snapshot->out, PROFILE_STRING, hex, (size_t)2 * mapping->build_id_bytes);
    }
}

static void write_mappings(const struct profile_snapshot *snapshot, unsigned first_string)
{
    for (size_t i = 0; i < snapshot->mapping_count; i++) {
        const struct os_code *mapping = &snapshot->mapping[i];
        struct message message = { .used = 0 };

        put_number(&message, MAPPING_ID, i + 1);
        put_number(&message, MAPPING_START, mapping->start);
        put_number(&message, MAPPING_LIMIT, mapping->limit);
        put_number(&message, MAPPING_OFFSET, mapping->offset);
        put_number(&message, MAPPING_PATH, first_string + 2 * i);
        put_number(&message, MAPPING_BUILD_ID, first_string + 2 * i + 1);
        out_message(snapshot->out, PROFILE_MAPPING, &message);
    }
}

static uint64_t rounded(double value) { return (uint64_t)(value + 0.5); }

static void write_sample(const struct profile_snapshot *snapshot, const struct locations *locations,
                         const struct profile_snapshot_site *site)
{
    struct message message = { .used = 0 }, part = { .used = 0 };
    double weight = 1 / sampler_probability(site->bytes, snapshot->period);
    double taken = weight * (double)site->taken, live = weight * (double)site->live;

    for (uint32_t at = 0; at < site->depth; at++)
        put_varint(&part, location_number(locations, site->return_address[at]));
    put_bytes(&message, SAMPLE_LOCATION, part.bytes, part.used);
    part.used = 0;
    put_varint(&part, rounded(taken));
    put_varint(&part, rounded(taken * (double)site->bytes));
    put_varint(&part, rounded(live));
    put_varint(&part, rounded(live * (double)site->bytes));
    put_bytes(&message, SAMPLE_VALUE, part.bytes, part.used);
    part.used = 0;
    put_number(&part, LABEL_KEY, string_number("bytes"));
    put_number(&part, LABEL_NUMBER, site->bytes);
    put_number(&part, LABEL_UNIT, string_number("bytes"));
    put_bytes(&message, SAMPLE_LABEL, part.bytes, part.used);
    if (site->name != 0) {
        part.used = 0;
        put_number(&part, LABEL_KEY, string_number("thread"));
        put_number(&part, LABEL_TEXT, STRING_FIRST_NAME + site->name - 1);
        put_bytes(&message, SAMPLE_LABEL, part.bytes, part.used);
    }
    out_message(snapshot->out, PROFILE_SAMPLE, &message);
}

void profile_write_pprof(const struct profile_snapshot *snapshot)
{
    struct profile_out *out = snapshot->out;
    struct locations locations = locations_of(snapshot);
    unsigned names = name_count(snapshot);

    put_type(out, PROFILE_SAMPLE_TYPE, "alloc_objects", "count");
    put_type(out, PROFILE_SAMPLE_TYPE, "alloc_space", "bytes");
    put_type(out, PROFILE_SAMPLE_TYPE, "inuse_objects", "count");
    put_type(out, PROFILE_SAMPLE_TYPE, "inuse_space", "bytes");
    for (size_t i = 0; i < snapshot->site_count; i++)
        write_sample(snapshot, &locations, &snapshot->site[i]);
    write_mappings(snapshot, STRING_FIRST_NAME + names);
    write_locations(snapshot, &locations);
    write_strings(snapshot, names);
    out_field_number(out, PROFILE_TIME_NS, os_wall_ns());
    put_type(out, PROFILE_PERIOD_TYPE, "space", "bytes");
    out_field_number(out, PROFILE_PERIOD, snapshot->period);
    out_field_number(out, PROFILE_DEFAULT_TYPE, string_number("inuse_space"));
}
