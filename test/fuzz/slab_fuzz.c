/* slab_fuzz.c - blocks out of slabs and back, among them wrong ones, against one flag a block. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "fuzz.h"
#include "page_heap/run_find.h"
#include "unit/pages.h"

const unsigned fuzz_bytes_max = 400;

enum { SLABS = 3, BLOCKS_MAX = 16384, PUT_MAX = 40 };

static struct slab *slabs[SLABS];
static bool is_out[SLABS][BLOCKS_MAX];

static unsigned index_of(const struct slab *slab, const void *block)
{
    size_t offset = (size_t)((const char *)block - slab->base);

    assert_int_equal(offset % class_bytes[slab->class_index], 0);
    return (unsigned)(offset / class_bytes[slab->class_index]);
}

static void fill(unsigned which)
{
    struct slab *slab = slabs[which];
    unsigned wanted = 1 + (unsigned)random_below(150), before = slab->free_count;
    void *slots[160];
    unsigned got = slab_fill(slab, slots + wanted, wanted);

    assert_int_equal(got, wanted < before ? wanted : before);
    for (unsigned i = wanted - got; i < wanted; i++) {
        unsigned index = index_of(slab, slots[i]);
        assert_true(index < slab->block_count && !is_out[which][index]);
        if (i > wanted - got) assert_true((char *)slots[i] < (char *)slots[i - 1]);
        is_out[which][index] = true;
    }
}

/* A few, mostly neighbours; of this slab or another, right or wrong. */
static void put(unsigned which)
{
    struct slab *slab = slabs[which];
    unsigned count = 1 + (unsigned)random_below(PUT_MAX), expected, done = 0;
    enum slab_fault fault, expected_fault = SLAB_FAULT_NONE;
    void *blocks[PUT_MAX];
    unsigned index = (unsigned)random_below(slab->block_count);

    for (unsigned i = 0; i < count; i++, index++) {
        if (random_below(16) == 0) index = (unsigned)random_below(slab->block_count);
        blocks[i] = slab->base + (size_t)index % slab->block_count * class_bytes[slab->class_index];
        if (random_below(64) == 0) blocks[i] = (char *)blocks[i] + 1 + random_below(15);
        if (i > 0 && random_below(64) == 0) blocks[i] = slabs[(which + 1) % SLABS]->base;
    }
    for (expected = 0; expected < count; expected++) {
        size_t offset = (size_t)((char *)blocks[expected] - slab->base);
        if (offset >= slab_shape[slab->class_index].bytes) break;
        if (offset % class_bytes[slab->class_index] != 0
            || offset / class_bytes[slab->class_index] >= slab->block_count) {
            expected_fault = SLAB_FAULT_INTERIOR;
            break;
        }
        if (!is_out[which][index_of(slab, blocks[expected])]) {
            expected_fault = SLAB_FAULT_TWICE;
            break;
        }
        is_out[which][index_of(slab, blocks[expected])] = false;
    }
    /* A put may end before what is wrong, and the next one tells it. */
    do {
        done += slab_put(slab, blocks + done, count - done, &fault);
    } while (fault == SLAB_FAULT_NONE && done < expected + (expected_fault != SLAB_FAULT_NONE));
    assert_int_equal(done, expected);
    assert_int_equal(fault, expected_fault);
}

static void check_slab(unsigned which)
{
    const struct slab *slab = slabs[which];
    unsigned out = 0;

    slab_check(slab);
    for (unsigned i = 0; i < slab->block_count; i++) {
        assert_int_equal(slab_has_free(slab, i), !is_out[which][i]);
        out += is_out[which][i];
    }
    assert_int_equal(slab->free_count, slab->block_count - out);
}

static void open_again(unsigned which)
{
    memset(is_out[which], 0, sizeof is_out[which]);
    slab_reset(slabs[which]);
    close_test_slab(slabs[which]);
    slabs[which] = open_test_slab((unsigned)(1 + random_below(CLASS_COUNT - 1)), 3);
    assert_non_null(slabs[which]);
}

void fuzz_one(void)
{
    static const size_t page_sizes[] = { 4 * KiB, 16 * KiB, 64 * KiB };

    fake_page_bytes(page_sizes[random_below(ARRAY_COUNT(page_sizes))]);
    start_pages();
    slabs_start();
    for (unsigned i = 0; i < SLABS; i++) {
        slabs[i] = open_test_slab((unsigned)(1 + random_below(CLASS_COUNT - 1)), 3);
        assert_non_null(slabs[i]);
    }
    while (!random_is_over()) {
        unsigned which = (unsigned)random_below(SLABS);

        switch (random_below(8)) {
        case 0: open_again(which); break;
        case 1:
        case 2:
        case 3: fill(which); break;
        default: put(which);
        }
        check_slab(which);
    }
}
