/* sizes.c - random numbers, sizes and alignments.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "sizes.h"

#include <unistd.h>

enum { KB = 1024, MB = 1024 * 1024 };

uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state += 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}

uint32_t random_below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)(((random_next(state) >> 32) * bound) >> 32);
}

/* The doublings of 1 that lie between the limits, and inside one of them uniform. */
size_t random_log_bytes(uint64_t *state, size_t least, size_t most)
{
    unsigned low = 63 - (unsigned)__builtin_clzll(least);
    unsigned high = 63 - (unsigned)__builtin_clzll(most);
    size_t base = (size_t)1 << (low + random_below(state, high - low + 1));
    size_t bytes = base + random_below(state, (uint32_t)base);
    return bytes < least ? least : bytes > most ? most : bytes;
}

size_t system_page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* Most requests of programs are small; the rare large ones are most of the bytes. */
static size_t mixed_size(uint64_t *random)
{
    unsigned choice = random_below(random, 2000);
    if (choice < 40) return 0;
    if (choice < 1600) return random_log_bytes(random, 1, KB);
    if (choice < 1910) return random_log_bytes(random, KB, 64 * KB);
    if (choice < 1990) return random_log_bytes(random, 64 * KB, MB);
    return random_log_bytes(random, MB, choice < 1998 ? 4 * MB : 16 * MB);
}

/* At and around the doublings and their quarters, where classes and pages begin. */
static size_t edge_size(uint64_t *random)
{
    size_t base = (size_t)1 << (3 + random_below(random, 17));
    size_t edge = base + base / 4 * random_below(random, 4);
    return edge + random_below(random, 5) - 2;
}

size_t random_size(struct lane *lane)
{
    uint64_t *random = &lane->random;
    switch (lane->phase.sizes) {
    case SIZES_SMALL: return random_log_bytes(random, 1, KB);
    case SIZES_ONE: return lane->phase.one_size_bytes;
    case SIZES_EDGES: return edge_size(random);
    case SIZES_MEDIUM: return random_log_bytes(random, KB, 128 * KB);
    case SIZES_LARGE: return random_log_bytes(random, 8 * KB, 8 * MB);
    case SIZES_MIXED: break;
    }
    return mixed_size(random);
}

size_t random_resize(struct lane *lane, size_t bytes)
{
    uint64_t *random = &lane->random;
    size_t wanted = 0;
    switch (random_below(random, 6)) {
    case 0: wanted = bytes + random_below(random, 32); break;
    case 1: wanted = bytes - bytes / 2; break;
    case 2: wanted = bytes + bytes / 2 + 1; break;
    case 3: wanted = bytes * 2; break;
    case 4: wanted = bytes - random_below(random, (uint32_t)(bytes / 4 + 1)); break;
    default: wanted = random_size(lane); break;
    }
    if (wanted > 32 * MB) wanted = 32 * MB;
    return wanted == 0 ? 1 : wanted;
}

size_t random_align(struct lane *lane)
{
    unsigned doublings = 3 + random_below(&lane->random, 8);
    if (random_below(&lane->random, 16) == 0) doublings = 11 + random_below(&lane->random, 10);
    return (size_t)1 << doublings;
}
