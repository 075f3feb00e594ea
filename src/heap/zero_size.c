/* zero_size.c - blocks of size 0, kept as bits.
 * SPDX-License-Identifier: MIT
 */
#include "zero_size.h"

#include "../base/options.h"
#include "../os/os.h"

enum { STEP_BYTES = 16, STEPS = 1 << 18, BITS = 64 };
/* Steps that are tried before a block with bytes must do: nearly all are given out then; and calls
 * that do without, once there was no address space. */
enum { TRIES_MAX = 64, CALLS_WITHOUT = 64 };

static char *zero_size_first;                         /* atomic; NULL: nothing reserved yet */
static uint32_t zero_size_next;                       /* atomic: counts on beyond STEPS */
static uint32_t calls_without;                        /* atomic: calls that do without, still */
static uint64_t zero_size_taken[STEPS / BITS] SPARSE; /* atomic */

static uint64_t *word_of(uint32_t step) { return &zero_size_taken[step / BITS]; }
static uint64_t bit_of(uint32_t step) { return (uint64_t)1 << (step % BITS); }

/* Two threads may come first; one of them gives its stretch back. NULL: no address space. */
static char *reserve_first(void)
{
    const size_t bytes = (size_t)STEPS * STEP_BYTES;
    struct os_range range = os_reserve(bytes, os_page_bytes());
    char *seen = NULL;

    if (range.base == NULL) {
        RELAXED_STORE(calls_without, CALLS_WITHOUT);
        return NULL;
    }
    if (__atomic_compare_exchange_n(&zero_size_first, &seen, range.base, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
        return range.base;
    os_release(range);
    return seen;
}

static bool claim(uint32_t step)
{
    uint64_t bit = bit_of(step);

    if (RELAXED_LOAD(*word_of(step)) & bit) return false;
    return (__atomic_fetch_or(word_of(step), bit, __ATOMIC_RELAXED) & bit) == 0;
}

void *zero_size_take(size_t align)
{
    char *base = RELAXED_LOAD(zero_size_first);
    uint32_t steps = (uint32_t)max_size(align / STEP_BYTES, 1), step;
    uint32_t left = RELAXED_LOAD(calls_without);

    if (OS_SIZE_TELLS_OWNER || !option_is_set(OPTION_GUARD_ZERO_SIZE)) return NULL;
    if (class_map.mask == 0) return NULL; /* address space is scarce */
    if (align > os_page_bytes()) return NULL;
    if (unlikely(left != 0)) {
        RELAXED_STORE(calls_without, left - 1);
        return NULL;
    }
    if (base == NULL) base = reserve_first();
    if (base == NULL) return NULL;
    step = __atomic_fetch_add(&zero_size_next, steps, __ATOMIC_RELAXED) % STEPS;
    step = (uint32_t)round_down(step, steps);
    for (unsigned tries = 0; tries < TRIES_MAX; tries++, step = (step + steps) % STEPS)
        if (claim(step)) return base + (size_t)step * STEP_BYTES;
    (void)__atomic_fetch_add(&zero_size_next, TRIES_MAX * steps, __ATOMIC_RELAXED);
    return NULL;
}

static uintptr_t offset_of(const void *pointer)
{
    return (uintptr_t)pointer - (uintptr_t)RELAXED_LOAD(zero_size_first);
}

bool zero_size_put(void *block)
{
    uint32_t step = (uint32_t)(offset_of(block) / STEP_BYTES);

    return (__atomic_fetch_and(word_of(step), ~bit_of(step), __ATOMIC_RELAXED) & bit_of(step)) != 0;
}

enum pointer_kind zero_size_kind(const void *pointer)
{
    uintptr_t offset = offset_of(pointer);
    uint32_t step = (uint32_t)(offset / STEP_BYTES);

    if (RELAXED_LOAD(zero_size_first) == NULL || offset >= (uintptr_t)STEPS * STEP_BYTES)
        return POINTER_FOREIGN;
    if (offset % STEP_BYTES != 0) return POINTER_INTERIOR;
    return RELAXED_LOAD(*word_of(step)) & bit_of(step) ? POINTER_ZERO_SIZE : POINTER_FREED;
}
