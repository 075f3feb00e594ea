/* oracle.c - the territory of live blocks and the stamps in them.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "oracle.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    ADDRESS_BITS = sizeof(void *) > 4 ? 48 : 32, /* of user space */
    LEAF_BITS = 30,                              /* one leaf of the territory covers 1 GiB */
    GRANULE_BYTES = 8,                           /* no two blocks share 8 aligned bytes */
    BITS_PER_WORD = 64,
    WORD_SPAN = GRANULE_BYTES * BITS_PER_WORD, /* bytes that one word of a leaf covers */
    LEAF_WORDS = (1 << LEAF_BITS) / WORD_SPAN,
};

#define STAMP_STEP 0x9E3779B97F4A7C15ull /* odd: all words of a pattern differ */

typedef _Atomic uint64_t territory_word;

/* leaves[i] is NULL until a block is born in its gigabyte; set once, by compare and exchange. */
static _Atomic(territory_word *) leaves[(size_t)1 << (ADDRESS_BITS - LEAF_BITS)];

static uint64_t stamp_key;
static uint64_t run_seed;

_Thread_local struct whereabouts whereabouts;
void (*oracle_last_words)(const char *text);

_Noreturn void violation(const char *format, ...)
{
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    int used = snprintf(text, sizeof text, "stress: VIOLATION: ");
    used += vsnprintf(text + used, sizeof text - (size_t)used - 120, format, arguments);
    va_end(arguments);
    if ((size_t)used > sizeof text - 120) used = sizeof text - 120;
    used += snprintf(
        text + used, sizeof text - (size_t)used, " (lane %u, step %llu, %s; seed %llu)\n",
        whereabouts.lane, (unsigned long long)whereabouts.step,
        whereabouts.action != NULL ? whereabouts.action : "start", (unsigned long long)run_seed);
    if (write(STDERR_FILENO, text, (size_t)used) < 0) _exit(2);
    if (oracle_last_words != NULL) oracle_last_words(text);
    _exit(1);
}

/* The limit is on what the allocator takes, and not on the tables of the test. */
static void *memory_beyond_limit(size_t bytes)
{
    struct rlimit limit, lifted;
    if (getrlimit(RLIMIT_AS, &limit) != 0) return MAP_FAILED;
    lifted = (struct rlimit){ limit.rlim_max, limit.rlim_max };
    if (setrlimit(RLIMIT_AS, &lifted) != 0) return MAP_FAILED;
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    setrlimit(RLIMIT_AS, &limit);
    return base;
}

void *oracle_memory(size_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) base = memory_beyond_limit(bytes);
    if (base == MAP_FAILED) {
        dprintf(STDERR_FILENO, "stress: no memory for the tables of the test itself\n");
        _exit(2);
    }
    return base;
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93ull;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93ull;
    return x ^ x >> 32;
}

void oracle_start(uint64_t seed)
{
    run_seed = seed;
    stamp_key = mix(seed + STAMP_STEP);
}

static territory_word *leaf_of(uintptr_t address)
{
    if ((uint64_t)address >> ADDRESS_BITS != 0)
        violation("address %p is not one of user space", (void *)address);
    _Atomic(territory_word *) *place = &leaves[address >> LEAF_BITS];
    territory_word *leaf = atomic_load_explicit(place, memory_order_acquire);
    if (leaf != NULL) return leaf;

    territory_word *fresh = oracle_memory(LEAF_WORDS * sizeof *fresh);
    if (atomic_compare_exchange_strong(place, &leaf, fresh)) return fresh;
    munmap(fresh, LEAF_WORDS * sizeof *fresh);
    return leaf;
}

/* Turns all bits of a block on or off; returns the first address whose bit was not as expected, or
 * 0 when all were. Bits of other blocks in shared words are left alone. */
static uintptr_t turn_territory(const struct block *block, bool on)
{
    uintptr_t first = (uintptr_t)block->base / GRANULE_BYTES;
    uintptr_t end =
        ((uintptr_t)block->base + block->usable_bytes + GRANULE_BYTES - 1) / GRANULE_BYTES;
    uintptr_t wrong = 0;

    for (uintptr_t at = first; at < end;) {
        unsigned shift = at % BITS_PER_WORD;
        uintptr_t count = end - at < BITS_PER_WORD - shift ? end - at : BITS_PER_WORD - shift;
        uint64_t mask = (count == BITS_PER_WORD ? ~0ull : (1ull << count) - 1) << shift;
        uintptr_t address = at * GRANULE_BYTES;
        territory_word *word = leaf_of(address) + (address >> 9) % LEAF_WORDS;
        uint64_t before = on ? atomic_fetch_or(word, mask) : atomic_fetch_and(word, ~mask);
        uint64_t unexpected = (on ? before : ~before) & mask;
        if (unexpected != 0 && wrong == 0)
            wrong = (at - shift + (unsigned)__builtin_ctzll(unexpected)) * GRANULE_BYTES;
        at += count;
    }
    return wrong;
}
_Static_assert(WORD_SPAN == 1 << 9, "turn_territory divides addresses by shifting");

/* The alignment every block must have: 16 bytes from 16 bytes up, 8 below, or what was asked for.
 */
static size_t needed_align(const struct block *block)
{
    size_t natural = block->requested_bytes >= 16 ? 16 : 8;
    return block->align_bytes > natural ? block->align_bytes : natural;
}

void oracle_claim(const struct block *block)
{
    if ((uintptr_t)block->base % needed_align(block) != 0)
        violation("block %p of %zu bytes is not aligned to %zu", (void *)block->base,
                  block->requested_bytes, needed_align(block));
    if (block->usable_bytes < block->requested_bytes)
        violation("block %p of %zu bytes has only %zu usable ones", (void *)block->base,
                  block->requested_bytes, block->usable_bytes);
    uintptr_t taken = turn_territory(block, true);
    if (taken != 0)
        violation("block %p of %zu bytes (%zu usable) overlaps a live block at %p",
                  (void *)block->base, block->requested_bytes, block->usable_bytes, (void *)taken);
}

void oracle_release(const struct block *block)
{
    uintptr_t missing = turn_territory(block, false);
    if (missing != 0)
        violation("block %p of %zu bytes lost its territory at %p: the test itself is broken",
                  (void *)block->base, block->requested_bytes, (void *)missing);
}

void oracle_stamp(struct block *block, uint64_t owner)
{
    block->stamp =
        mix(stamp_key ^ (uintptr_t)block->base ^ mix(block->requested_bytes) ^ owner << 48);
    uint64_t word = block->stamp;
    size_t whole = block->stamped_bytes / sizeof word;
    for (size_t i = 0; i < whole; i++, word += STAMP_STEP)
        memcpy(block->base + i * sizeof word, &word, sizeof word);
    memcpy(block->base + whole * sizeof word, &word, block->stamped_bytes % sizeof word);
}

/* The first byte that differs, for the message. */
static _Noreturn void report_damage(const struct block *block, size_t bytes, const char *what)
{
    size_t at = 0;
    uint64_t word = block->stamp;
    for (;; at++) {
        if (at == bytes)
            violation("block %p: damage that went away while looking", (void *)block->base);
        if (at != 0 && at % sizeof word == 0) word += STAMP_STEP;
        if (block->base[at] != ((const unsigned char *)&word)[at % sizeof word]) break;
    }
    size_t wrong = 0;
    word = block->stamp;
    for (size_t i = 0; i < bytes; i++) {
        if (i != 0 && i % sizeof word == 0) word += STAMP_STEP;
        wrong += block->base[i] != ((const unsigned char *)&word)[i % sizeof word];
    }
    violation(
        "%s: block %p of %zu bytes (%zu usable) lost its contents: %zu of %zu bytes, first at "
        "offset %zu, which holds 0x%02x",
        what, (void *)block->base, block->requested_bytes, block->usable_bytes, wrong, bytes, at,
        block->base[at]);
}

void oracle_verify(const struct block *block, size_t bytes, const char *what)
{
    uint64_t word = block->stamp, damage = 0, found;
    size_t whole = bytes / sizeof word;
    for (size_t i = 0; i < whole; i++, word += STAMP_STEP) {
        memcpy(&found, block->base + i * sizeof word, sizeof found);
        damage |= found ^ word;
    }
    if (damage != 0 || memcmp(block->base + whole * sizeof word, &word, bytes % sizeof word) != 0)
        report_damage(block, bytes, what);
}

void oracle_verify_zero(const struct block *block)
{
    uint64_t found, any = 0;
    size_t whole = block->requested_bytes / sizeof found;
    for (size_t i = 0; i < whole; i++) {
        memcpy(&found, block->base + i * sizeof found, sizeof found);
        any |= found;
    }
    for (size_t i = whole * sizeof found; i < block->requested_bytes; i++) any |= block->base[i];
    if (any == 0) return;
    size_t at = 0;
    while (block->base[at] == 0) at++;
    violation("block %p of %zu bytes from calloc is not zero: offset %zu holds 0x%02x",
              (void *)block->base, block->requested_bytes, at, block->base[at]);
}
