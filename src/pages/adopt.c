/* adopt.c - places and numbers for adopted memory.
 *
 * Numbers are given in lengths of which four lie in each doubling, so that a place fits the next piece of about
 * the same length. Records are never given back: a late reader finds a place, whose it may be by then.
 * SPDX-License-Identifier: MIT
 */
#include "adopt.h"

#include "../base/bits.h"
#include "meta.h"
#include "run.h"

enum { LENGTH_COUNT = 28 * 4, UNLOCKED_LOOKS_MAX = 64 };

struct place {
    char *base;       /* under the run lock */
    size_t pages;     /* under the run lock; 0: not in use */
    size_t last;      /* under the run lock: this page and those after it have one number */
    uint32_t first;   /* constant: the unused number before its first page */
    uint32_t numbers; /* constant: multiple of ADOPT_UNIT */
    uint32_t next;    /* under the run lock: an unused one of that length, by its record's number */
};

static struct {
    uint32_t version;              /* atomic, under the run lock; partner: adopted_page_at */
    uint32_t count;                /* atomic, under the run lock: P1 */
    uint32_t *order;               /* numbers of records; constant once it is there */
    uint32_t hidden;               /* under the run lock: places that may be in `order` again */
    size_t room, room_max;         /* under the run lock: entries open, and reserved */
    uint32_t unused[LENGTH_COUNT]; /* under the run lock: lists of places, by their numbers */
} adopted SPARSE;

/* What a change writes, and what is read without the lock: in order with the version before and after. */
#define LOAD(object) __atomic_load_n(&(object), __ATOMIC_ACQUIRE)
#define STORE(object, value) __atomic_store_n(&(object), (value), __ATOMIC_RELEASE)

static struct place *place_record(uint32_t number) { return meta_record(number); }
static struct place *place_at(uint32_t index) { return place_record(LOAD(adopted.order[index])); }
static size_t place_bytes(const struct place *place)
{
    return LOAD(place->pages) << plain.page_shift;
}

/* ---- looking up ---- */

/* The first place in order that ends beyond the address. */
static uint32_t first_ending_beyond(uintptr_t address)
{
    uint32_t low = 0, high = LOAD(adopted.count);

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct place *place = place_at(middle);

        if (address < (uintptr_t)LOAD(place->base) + place_bytes(place)) high = middle;
        else low = middle + 1;
    }
    return low;
}

static uint32_t find_page(const void *address)
{
    uint32_t at = first_ending_beyond((uintptr_t)address);
    const struct place *place;
    size_t offset;

    if (at >= LOAD(adopted.count)) return 0;
    place = place_at(at);
    offset = (uintptr_t)address - (uintptr_t)LOAD(place->base);
    if (offset >= place_bytes(place)) return 0;
    return place->first + 1 + (uint32_t)min_size(offset >> plain.page_shift, LOAD(place->last));
}

/* The change lasts long: its thread does not run just now, perhaps because this one does. A thread that holds the
 * lock never comes here, for nothing changes then. */
static COLD NOINLINE uint32_t find_page_locked(const void *address)
{
    uint32_t page;

    lock_take(&keeper.lock);
    page = find_page(address);
    lock_give(&keeper.lock);
    return page;
}

uint32_t adopted_page_at(const void *address)
{
    for (unsigned look = 0; look < UNLOCKED_LOOKS_MAX; look++) {
        uint32_t version = LOAD(adopted.version), page;

        if (likely(version == 0)) return 0; /* nothing was ever adopted */
        if (version % 2 != 0) continue;
        page = find_page(address);
        if (RELAXED_LOAD(adopted.version) == version) return page;
    }
    return find_page_locked(address);
}

static struct place *place_of(uint32_t page)
{
    uint32_t unit = (uint32_t)round_down(page, ADOPT_UNIT);

    return place_record(page_record(unit)->adopted.place);
}

char *adopted_page_address(uint32_t page)
{
    const struct place *place = place_of(page);

    return RELAXED_LOAD(place->base) + ((size_t)(page - place->first - 1) << plain.page_shift);
}

/* ---- numbers ---- */

/* The three highest bits of its count of units follow those of the doubling. */
static unsigned length_index(uint32_t numbers)
{
    uint32_t units = numbers / ADOPT_UNIT;
    unsigned top = highest_bit(units);

    return 4 * top + (unsigned)(((uint64_t)units << 2 >> top) & 3);
}

/* With an unused number at both ends. */
static size_t numbers_for(size_t pages)
{
    size_t units = round_up(pages + 2, ADOPT_UNIT) / ADOPT_UNIT;
    unsigned top = highest_bit(units);

    return round_up(units, top > 2 ? (size_t)1 << (top - 2) : 1) * ADOPT_UNIT;
}

static struct place *take_unused(unsigned length)
{
    struct place *place;

    if (adopted.unused[length] == 0) return NULL;
    place = place_record(adopted.unused[length]);
    adopted.unused[length] = place->next;
    return place;
}

static struct place *make_place(uint32_t numbers)
{
    struct place *place = meta_take(sizeof *place);

    if (place == NULL) return NULL;
    place->first = plain_number_adopted(numbers);
    place->numbers = numbers;
    if (place->first != 0) return place;
    meta_give(place, sizeof *place);
    return NULL;
}

/* One of that length, a new one, or a longer one. */
static struct place *take_place(uint32_t numbers)
{
    unsigned length = length_index(numbers);
    struct place *place = take_unused(length);

    if (place == NULL) place = make_place(numbers);
    while (place == NULL && ++length < LENGTH_COUNT) place = take_unused(length);
    return place;
}

static void put_place(struct place *place)
{
    unsigned length = length_index(place->numbers);

    place->next = adopted.unused[length];
    adopted.unused[length] = meta_number(place);
}

/* The records that its pages will have, P2. */
static void clear_records(const struct place *place, size_t pages)
{
    __builtin_memset(page_record(place->first), 0, (pages + 2) * sizeof(struct page));
    for (uint32_t at = 0; at < pages + 2; at += ADOPT_UNIT)
        page_record(place->first + at)->adopted.place = meta_number(place);
}

/* ---- order ---- */

static bool reserve_order(void)
{
    size_t most = min_size(ADOPTED_COUNT_MAX, plain.page_count_max / ADOPT_UNIT);
    struct os_range range =
        os_reserve(round_up(most * sizeof(uint32_t), os_page_bytes()), os_page_bytes());

    if (range.base == NULL) return false;
    adopted.order = (uint32_t *)range.base;
    adopted.room_max = range.bytes / sizeof(uint32_t);
    plain.reserved_bytes += range.bytes;
    return true;
}

static bool has_room_in_order(void)
{
    size_t step = max_size(META_OPEN_BYTES, os_page_bytes()) / sizeof(uint32_t);

    if (adopted.count + adopted.hidden < adopted.room) return true;
    if (adopted.order == NULL && !reserve_order()) return false;
    step = min_size(step, adopted.room_max - adopted.room);
    if (step == 0
        || !os_commit(
            (struct os_range){ (char *)(adopted.order + adopted.room), step * sizeof(uint32_t) }))
        return false;
    adopted.room += step;
    return true;
}

static void change_begins(void) { RELAXED_STORE(adopted.version, adopted.version + 1); }

static void change_ends(void)
{
    uint32_t version = adopted.version + 1;

    STORE(adopted.version, version != 0 ? version : 2); /* partner: adopted_page_at */
}

static void insert_in_order(struct place *place, char *base, size_t pages, size_t numbered)
{
    uint32_t at = first_ending_beyond((uintptr_t)base), count = adopted.count;

    change_begins();
    STORE(place->base, base);
    STORE(place->pages, pages);
    STORE(place->last, numbered - 1);
    for (uint32_t i = count; i > at; i--) STORE(adopted.order[i], adopted.order[i - 1]);
    STORE(adopted.order[at], meta_number(place));
    STORE(adopted.count, count + 1);
    change_ends();
}

static void remove_from_order(struct place *place)
{
    uint32_t at = first_ending_beyond((uintptr_t)place->base), count = adopted.count - 1;

    check(place_at(at) == place);
    change_begins();
    for (uint32_t i = at; i < count; i++) STORE(adopted.order[i], adopted.order[i + 1]);
    STORE(adopted.count, count);
    STORE(place->pages, (size_t)0);
    change_ends();
}

/* ---- adopting ---- */

/* The first so many pages get a number each; those after them have the last one. */
static uint32_t adopt(char *base, size_t pages, size_t numbered)
{
    struct place *place;

    if (numbered == 0 || numbered >= plain.page_count_max / 2) return 0;
    if (!plain_has_own_slots((struct os_range){ base, pages << plain.page_shift })
        || !has_room_in_order())
        return 0;
    place = take_place((uint32_t)numbers_for(numbered));
    if (place == NULL) return 0;
    clear_records(place, numbered);
    insert_in_order(place, base, pages, numbered);
    return place->first + 1;
}

uint32_t plain_adopt(char *base, size_t pages) { return adopt(base, pages, pages); }

uint32_t plain_adopt_whole(char *base, size_t pages)
{
    return adopt(base, pages, min_size(pages, 2));
}

size_t adopted_bytes(uint32_t page) { return place_bytes(place_of(page)); }

void adopted_resize(uint32_t page, size_t pages)
{
    struct place *place = place_of(page);

    change_begins();
    STORE(place->pages, pages);
    STORE(place->last, min_size(pages, 2) - 1);
    change_ends();
}

void adopted_hide(uint32_t page)
{
    remove_from_order(place_of(page));
    adopted.hidden++;
}

void adopted_show(uint32_t page, char *base, size_t pages)
{
    adopted.hidden--;
    insert_in_order(place_of(page), base, pages, min_size(pages, 2));
}

void plain_disown(uint32_t first)
{
    struct place *place = place_of(first);

    check(place->pages != 0 && place->first + 1 == first);
    remove_from_order(place);
    put_place(place);
}

static bool is_in(const struct region *region, const char *base, size_t bytes)
{
    return (uintptr_t)base < (uintptr_t)region->base + region->bytes
        && (uintptr_t)region->base < (uintptr_t)base + bytes;
}

bool adopted_shares_slots(struct os_range range)
{
    for (uint32_t i = 0; i < adopted.count; i++)
        if (class_map_shares(range,
                             (struct os_range){ place_at(i)->base, place_bytes(place_at(i)) }))
            return true;
    return false;
}

bool plain_overlaps(const char *base, size_t bytes)
{
    uint32_t at = first_ending_beyond((uintptr_t)base);

    for (uint32_t i = 0; i < plain.region_count; i++)
        if (is_in(&plain.region[i], base, bytes)) return true;
    return at < adopted.count && (uintptr_t)place_at(at)->base < (uintptr_t)base + bytes;
}

void adopted_visit_whole(void (*visit)(enum page_state state, size_t pages, void *context),
                         void *context)
{
    for (uint32_t i = 0; i < adopted.count && plain.vast_count != 0; i++)
        if (page_record(place_at(i)->first + 1)->state == PAGE_VAST)
            visit(PAGE_LARGE, place_at(i)->pages, context);
}

void adopted_check(void)
{
    uintptr_t end = 0;
    size_t vast = 0, vast_count = 0;

    check(lock_is_mine(&keeper.lock));
    for (uint32_t i = 0; i < adopted.count; i++) {
        const struct place *place = place_at(i);

        require(place->pages != 0 && place->last < place->pages);                           /* P1 */
        require(place->last + 3 <= place->numbers);                                         /* P1 */
        require((uintptr_t)place->base >= end);                                             /* P1 */
        require(place->first >= plain.adopted_from);                                        /* P2 */
        require(plain_has_own_slots((struct os_range){ place->base, place_bytes(place) })); /* P3 */
        for (uint32_t at = 0; at < place->last + 3; at += ADOPT_UNIT)
            require(place_of(place->first + at) == place); /* P2 */
        end = (uintptr_t)place->base + place_bytes(place);
        if (page_record(place->first + 1)->state != PAGE_VAST) continue;
        vast += place_bytes(place);
        vast_count++;
    }
    require(vast == plain.vast_bytes && vast_count == plain.vast_count); /* V1 */
}
