/* marks.h - what lies behind the bytes of a hardened block, and what it reads as when it is free.
 *
 * The mark of a small block holds its slack (the bytes between it and what was asked for) and which
 * door gave it, mixed with its address and a secret:
 *
 *      bit     63 ......................... 25 | 24 ... 11 | 10 ... 8 | 7 ... 0
 *              of address, secret and the rest | slack     | door     | 0
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_MARKS_H
#define PRAIRIE_HEAP_MARKS_H

#include "hardened.h"

enum { MARK_SECRET_SHIFT = 25, MARK_PAYLOAD_SHIFT = 8 };
enum { DOOR_BITS = 3, DOOR_MASK = 7, PAYLOAD_FREED = 0x1ffff };

_Static_assert(SMALL_BYTES_MAX < PAYLOAD_FREED >> DOOR_BITS, "a mark holds any slack");

/* What the marks of a block have in common. */
INLINE uint64_t mark_key(const void *block)
{
    uint64_t mixed = ((uintptr_t)block ^ hardening.secret) * 0x9e3779b97f4a7c15u;

    return mixed ^ mixed >> 32;
}

/* Whoever changes a bit of it would have to know the secret to make the others fit. */
INLINE uint64_t mark_with(uint64_t key, uint64_t payload)
{
    uint64_t mixed = (key ^ payload) * 0xd6e8feb86659fd93u;

    return mixed >> MARK_SECRET_SHIFT << MARK_SECRET_SHIFT | payload << MARK_PAYLOAD_SHIFT;
}

INLINE uint64_t payload_of(uint64_t mark) { return (mark >> MARK_PAYLOAD_SHIFT) & PAYLOAD_FREED; }
INLINE size_t slack_of(uint64_t mark) { return payload_of(mark) >> DOOR_BITS; }
INLINE enum hardened_door door_of(uint64_t mark)
{
    return (enum hardened_door)(payload_of(mark) & DOOR_MASK);
}

/* That of a block that is held, or was freed. */
INLINE bool is_mark(uint64_t key, uint64_t mark)
{
    return mark == mark_with(key, payload_of(mark));
}
INLINE uint64_t freed_mark(uint64_t key) { return mark_with(key, PAYLOAD_FREED); }
INLINE uint64_t held_mark(uint64_t key, size_t slack, enum hardened_door door)
{
    return mark_with(key, slack << DOOR_BITS | door);
}
INLINE bool is_held_mark(uint64_t key, uint64_t mark)
{
    return payload_of(mark) != PAYLOAD_FREED && is_mark(key, mark);
}

INLINE uint64_t *mark_at(const void *block, size_t class_size)
{
    return (uint64_t *)((uintptr_t)block + class_size - HARDENED_MARK_BYTES);
}
/* Another thread may be about to change that of a neighbour. */
INLINE uint64_t mark_read(const void *block, size_t class_size)
{
    return little_endian(RELAXED_LOAD(*mark_at(block, class_size)));
}
INLINE void mark_write(const void *block, size_t class_size, uint64_t mark)
{
    RELAXED_STORE(*mark_at(block, class_size), little_endian(mark));
}

/* ---- zeros and canaries ---- */

/* Of whole words. */
INLINE bool is_zero(const char *bytes, size_t count)
{
    const uint64_t *word = (const uint64_t *)(uintptr_t)bytes, *end = word + count / sizeof *word;
    uint64_t seen = 0;

    for (; end - word >= 4; word += 4) seen |= word[0] | word[1] | word[2] | word[3];
    for (; word != end; word++) seen |= *word;
    return seen == 0;
}

/* What lies between the last byte of a block and the end of its room, which is whole words: of the
 * word that the block ends in `kept` bytes are the block's own. */
struct slack {
    uint64_t *first, *end;
    uint64_t kept, wanted; /* bits of the first word; what its others are */
};

INLINE struct slack slack_between(char *end, size_t slack_bytes)
{
    unsigned bits = 8 * ((uintptr_t)end % sizeof(uint64_t));
    uint64_t others = little_endian(~(uint64_t)0 << bits);
    uint64_t zero = little_endian((uint64_t)0xff << bits);

    return (struct slack){ .first = (uint64_t *)((uintptr_t)end & ~(sizeof(uint64_t) - 1)),
                           .end = (uint64_t *)((uintptr_t)end + slack_bytes),
                           .kept = ~others,
                           .wanted = hardening.canaries & others & ~zero };
}

INLINE void write_canaries(char *end, size_t slack_bytes)
{
    struct slack slack;

    if (slack_bytes == 0) return;
    slack = slack_between(end, slack_bytes);
    *slack.first = (*slack.first & slack.kept) | slack.wanted;
    for (uint64_t *word = slack.first + 1; word != slack.end; word++) *word = hardening.canaries;
}

INLINE bool canaries_are_whole(const char *end, size_t slack_bytes)
{
    struct slack slack;
    uint64_t seen;

    if (slack_bytes == 0) return true;
    slack = slack_between((char *)(uintptr_t)end, slack_bytes);
    seen = (*slack.first & ~slack.kept) ^ slack.wanted;
    for (const uint64_t *word = slack.first + 1; word != slack.end; word++)
        seen |= *word ^ hardening.canaries;
    return seen == 0;
}

#endif
