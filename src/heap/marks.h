/* marks.h - what lies behind the bytes of a hardened block, and what it reads as when it is free.
 *
 * The mark of a small block holds its slack (the bytes between it and what was asked for) and which
 * door gave it, mixed with its address and a secret:
 *
 *      bit     63 ......................... 26 | 25 ... 12 | 11 ... 8 | 7 ... 0
 *              of address, secret and the rest | slack     | door     | 0
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_MARKS_H
#define PRAIRIE_HEAP_MARKS_H

#include "hardened.h"

enum { MARK_SECRET_SHIFT = 26, SLACK_SHIFT = 12, DOOR_SHIFT = 8, DOOR_MASK = 7 };
enum { DOOR_TO_MANUAL = 8 }; /* beside the door: it goes back to an arena that the program made */
#define MARK_SECRET_BITS (UINT64_MAX << MARK_SECRET_SHIFT)
#define MARK_SAYS_BITS (~MARK_SECRET_BITS)
#define SLACK_BITS (MARK_SAYS_BITS & UINT64_MAX << SLACK_SHIFT)

_Static_assert(SMALL_BYTES_MAX < 1 << (MARK_SECRET_SHIFT - SLACK_SHIFT), "a mark holds any slack");

/* `says`: slack and door, where they lie. Whoever changes a bit of them would have to know the
 * secret to make the others fit. */
INLINE uint64_t mixed_mark(const void *block, uint64_t says)
{
    return ((uintptr_t)block ^ hardening.secret ^ says) * 0x9e3779b97f4a7c15u;
}
INLINE uint64_t mark_with(const void *block, uint64_t says)
{
    return (mixed_mark(block, says) & MARK_SECRET_BITS) | says;
}
INLINE uint64_t held_mark(const void *block, size_t slack, unsigned door)
{
    return mark_with(block, (uint64_t)slack << SLACK_SHIFT | (uint64_t)door << DOOR_SHIFT);
}
/* That of a block that is held. Bits 7 to 0 are mixed in, not compared. */
INLINE bool is_mark(const void *block, uint64_t mark)
{
    return ((mixed_mark(block, mark & MARK_SAYS_BITS) ^ mark) & MARK_SECRET_BITS) == 0;
}
/* The same, and that door gave it, from no arena that the program made. */
INLINE bool is_mark_of_door(const void *block, uint64_t mark, enum hardened_door door)
{
    return mark == mark_with(block, (mark & SLACK_BITS) | (uint64_t)door << DOOR_SHIFT);
}
INLINE size_t slack_of(uint64_t mark) { return (mark & SLACK_BITS) >> SLACK_SHIFT; }
INLINE enum hardened_door door_of(uint64_t mark)
{
    return (enum hardened_door)(mark >> DOOR_SHIFT & DOOR_MASK);
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

/* Two words, which most processors handle as one. */
typedef uint64_t word_pair __attribute__((vector_size(16), aligned(8), may_alias));
enum { WORDS_AT_ONCE = 8 };

INLINE word_pair pair_at(const uint64_t *word) { return *(const word_pair *)(const void *)word; }

/* The bits in which words differ from `wanted`. Fewer than so many go one by one. */
INLINE uint64_t differing(const uint64_t *word, const uint64_t *end, uint64_t wanted)
{
    uint64_t rest = 0;

    if (unlikely(end - word >= WORDS_AT_ONCE)) {
        word_pair pair = { wanted, wanted }, seen = { 0, 0 };

        for (; end - word >= WORDS_AT_ONCE; word += WORDS_AT_ONCE)
            seen |= ((pair_at(word) ^ pair) | (pair_at(word + 2) ^ pair))
                  | ((pair_at(word + 4) ^ pair) | (pair_at(word + 6) ^ pair));
        rest = seen[0] | seen[1];
    }
    for (; word < end; word++) rest |= *word ^ wanted;
    return rest;
}

INLINE void fill_words(uint64_t *word, const uint64_t *end, uint64_t value)
{
    word_pair pair = { value, value };

    for (; unlikely(end - word >= WORDS_AT_ONCE); word += WORDS_AT_ONCE / 2)
        *(word_pair *)(void *)word = *(word_pair *)(void *)(word + 2) = pair;
    for (; word != end; word++) {
        *word = value;
        __asm__("" : "+r"(word)); /* no call of memset, which costs more than so few words */
    }
}

/* Of whole words, and more than one. What is looked at from the end on may be looked at twice. */
INLINE bool is_zero(const void *bytes, size_t count)
{
    const uint64_t *word = bytes;
    const uint64_t *end = (const uint64_t *)(const void *)((const char *)bytes + count);
    word_pair seen = pair_at(word) | pair_at(end - 2);

    if (count > 2 * sizeof seen) {
        seen |= pair_at(word + 2) | pair_at(end - 4);
        if (count > 4 * sizeof seen) {
            seen |= pair_at(end - 6) | pair_at(end - 8);
            for (word += 4; end - word > WORDS_AT_ONCE; word += WORDS_AT_ONCE)
                seen |=
                    (pair_at(word) | pair_at(word + 2)) | (pair_at(word + 4) | pair_at(word + 6));
        }
    }
    return (seen[0] | seen[1]) == 0;
}

INLINE void wipe_pair(uint64_t *word) { *(word_pair *)(void *)word = (word_pair){ 0, 0 }; }

/* So few words, up to WIPED_IN_PLACE_MAX bytes, that a call of memset would cost more. */
INLINE void wipe_words(void *block, size_t bytes)
{
    uint64_t *word = block, *end = word + bytes / sizeof *word;

    if (unlikely(bytes < sizeof(word_pair))) {
        *word = 0;
        return;
    }
    wipe_pair(word);
    wipe_pair(end - 2);
    if (bytes <= 2 * sizeof(word_pair)) return;
    wipe_pair(word + 2);
    wipe_pair(end - 4);
    if (bytes <= 4 * sizeof(word_pair)) return;
    wipe_pair(word + 4);
    wipe_pair(word + 6);
    wipe_pair(end - 6);
    wipe_pair(end - 8);
}

/* The slack lies between the last byte of a block and the end of its room, which is whole words.
 * Of the word that the block ends in some bytes are the block's own. */
INLINE uint64_t *word_around(const char *at)
{
    return (uint64_t *)((uintptr_t)at & ~(sizeof(uint64_t) - 1));
}
INLINE uint64_t word_at(const char *at)
{
    uint64_t word;

    __builtin_memcpy(&word, at, sizeof word);
    return little_endian(word);
}
INLINE void word_set(char *at, uint64_t word)
{
    word = little_endian(word);
    __builtin_memcpy(at, &word, sizeof word);
}

/* A slack of more than a word: its first word, of any alignment, and the last one, with whole words
 * between them. One of less is within the last word. */
enum { SLACK_IN_WORD_MAX = sizeof(uint64_t), SLACK_IN_TWO_MAX = 2 * sizeof(uint64_t) };
INLINE unsigned own_bits(size_t slack_bytes) { return (0 - 8 * (unsigned)slack_bytes) % 64; }

/* Before the end of its room; bytes before the slack are kept, or read as zero anyway, which is
 * `keeps` false. */
INLINE void write_canaries_and(char *room_end, size_t slack_bytes, bool keeps)
{
    char *last = room_end - sizeof(uint64_t), *first = room_end - slack_bytes;

    if (likely(slack_bytes <= SLACK_IN_WORD_MAX)) {
        unsigned bits = own_bits(slack_bytes);
        uint64_t own = keeps ? word_at(last) & ~(~(uint64_t)0 << bits) : 0;

        word_set(last, own | hardening.slack_begins << bits);
        return;
    }
    word_set(first, hardening.slack_begins);
    word_set(last, hardening.canaries);
    if (slack_bytes > SLACK_IN_TWO_MAX)
        fill_words(word_around(first) + 1, (uint64_t *)(uintptr_t)last, hardening.canaries);
}
INLINE void write_canaries(char *room_end, size_t slack_bytes)
{
    if (slack_bytes != 0) write_canaries_and(room_end, slack_bytes, true);
}

INLINE bool canaries_are_whole(const char *room_end, size_t slack_bytes)
{
    const char *last = room_end - sizeof(uint64_t), *first = room_end - slack_bytes;
    uint64_t seen;

    if (slack_bytes == 0) return true;
    if (likely(slack_bytes <= SLACK_IN_WORD_MAX)) {
        unsigned bits = own_bits(slack_bytes);

        return (word_at(last) >> bits ^ hardening.slack_begins) << bits == 0;
    }
    seen = (word_at(first) ^ hardening.slack_begins) | (word_at(last) ^ hardening.canaries);
    if (slack_bytes > SLACK_IN_TWO_MAX)
        seen |= differing(word_around(first) + 1, (uint64_t *)(uintptr_t)last, hardening.canaries);
    return seen == 0;
}

/* Mark and canaries of a small block. `keeps`: it has contents. */
INLINE void mark_small(char *block, size_t class_size, size_t size, unsigned door, bool keeps)
{
    size_t room = class_size - HARDENED_MARK_BYTES, slack = room - size;

    mark_write(block, class_size, held_mark(block, slack, door));
    if (slack != 0) write_canaries_and(block + room, slack, keeps);
}

#endif
