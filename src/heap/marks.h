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
#define MARK_SAYS_BITS (~MARK_SECRET_BITS & UINT64_MAX << DOOR_SHIFT)
#define MARK_UNUSUAL_BITS ((uint64_t)(DOOR_MASK | DOOR_TO_MANUAL) << DOOR_SHIFT)

_Static_assert(SMALL_BYTES_MAX < 1 << (MARK_SECRET_SHIFT - SLACK_SHIFT), "a mark holds any slack");

/* `says`: slack and door, where they lie. Whoever changes a bit of them would have to know the
 * secret to make the others fit. */
INLINE uint64_t mark_with(const void *block, uint64_t says)
{
    uint64_t mixed = ((uintptr_t)block ^ hardening.secret ^ says) * 0x9e3779b97f4a7c15u;

    return (mixed & MARK_SECRET_BITS) | says;
}
INLINE uint64_t held_mark(const void *block, size_t slack, unsigned door)
{
    return mark_with(block, (uint64_t)slack << SLACK_SHIFT | (uint64_t)door << DOOR_SHIFT);
}
/* That of a block that is held. */
INLINE bool is_mark(const void *block, uint64_t mark)
{
    return mark == mark_with(block, mark & MARK_SAYS_BITS);
}
INLINE size_t slack_of(uint64_t mark) { return (mark & MARK_SAYS_BITS) >> SLACK_SHIFT; }
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
    const uint64_t *word = bytes, *end = word + count / sizeof *word;
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

/* The slack lies between the last byte of a block and the end of its room, which is whole words. Of
 * the word that the block ends in some bits are the block's own. */
INLINE uint64_t *slack_word(const char *end)
{
    return (uint64_t *)((uintptr_t)end & ~(sizeof(uint64_t) - 1));
}
INLINE unsigned own_bits(const char *end) { return 8 * ((uintptr_t)end % sizeof(uint64_t)); }

/* Behind bytes of which those in the same word are kept; or read as zero anyway, which is
 * `keeps` false. */
INLINE void write_canaries_and(char *end, size_t slack_bytes, bool keeps)
{
    uint64_t *word = slack_word(end);
    unsigned bits = own_bits(end);
    uint64_t own = keeps ? little_endian(*word) & ~(~(uint64_t)0 << bits) : 0;

    *word = little_endian(own | hardening.slack_begins << bits);
    fill_words(word + 1, (uint64_t *)(uintptr_t)(end + slack_bytes), hardening.canaries);
}
INLINE void write_canaries(char *end, size_t slack_bytes)
{
    if (slack_bytes != 0) write_canaries_and(end, slack_bytes, true);
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
