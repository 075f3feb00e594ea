/* size_class_fuzz.c - the class of a size and an alignment, and what usable sizes follow. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "fuzz.h"

#include <jemalloc/jemalloc.h>
#include <prairie/prairie.h>

const unsigned fuzz_bytes_max = 64;

static unsigned least_class(size_t size, size_t align)
{
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        if (class_bytes[class_index] >= size && class_bytes[class_index] % align == 0)
            return class_index;
    return 0;
}

static void look_at(size_t size, size_t align)
{
    void *block;

    if (size == 0) return;
    if (size <= SMALL_BYTES_MAX) assert_int_equal(class_of_size(size), least_class(size, 1));
    if (size <= SMALL_BYTES_MAX && align <= 4096) {
        unsigned class_index = class_of_aligned(size, align);
        unsigned least = least_class(size, align);

        /* A class whose blocks all lie so has a size that is a multiple of it. */
        assert_true(class_index == 0 || class_bytes[class_index] >= size);
        assert_true(class_index == 0 || class_bytes[class_index] % align == 0);
        assert_int_equal(class_index, least);
    }
    if (size > 64 * MiB || align > 2 * MiB) return;
    block = prairie_memalign(align, size);
    assert_non_null(block);
    assert_true(is_aligned((uintptr_t)block, align));
    assert_true(prairie_usable_size(block) >= size);
    assert_int_equal(prairie_usable_size(block), prairie_nallocx(size, MALLOCX_ALIGN(align)));
    prairie_free_aligned_sized(block, align, size);
}

void fuzz_one(void)
{
    while (!random_is_over())
        look_at(random_below((uint64_t)1 << random_below(40)), (size_t)1 << random_below(24));
}
