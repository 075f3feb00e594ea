/* page_map.c - the class map's memory.
 *
 * Reserving 32 GiB readable costs the kernel one record and us nothing until a byte is written:
 * reads of untouched parts see the kernel's one page of zeros.
 * SPDX-License-Identifier: MIT
 */
#include "page_map.h"

#include "../base/bits.h"
#include "../base/check.h"

/* The stack of a program that something else runs inside of itself may lie low. */
enum { ADDRESS_BITS_MIN = sizeof(void *) > 4 ? 47 : 32 };

static const uint8_t not_a_slab[1];

struct class_map class_map SEALED = { not_a_slab, 0 };
struct page *page_map SEALED;
uint8_t class_map_offset SEALED;

static struct os_range map_reserved SEALED; /* constant after start */
static uintptr_t open_first, open_end;      /* under the lock: the written part, as map offsets */

/* After the first region is there. It has a byte for as many addresses as the kernel gives without
 * being asked, and as the first region has. */
void class_map_start(void)
{
    const struct region *first = &space.region[0];
    uintptr_t region_last = (uintptr_t)first->base + first->bytes - (first->bytes != 0);
    unsigned bits = highest_bit(os_highest_address() | region_last) + 1;
    size_t bytes;

    if (bits < ADDRESS_BITS_MIN) bits = ADDRESS_BITS_MIN;
    bytes = (size_t)1 << (bits - CLASS_MAP_SHIFT);
    map_reserved = os_reserve_readable(bytes);
    if (map_reserved.base == NULL) return;
    os_wish_huge_pages(map_reserved, false);
    class_map.bytes = (const uint8_t *)map_reserved.base;
    class_map.mask = bytes - 1;
}

bool class_map_shares(struct os_range one, struct os_range other)
{
    uintptr_t first = class_map_slot(one.base), end = first + (one.bytes >> CLASS_MAP_SHIFT);
    uintptr_t other_first = class_map_slot(other.base);

    if (class_map.mask == 0) return false;
    if (end > map_reserved.bytes) return true;
    return first < other_first + (other.bytes >> CLASS_MAP_SHIFT) && other_first < end;
}

size_t class_map_reserved_bytes(void) { return map_reserved.bytes; }

size_t maps_bytes_for(size_t space_bytes)
{
    return (space_bytes >> space.page_shift) * sizeof(struct page)
         + (class_map.mask != 0 ? space_bytes >> CLASS_MAP_SHIFT : 0);
}

/* The open part is one stretch when regions lie together; a far region opens its own. */
bool class_map_open(const char *base, size_t bytes)
{
    size_t unit = max_size(META_OPEN_BYTES, os_page_bytes());
    uintptr_t first = round_down(class_map_slot(base), unit);
    uintptr_t end = round_up(class_map_slot(base) + (bytes >> CLASS_MAP_SHIFT), unit);

    if (class_map.mask == 0 || (first >= open_first && end <= open_end)) return true;
    check(end <= map_reserved.bytes);
    if (first >= open_first && first <= open_end) first = open_end;
    if (!os_commit((struct os_range){ map_reserved.base + first, end - first })) return false;
    if (first != open_end) open_first = first;
    open_end = end;
    return true;
}

bool regions_share_slots(struct os_range range)
{
    uint32_t count = __atomic_load_n(&space.region_count, __ATOMIC_ACQUIRE);

    for (uint32_t i = 0; i < count; i++)
        if (class_map_shares(range,
                             (struct os_range){ space.region[i].base, space.region[i].bytes }))
            return true;
    return false;
}
