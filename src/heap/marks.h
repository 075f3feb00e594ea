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
enum { DOOR_BITS = 3, DOOR_MASK = 7, PAYLOAD_MASK = 0x1ffff };

_Static_assert(SMALL_BYTES_MAX <= PAYLOAD_MASK >> DOOR_BITS, "a mark holds any slack");

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

INLINE uint64_t payload_of(uint64_t mark) { return (mark >> MARK_PAYLOAD_SHIFT) & PAYLOAD_MASK; }
INLINE size_t slack_of(uint64_t mark) { return payload_of(mark) >> DOOR_BITS; }
INLINE enum hardened_door door_of(uint64_t mark)
{
    return (enum hardened_door)(payload_of(mark) & DOOR_MASK);
}

/* That of a block that is held. */
INLINE bool is_mark(uint64_t key, uint64_t mark)
{
    return mark == mark_with(key, payload_of(mark));
}
INLINE uint64_t held_mark(uint64_t key, size_t slack, enum hardened_door door)
{
    return mark_with(key, slack << DOOR_BITS | door);
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

/* The bits in which words differ from `wanted`. */
INLINE uint64_t differing(const uint64_t *word, const uint64_t *end, uint64_t wanted)
{
    uint64_t rest = 0;

    if (end - word >= WORDS_AT_ONCE) {
        word_pair pair = { wanted, wanted }, seen = { 0, 0 };

        for (; end - word >= WORDS_AT_ONCE; word += WORDS_AT_ONCE)
            seen |= ((pair_at(word) ^ pair) | (pair_at(word + 2) ^ pair))
                  | ((pair_at(word + 4) ^ pair) | (pair_at(word + 6) ^ pair));
        rest = seen[0] | seen[1];
    }
    for (; word != end; word++) rest |= *word ^ wanted;
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

/* Of whole words. */
INLINE bool is_zero(const char *bytes, size_t count)
{
    const uint64_t *word = (const uint64_t *)(uintptr_t)bytes;

    return differing(word, word + count / sizeof *word, 0) == 0;
}

/* So few words that a call of memset would cost more. */
INLINE void wipe_words(void *block, size_t bytes)
{
    uint64_t *word = block, *end = word + bytes / sizeof *word;
    uint64_t *pairs_end = word + bytes / sizeof(word_pair) * 2;

    for (; word != pairs_end; word += 2) {
        *(word_pair *)(void *)word = (word_pair){ 0, 0 };
        __asm__("" : "+r"(word));
    }
    if (word != end) *word = 0;
}

/* The slack lies between the last byte of a block and the end of its room, which is whole words. Of
 * the word that the block ends in some bits are the block's own. */
INLINE uint64_t *slack_word(const char *end)
{
    return (uint64_t *)((uintptr_t)end & ~(sizeof(uint64_t) - 1));
}
INLINE unsigned own_bits(const char *end) { return 8 * ((uintptr_t)end % sizeof(uint64_t)); }

INLINE void write_canaries(char *end, size_t slack_bytes)
{
    uint64_t *word = slack_word(end), own;
    unsigned bits = own_bits(end);

    if (slack_bytes == 0) return;
    own = little_endian(*word) & ~(~(uint64_t)0 << bits);
    *word = little_endian(own | hardening.slack_begins << bits);
    fill_words(word + 1, (uint64_t *)(uintptr_t)(end + slack_bytes), hardening.canaries);
}

INLINE bool canaries_are_whole(const char *end, size_t slack_bytes)
{
    const uint64_t *word = slack_word(end);
    unsigned bits = own_bits(end);
    uint64_t seen;

    if (slack_bytes == 0) return true;
    seen = (little_endian(*word) >> bits ^ hardening.slack_begins) << bits;
    return (seen
            | differing(word + 1, (const uint64_t *)(uintptr_t)(end + slack_bytes),
                        hardening.canaries))
        == 0;
}

#endif
