/* size_class.c - the tables of the size classes.
 * SPDX-License-Identifier: MIT
 */
#include "size_class.h"

#include "../space/sealed.h"

const uint16_t class_bytes[CLASS_COUNT] = { CLASS_BYTES_LIST };
const uint16_t bytes_of_half_offset[OFFSET_FOR_FREES] = {
    CLASS_BYTES_LIST,
    [OFFSET_FOR_FREES / 2] = CLASS_BYTES_LIST,
};

/* In a list of size classes: the sizes from `least` to `most` have this class. Size 0 has none. */
#define SIZES(least, most, class_index) [(least)...(most)] = offset_of_class(class_index)

const uint8_t offset_of_size[TABLE_BYTES_MAX + 1] = { CLASS_OFFSETS_LIST };
uint8_t offset_of_sized_free[TABLE_BYTES_MAX + 1] SEALED = { CLASS_OFFSETS_LIST };
SEEN_INLINE(uint8_t prairie_frees_v1[TABLE_BYTES_MAX + 1], offset_of_sized_free);
uint32_t sized_frees_left;
static bool sized_frees_are_ours SEALED = true;

/* Sizes of one class are neighbours. */
void sized_free_goes_to(unsigned class_index, uint8_t offset)
{
    size_t first = (size_t)class_bytes[class_index - 1] + 1;

    /* Hardened threads have no front with room: the offsets lead nowhere. */
    if (class_index > CLASS_OF_1024 || sealed_is_closed) return;
    for (size_t size = first; size <= class_bytes[class_index]; size++)
        RELAXED_STORE(offset_of_sized_free[size], sized_frees_are_ours ? offset : 0);
}

void sized_frees_go_nowhere(void)
{
    if (sealed_is_closed) return;
    sized_frees_are_ours = false;
    for (unsigned class_index = 1; class_index <= CLASS_OF_1024; class_index++)
        sized_free_goes_to(class_index, 0);
}

/* Slabs start at a page, so a block is as aligned as its class's size is; and the class of a
 * multiple of an alignment has such a size (test/unit/size_class_test.c). */
unsigned class_of_aligned(size_t size, size_t align)
{
    if (size > SMALL_BYTES_MAX || align > 4096) return 0;
    size = round_up(size, align);
    return size <= SMALL_BYTES_MAX ? class_of_size(size) : 0;
}
