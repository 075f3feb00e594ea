/* adopt.c - places and numbers for adopted memory.
 * SPDX-License-Identifier: MIT
 */
#include "adopt.h"

static struct {
    uint32_t lowest;                  /* under the run lock: the lowest number given; 0: none yet */
    uint32_t room[ADOPTED_COUNT_MAX]; /* under the run lock: numbers of each place */
    uint32_t first_room[ADOPTED_COUNT_MAX]; /* under the run lock: the first of them */
} adopted SPARSE;

/* Records that share a page of the map are committed together. */
static uint32_t map_unit(void) { return (uint32_t)(page_bytes() / sizeof(struct page)); }

/* With an unused number at both ends. */
static uint32_t room_for(size_t pages) { return (uint32_t)round_up(pages + 2, map_unit()); }

/* Numbers that were never given, as far as the plain's own regions leave any. */
static uint32_t new_numbers(uint32_t count)
{
    const struct region *last = &plain.region[plain.region_count - 1];
    size_t taken = (size_t)last->first_page + (last->bytes >> plain.page_shift) + 1;
    uint32_t end = adopted.lowest != 0 ? adopted.lowest
                                       : (uint32_t)round_down(plain.page_count_max, map_unit());
    struct os_range records;

    if (end < count || end - count <= round_up(taken, map_unit())) return 0;
    records = (struct os_range){ (char *)page_record(end - count), count * sizeof(struct page) };
    if (!os_commit(records)) return 0;
    adopted.lowest = end - count;
    return adopted.lowest;
}

static unsigned place_for(uint32_t room)
{
    unsigned unused = ADOPTED_COUNT_MAX;

    for (unsigned place = 0; place < ADOPTED_COUNT_MAX; place++) {
        if (plain.region[REGION_COUNT_MAX + place].bytes != 0) continue;
        if (adopted.room[place] >= room) return place;
        if (adopted.room[place] == 0 && unused == ADOPTED_COUNT_MAX) unused = place;
        if (place >= plain.adopted_end) break;
    }
    return unused;
}

uint32_t plain_adopt(char *base, size_t pages)
{
    struct region *region;
    uint32_t room, first;
    unsigned place;

    if (pages >= plain.page_count_max / 2) return 0;
    room = room_for(pages);
    place = place_for(room);
    if (place == ADOPTED_COUNT_MAX) return 0;
    if (adopted.room[place] == 0) {
        first = new_numbers(room);
        if (first == 0) return 0;
        adopted.room[place] = room;
        adopted.first_room[place] = first;
    }
    first = adopted.first_room[place] + 1;
    __builtin_memset(page_record(first - 1), 0, room * sizeof(struct page));
    region = &plain.region[REGION_COUNT_MAX + place];
    *region = (struct region){ base, 0, first, (uint32_t)pages };
    __atomic_store_n(&region->bytes, pages << plain.page_shift, __ATOMIC_RELEASE);
    if (place >= plain.adopted_end)
        __atomic_store_n(&plain.adopted_end, place + 1, __ATOMIC_RELEASE);
    return first;
}

void plain_disown(uint32_t first)
{
    for (unsigned place = 0; place < plain.adopted_end; place++) {
        struct region *region = &plain.region[REGION_COUNT_MAX + place];
        if (region->first_page != first || region->bytes == 0) continue;
        __atomic_store_n(&region->bytes, 0, __ATOMIC_RELEASE);
        RELAXED_STORE(region->open_pages, 0);
        return;
    }
}

static bool is_in(const struct region *region, const char *base, size_t bytes)
{
    return region->bytes != 0 && (uintptr_t)base < (uintptr_t)region->base + region->bytes
        && (uintptr_t)region->base < (uintptr_t)base + bytes;
}

bool plain_overlaps(const char *base, size_t bytes)
{
    for (uint32_t i = 0; i < plain.region_count; i++)
        if (is_in(&plain.region[i], base, bytes)) return true;
    for (uint32_t i = 0; i < plain.adopted_end; i++)
        if (is_in(&plain.region[REGION_COUNT_MAX + i], base, bytes)) return true;
    return false;
}
