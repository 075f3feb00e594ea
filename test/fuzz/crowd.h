/* crowd.h - blocks that came through the doors, watched by the oracle of the stress test. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_FUZZ_CROWD_H
#define PRAIRIE_TEST_FUZZ_CROWD_H

#include "fuzz.h"
#include "stress/oracle.h"

#include <prairie/prairie.h>

enum { CROWD = 64, REALLOCATED_MAX = 8 };

static struct block crowd[CROWD];

static inline void crowd_keep(struct block *block, void *base, size_t size, size_t align)
{
    if (base == NULL) return;
    *block = (struct block){ .base = base,
                             .requested_bytes = size,
                             .stamped_bytes = size,
                             .usable_bytes = prairie_usable_size(base),
                             .align_bytes = align };
    assert_true(block->usable_bytes >= size);
    oracle_claim(block);
    oracle_stamp(block, (uint64_t)(block - crowd));
}

static inline void crowd_take(struct block *block, size_t size)
{
    size_t align = 0;
    void *base = NULL;

    switch (random_below(4)) {
    case 0:
        base = prairie_calloc(1, size);
        if (base != NULL) assert_true(all_bytes_are(base, 0, size));
        break;
    case 1:
        align = sizeof(void *) << random_below(11);
        if (prairie_posix_memalign(&base, align, size) != 0) base = NULL;
        if (base != NULL) assert_true(is_aligned((uintptr_t)base, align));
        break;
    default: base = prairie_malloc(size);
    }
    crowd_keep(block, base, size, align);
}

static inline void crowd_give(struct block *block)
{
    void *base = block->base;

    if (base == NULL) return;
    oracle_verify(block, block->stamped_bytes, "when it is given back");
    oracle_release(block);
    block->base = NULL;
    if (random_below(4) != 0) prairie_free(base);
    else if (block->align_bytes == 0) prairie_free_sized(base, block->requested_bytes);
    else prairie_free_aligned_sized(base, block->align_bytes, block->requested_bytes);
}

/* What could not be resized is as it was. */
static inline void crowd_resize(struct block *block, size_t size)
{
    struct block old = *block;
    void *base;

    oracle_verify(block, block->stamped_bytes, "before it is resized");
    oracle_release(block);
    base = prairie_realloc(old.base, size);
    if (base == NULL) {
        oracle_claim(block);
        oracle_verify(block, block->stamped_bytes, "after a refused realloc");
        return;
    }
    old.base = base;
    oracle_verify(&old, min_size(old.stamped_bytes, size), "after it was resized");
    crowd_keep(block, base, size, 0);
}

static inline size_t crowd_size(size_t most)
{
    size_t size;

    switch (random_below(6)) {
    case 0: size = 1 + random_below(128); break;
    case 1: size = 1 + random_below(1024); break;
    case 2: size = 1 + random_below(SMALL_BYTES_MAX + 64); break;
    case 3: size = (1 + random_below(40)) * page_bytes(); break;
    case 4: size = 1 + random_below(256 * KiB); break;
    default: size = 1 + random_below(4 * MiB);
    }
    return min_size(size, most);
}

/* Perhaps some calls of the kernel fail from here on; crowd_succeed ends it. */
static inline void crowd_fail(void)
{
    uint64_t draw = random_below(16);

    if (draw < 4) fake_fail_row(1 + draw, 1 + random_below(6));
}

static inline void crowd_succeed(void) { fake_fail_nth(0); }

static inline void crowd_step(size_t most)
{
    struct block *block = &crowd[random_below(CROWD)];

    crowd_fail();
    if (block->base == NULL) crowd_take(block, crowd_size(most));
    else if (random_below(3) == 0) crowd_resize(block, crowd_size(most));
    else crowd_give(block);
    crowd_succeed();
}

static inline void crowd_give_all(void)
{
    for (unsigned i = 0; i < CROWD; i++) crowd_give(&crowd[i]);
}

#endif
