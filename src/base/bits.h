/* bits.h - counting and finding bits in words.
 *
 * Owns no state. Every function that searches wants a word with a bit in it.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_BASE_BITS_H
#define PRAIRIE_BASE_BITS_H

#include "attrs.h"

#define WORD_BITS 64u

INLINE unsigned lowest_bit(uint64_t word) { return (unsigned)__builtin_ctzll(word); }
INLINE unsigned highest_bit(uint64_t word) { return 63u ^ (unsigned)__builtin_clzll(word); }
INLINE unsigned bit_count(uint64_t word) { return (unsigned)__builtin_popcountll(word); }

/* Sets bit `index` modulo 64. One instruction where the processor has it, which compilers do not
 * find. */
INLINE bool bit_test_and_set(uint64_t *word, unsigned index)
{
#if defined(__x86_64__)
    bool was;

    __asm__("btsq %2, %0" : "+r"(*word), "=@ccc"(was) : "r"((uint64_t)index));
    return was;
#else
    uint64_t bit = (uint64_t)1 << index % WORD_BITS, before = *word;

    *word = before | bit;
    return (before & bit) != 0;
#endif
}

/* A word that lies in memory as its lowest byte first. */
INLINE uint64_t little_endian(uint64_t word)
{
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word : __builtin_bswap64(word);
}

/* A word with the bits at and above `index` set; none when index is 64 or more. */
INLINE uint64_t bits_from(unsigned index) { return index < 64 ? ~(uint64_t)0 << index : 0; }
/* A word with the `count` lowest bits set. */
INLINE uint64_t bits_below(unsigned count) { return ~bits_from(count); }

/* splitmix64's last step: numbers that follow each other become words that look unrelated, and no
 * two the same. */
INLINE uint64_t bits_mixed(uint64_t word)
{
    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

/* The bits that are set lie side by side, and there is one. */
INLINE bool bits_are_neighbours(uint64_t word)
{
    uint64_t shifted = word >> lowest_bit(word);

    return (shifted & (shifted + 1)) == 0;
}

#endif
