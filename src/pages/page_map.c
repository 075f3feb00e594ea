/* page_map.c - the class map's memory.
 *
 * Reserving 32 GiB readable costs the kernel one record and us nothing until a byte is written: reads of
 * untouched parts see the kernel's one page of zeros.
 * SPDX-License-Identifier: MIT
 */
#include "page_map.h"

#include "../base/bits.h"

static const uint8_t not_a_slab[1];

struct class_map class_map = { not_a_slab, 0 };
struct page *page_map;
uint8_t class_map_offset;

static struct os_range map_reserved;   /* constant after start */
static uintptr_t open_first, open_end; /* under the run lock: the written part, as map offsets */

/* The stack lies near the top of what the kernel gives to programs. */
static unsigned address_bits(void)
{
    char near_the_top;
    unsigned bits = highest_bit((uintptr_t)&near_the_top) + 1;

    return bits < 47 ? 47 : bits;
}

void class_map_start(bool narrow)
{
    size_t bytes = (size_t)1 << (address_bits() - CLASS_MAP_SHIFT);

    if (narrow) return;
    map_reserved = os_reserve_readable(bytes);
    if (map_reserved.base == NULL) return;
    os_refuse_huge_pages(map_reserved);
    class_map.bytes = (const uint8_t *)map_reserved.base;
    class_map.mask = bytes - 1;
}

size_t class_map_reserved_bytes(void) { return map_reserved.bytes; }

size_t maps_bytes_for(size_t plain_bytes)
{
    return (plain_bytes >> plain.page_shift) * sizeof(struct page)
         + (class_map.mask != 0 ? plain_bytes >> CLASS_MAP_SHIFT : 0);
}

/* The open part is one stretch when regions lie together; a far region opens its own. */
bool class_map_open(const char *base, size_t bytes)
{
    size_t unit = max_size(META_OPEN_BYTES, os_page_bytes());
    uintptr_t first = round_down((uintptr_t)base >> CLASS_MAP_SHIFT, unit);
    uintptr_t end = round_up(((uintptr_t)base + bytes) >> CLASS_MAP_SHIFT, unit);

    if (class_map.mask == 0 || (first >= open_first && end <= open_end)) return true;
    if (end > map_reserved.bytes) return false;
    if (first >= open_first && first <= open_end) first = open_end;
    if (!os_commit((struct os_range){ map_reserved.base + first, end - first })) return false;
    if (first != open_end) open_first = first;
    open_end = end;
    return true;
}

void class_map_set(const char *base, size_t bytes, uint8_t class_at)
{
    uint8_t *map = (uint8_t *)map_reserved.base;

    if (class_map.mask == 0) return;
    if (class_at != 0) class_at = (uint8_t)(class_at + class_map_offset);
    __builtin_memset(map + ((uintptr_t)base >> CLASS_MAP_SHIFT), class_at,
                     bytes >> CLASS_MAP_SHIFT);
}
