/* space.c - reserves address space once, and opens it step by step.
 *
 * One reservation holds, in this order, the metadata zone, the page map and the first region; each
 * has an open part that grows. Under an address-space limit the sizes follow the limit, and further
 * regions are reserved as they are needed.
 * SPDX-License-Identifier: MIT
 */
#include "space.h"

#include "../base/bits.h"
#include "commit.h"
#include "foreign.h"
#include "meta.h"
#include "page_map.h"

struct space space;

static char *map_open_end;   /* under the lock: the page map is usable below it */
static char *map_end SEALED; /* constant after start */

/* A kernel whose page is larger than 4 KiB still opens whole pages. */
static size_t whole_pages(size_t bytes)
{
    return round_up(bytes, max_size(os_page_bytes(), 64 * KiB));
}

struct layout {
    size_t meta_bytes, map_bytes, region_bytes;
};

/* The zone can take records of a 32nd of what they describe, and a 64th is opened along with it:
 * more than all but the smallest blocks need. The checking flavours know twice as much of each
 * slab. Where address space is short, what can be opened along is all. */
enum { META_SHARE = CHECKED ? 32 : 64, ZONE_SHARE = META_SHARE / BY_WORD(2, 1) };

/* The map has 16 bytes a page. */
static struct layout layout_for(size_t space_bytes, size_t region_bytes)
{
    size_t map_records = min_size((space_bytes >> space.page_shift) + 2 * (size_t)REGION_COUNT_MAX,
                                  UINT32_MAX - (size_t)UINT16_MAX);

    return (struct layout){
        .meta_bytes = whole_pages(min_size(max_size(space_bytes / ZONE_SHARE, 512 * KiB),
                                           META_BYTES_MAX - HUGE_PAGE_BYTES)),
        .map_bytes = round_up(map_records * sizeof(struct page),
                              region_bytes >= HUGE_REGION_BYTES_MIN ? HUGE_PAGE_BYTES : 64 * KiB),
        .region_bytes = whole_pages(region_bytes),
    };
}

static bool reserve_all(struct layout layout)
{
    size_t total = layout.meta_bytes + layout.map_bytes + layout.region_bytes;
    struct os_range all = os_reserve(total, 2 * MiB);
    struct region *region = &space.region[0];

    if (all.base == NULL) return false;
    meta_start((struct os_range){ all.base, layout.meta_bytes });
    page_map = (struct page *)(all.base + layout.meta_bytes);
    map_open_end = all.base + layout.meta_bytes;
    map_end = map_open_end + layout.map_bytes;
    os_wish_huge_pages(all, false);

    space.number_max = (uint32_t)(layout.map_bytes / sizeof(struct page) - 1);
    /* So few that their bytes can be rounded up to a MiB, which addresses of 32 bits may not. */
    space.page_count_max = (uint32_t)min_size(min_size(space.number_max, RUN_PAGES_MAX),
                                              (SIZE_MAX - 1 * MiB) >> space.page_shift);
    space.next_number = 1 + (uint32_t)(layout.region_bytes >> space.page_shift) + 1;
    space.foreign_from = space.number_max;
    space.reserved_bytes = total;
    *region = (struct region){ map_end, 0, 1, 0 };
    __atomic_store_n(&region->bytes, layout.region_bytes, __ATOMIC_RELEASE); /* partner: page_at */
    __atomic_store_n(&space.region_count, 1, __ATOMIC_RELEASE);
    return true;
}

void space_want_huge_records(void)
{
    struct os_range records = { meta.zone_base, (size_t)(map_end - meta.zone_base) };

    os_wish_huge_pages(records, true);
}

/* The region that holds the address, of those after the first; NULL: none does. */
static const struct region *region_beyond_first(const void *address)
{
    uint32_t count = __atomic_load_n(&space.region_count, __ATOMIC_ACQUIRE);

    for (uint32_t i = 1; i < count; i++)
        if ((uintptr_t)address - (uintptr_t)space.region[i].base < space.region[i].bytes)
            return &space.region[i];
    return NULL;
}

uint32_t page_at_beyond_first(const void *address)
{
    const struct region *region = region_beyond_first(address);
    uint32_t page;

    if (region == NULL) return foreign_page_at(address);
    page = (uint32_t)(((uintptr_t)address - (uintptr_t)region->base) >> space.page_shift);
    return page < RELAXED_LOAD(region->open_pages) ? region->first_page + page : 0;
}

char *page_address_beyond_first(uint32_t page)
{
    const struct region *region = &space.region[1];

    if (page >= RELAXED_LOAD(space.foreign_from)) return foreign_page_address(page);
    while (page - region->first_page >= region->bytes >> space.page_shift) region++;
    return region->base + ((size_t)(page - region->first_page) << space.page_shift);
}

/* The highest address that there can be. */
static size_t address_bytes(void)
{
    return SIZE_MAX >> (SIZE_BITS - 1 - highest_bit(os_highest_address()));
}

/* How much of the address space there are numbers for, with a first region of so many bytes: no
 * more than most of what addresses can tell apart. */
static size_t numbered_bytes(size_t region_bytes)
{
    uint64_t wanted = (uint64_t)SPACE_BYTES_PER_REGION * region_bytes;
    size_t most = address_bytes() - address_bytes() / 16;

    return wanted < most ? max_size((size_t)wanted, region_bytes) : max_size(most, region_bytes);
}

/* A limit is narrow when the widest layout would take more than a quarter of it. Then half of it is
 * about what blocks can use, regions have a sixteenth each, and there is no class map. */
static bool start_narrow(size_t limit)
{
    size_t region_bytes = round_up(max_size(limit / 16, 1 * MiB), 1 * MiB);

    space.region_bytes_next = min_size(region_bytes, min_size(REGION_BYTES_FIRST, 1 * GiB));
    return reserve_all(
        layout_for(min_size(limit, numbered_bytes(REGION_BYTES_FIRST)), space.region_bytes_next));
}

bool space_start(void)
{
    size_t limit = os_address_space_limit();
    struct layout widest;

    lock_init(&space.lock, LOCK_SPACE);
    space.page_shift = highest_bit(os_page_bytes());
    space.block_bytes_max = min_size(round_down(PTRDIFF_MAX, os_page_bytes()), address_bytes());
    widest = layout_for(numbered_bytes(REGION_BYTES_FIRST), REGION_BYTES_FIRST);
    if (limit / 4 < widest.meta_bytes + widest.map_bytes + widest.region_bytes)
        return start_narrow(limit);

    for (size_t bytes = REGION_BYTES_FIRST; bytes >= REGION_BYTES_LAST; bytes /= 4) {
        space.region_bytes_next = bytes;
        if (reserve_all(layout_for(numbered_bytes(bytes), bytes))) {
            class_map_start();
            return true;
        }
    }
    return false;
}

/* A limit that was set after start-up cannot be enforced by the kernel inside our reservation, so
 * we keep to it ourselves. Where a page more can be mapped we are within it as the kernel counts.
 */
static bool limit_allows(size_t bytes)
{
    size_t limit, used, unopened;

    if (os_address_space_has_room(page_bytes())) return true;
    limit = os_address_space_limit();
    if (limit == SIZE_MAX) return true;
    used = os_address_space_used();
    unopened = space.reserved_bytes - space.open_bytes + class_map_reserved_bytes();
    if (used < unopened || used <= limit) return true;
    return used - unopened + bytes <= limit;
}

/* Of the page map, what lies below `wanted`. False: no memory. */
static bool open_map(const struct page *wanted)
{
    size_t bytes;

    if ((const char *)wanted <= map_open_end) return true;
    bytes = round_up((size_t)((const char *)wanted - map_open_end),
                     max_size(META_OPEN_BYTES, os_page_bytes()));
    bytes = min_size(bytes, (size_t)(map_end - map_open_end));
    if (!os_commit((struct os_range){ map_open_end, bytes })) return false;
    /* A page whose first access is a read costs one fault more. */
    ((struct page *)map_open_end)->state = PAGE_INSIDE;
    map_open_end += bytes;
    return true;
}

bool space_open_record_0(void) { return open_map(page_map + 1); }

/* The page map, the class map, then the pages themselves: whatever fails leaves the region as it
 * was. Where purging closes pages, each lease commits its own, and no others are charged for. */
static bool open_pages(struct region *region, size_t pages, size_t room_bytes)
{
    char *base = region->base + ((size_t)region->open_pages << space.page_shift);
    size_t bytes = pages << space.page_shift;

    if (bytes > room_bytes || !limit_allows(bytes)) return false;
    if (!open_map(&page_map[region->first_page + region->open_pages + pages + 1])) return false;
    if (!class_map_open(base, bytes) || !meta_open_ahead((space.open_bytes + bytes) / META_SHARE))
        return false;
    return OS_PURGE_CLOSES || os_commit((struct os_range){ base, bytes });
}

/* Pages that it could open. */
static size_t room_of(const struct region *region)
{
    return (region->bytes >> space.page_shift) - region->open_pages;
}

/* A region takes a number for each page and the unused one after them. */
READS_UNLOCKED bool space_has_numbers(size_t bytes)
{
    return space.region_count < REGION_COUNT_MAX
        && (bytes >> space.page_shift) + 1 <= space.foreign_from - space.next_number;
}

/* Address space whose bytes in the class map are nobody else's. */
static struct os_range reserve_region(size_t bytes)
{
    struct os_range range = os_reserve(bytes, 64 * KiB);

    if (range.base == NULL || (!regions_share_slots(range) && !foreign_shares_slots(range)))
        return range;
    os_release(range);
    return (struct os_range){ NULL, 0 };
}

/* There are few regions, and none goes away: the second half of them is for when there is address
 * space again, not for crumbs of it. */
static size_t shortest_region(size_t bytes)
{
    size_t crumb = round_up(space.region[0].bytes / REGION_CRUMB_SHARE, page_bytes());

    return space.region_count < REGION_COUNT_MAX / 2 ? bytes : max_size(bytes, crumb);
}

/* As long as usual, or shorter where there is not so much address space. NULL: there is none. */
static struct region *add_region(size_t pages)
{
    size_t least = shortest_region(pages << space.page_shift);
    size_t bytes = max_size(space.region_bytes_next, round_up(least, 1 * MiB));
    struct region *region = &space.region[space.region_count];
    struct os_range range = { NULL, 0 };

    for (;; bytes = max_size(round_down(bytes / 2, page_bytes()), least)) {
        if (space_has_numbers(bytes)) range = reserve_region(bytes);
        if (range.base != NULL || bytes == least) break;
    }
    if (range.base == NULL) return NULL;
    *region = (struct region){ range.base, range.bytes, space.next_number, 0 };
    space.next_number += (uint32_t)(range.bytes >> space.page_shift) + 1;
    space.reserved_bytes += range.bytes;
    if (space.region_count % 8 == 0 && space.region_bytes_next <= SIZE_MAX / 8)
        space.region_bytes_next *= 2; /* the array of regions is short */
    __atomic_store_n(&space.region_count, space.region_count + 1, __ATOMIC_RELEASE);
    return region;
}

/* An eighth of what one of those who open has on average, or many of them would open more and more.
 * The records of the first opening, and of the page after it, fit into one page of the map. */
size_t space_opening_step(size_t pages)
{
    size_t average = space.open_bytes / max_size(RELAXED_LOAD(commit.heap_count), 1);
    size_t step = max_size(OPEN_BYTES_MIN, min_size(average / 8, 64 * MiB)) >> space.page_shift;

    if (space.open_bytes == 0) step = min_size(step, page_bytes() / sizeof(struct page) - 2);
    return max_size(step, pages);
}

size_t space_room_at_end(void)
{
    size_t pages;

    lock_take(&space.lock);
    pages = room_of(&space.region[space.region_count - 1]);
    lock_give(&space.lock);
    return pages;
}

/* In the newest region that has room for all of it, or in one more. */
struct page_span space_grow(size_t pages, size_t unit_pages, size_t room_bytes)
{
    struct region *region = NULL;
    size_t step;
    struct page_span span;

    if (pages > space.page_count_max) return (struct page_span){ 0, 0 };
    for (uint32_t i = space.region_count; i-- > 0 && region == NULL;)
        if (room_of(&space.region[i]) >= pages) region = &space.region[i];
    if (region == NULL) region = add_region(pages);
    if (region == NULL) return (struct page_span){ 0, 0 };

    step =
        round_up(region->open_pages + space_opening_step(pages), unit_pages) - region->open_pages;
    step = min_size(step, room_of(region));
    if (!open_pages(region, step, room_bytes)) {
        step = pages;
        if (!open_pages(region, step, room_bytes)) return (struct page_span){ 0, 0 };
    }
    span = (struct page_span){ region->first_page + region->open_pages, (uint32_t)step };
    /* Partner: page_at, which reads records of open pages. */
    __atomic_store_n(&region->open_pages, region->open_pages + (uint32_t)step, __ATOMIC_RELEASE);
    space.open_bytes += step << space.page_shift;
    return span;
}

bool space_close_tail(uint32_t first, size_t pages)
{
    struct region *region = &space.region[space.region_count - 1];

    if (!os_close(page_range(first, pages))) return false;
    RELAXED_STORE(region->open_pages, region->open_pages - (uint32_t)pages);
    space.open_bytes -= pages << space.page_shift;
    return true;
}
