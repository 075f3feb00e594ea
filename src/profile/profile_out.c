/* profile_out.c - buffering, checksums and the frame of gzip.
 * SPDX-License-Identifier: MIT
 */
#include "profile_out.h"

#include "../os/os.h"

/* The checksum of gzip (CRC-32), four bits at a time: the table fits a cache line. */
static uint32_t checksum_add(uint32_t sum, const uint8_t *bytes, size_t count)
{
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };

    sum = ~sum;
    for (size_t i = 0; i < count; i++) {
        sum ^= bytes[i];
        sum = (sum >> 4) ^ table[sum & 15];
        sum = (sum >> 4) ^ table[sum & 15];
    }
    return ~sum;
}

static void write_out(struct profile_out *out, const void *bytes, size_t count)
{
    if (!out->broken && !os_file_write(out->file, bytes, count)) out->broken = true;
}

static void store_32(uint8_t *at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (8 * i));
}

/* A stored block: its kind, its length, and the complement of that. */
static void write_block(struct profile_out *out, bool last)
{
    uint32_t length = (uint32_t)out->used;
    uint8_t head[5] = { last };

    store_32(head + 1, length | (~length << 16));
    write_out(out, head, sizeof head);
    out->checksum = checksum_add(out->checksum, out->buffer, out->used);
    out->length += length;
}

static void out_flush(struct profile_out *out, bool last)
{
    if (out->gzip) write_block(out, last);
    write_out(out, out->buffer, out->used);
    out->used = 0;
}

bool out_open(struct profile_out *out, const char *path, bool gzip)
{
    static const uint8_t head[10] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3 };

    out->file = os_file_create(path);
    out->gzip = gzip;
    out->broken = false;
    out->checksum = 0;
    out->length = 0;
    out->used = 0;
    if (out->file < 0) return false;
    if (gzip) write_out(out, head, sizeof head);
    return true;
}

void out_bytes(struct profile_out *out, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;

    while (count > 0) {
        size_t free_bytes = sizeof out->buffer - out->used;
        size_t now = count < free_bytes ? count : free_bytes;

        __builtin_memcpy(out->buffer + out->used, at, now);
        out->used += now;
        at += now;
        count -= now;
        if (out->used == sizeof out->buffer) out_flush(out, false);
    }
}

bool out_close(struct profile_out *out)
{
    uint8_t tail[8];

    if (out->gzip || out->used > 0) out_flush(out, true);
    if (out->gzip) {
        store_32(tail, out->checksum);
        store_32(tail + 4, out->length);
        write_out(out, tail, sizeof tail);
    }
    os_file_close(out->file);
    return !out->broken;
}
