/* foreign.c - foreign extents by address and by number, and the giving of numbers.
 *
 * Numbers are given in lengths of which four lie in each doubling, so that a foreign extent fits
 * the next memory of about the same length. Records are never given back: what a late reader finds
 * is a foreign extent, whoever has it by then.
 * SPDX-License-Identifier: MIT
 */
#include "foreign.h"

#include "../base/bits.h"
#include "meta.h"
#include "commit.h"

enum { LENGTH_COUNT = 28 * 4, UNLOCKED_LOOKS_MAX = 64 };

/* Numbers of records, in memory that opens as it grows. */
struct open_array {
    uint32_t *at;    /* constant once it is there */
    size_t room;     /* under the lock: entries that are open, */
    size_t room_max; /* and that there may be */
};

static struct {
    uint32_t version;        /* atomic, under the lock; partner: foreign_page_at */
    uint32_t count;          /* atomic, under the lock: P1 */
    struct open_array order; /* P1: numbers of records */
    struct open_array units; /* P2: the same, for each FOREIGN_UNIT from the end of the numbers */
    uint32_t hidden;         /* under the lock: those that may be in `order` again */
    uint32_t unused[LENGTH_COUNT]; /* under the lock: lists, by record number */
} foreign SPARSE;

/* What a change writes, and what is read without the lock: in order with the version before and
 * after. */
#define LOAD(object) __atomic_load_n(&(object), __ATOMIC_ACQUIRE)
#define STORE(object, value) __atomic_store_n(&(object), (value), __ATOMIC_RELEASE)

static struct foreign_extent *extent_record(uint32_t number) { return meta_record(number); }
static struct foreign_extent *extent_at(uint32_t index)
{
    return extent_record(LOAD(foreign.order.at[index]));
}
static size_t extent_bytes(const struct foreign_extent *extent)
{
    return LOAD(extent->pages) << space.page_shift;
}

const void *foreign_order_address(void) { return &foreign.order.at; }
const void *foreign_count_address(void) { return &foreign.count; }

/* ---- looking up ---- */

/* The first in order that ends beyond the address. */
static uint32_t first_ending_beyond(uintptr_t address)
{
    uint32_t low = 0, high = LOAD(foreign.count);

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct foreign_extent *extent = extent_at(middle);

        if (address < (uintptr_t)LOAD(extent->base) + extent_bytes(extent)) high = middle;
        else low = middle + 1;
    }
    return low;
}

static uint32_t find_page(const void *address)
{
    uint32_t at = first_ending_beyond((uintptr_t)address);
    const struct foreign_extent *extent;
    size_t offset;

    if (at >= LOAD(foreign.count)) return 0;
    extent = extent_at(at);
    offset = (uintptr_t)address - (uintptr_t)LOAD(extent->base);
    if (offset >= extent_bytes(extent)) return 0;
    return extent->before + 1 + (uint32_t)min_size(offset >> space.page_shift, LOAD(extent->last));
}

uint32_t foreign_page_at(const void *address)
{
    uint32_t page;

    for (unsigned look = 0; look < UNLOCKED_LOOKS_MAX; look++) {
        uint32_t version = LOAD(foreign.version);

        if (likely(version == 0)) return 0; /* nothing was ever added */
        if (version % 2 != 0) continue;
        page = find_page(address);
        if (RELAXED_LOAD(foreign.version) == version) return page;
    }
    /* The change lasts long: its thread does not run just now, perhaps because this one does. A
     * thread that holds the lock never comes here, for nothing changes then. */
    lock_take(&space.lock);
    page = find_page(address);
    lock_give(&space.lock);
    return page;
}

/* P2. The entry of a number. */
static size_t unit_of(uint32_t number) { return (space.number_max - number) / FOREIGN_UNIT; }

static struct foreign_extent *extent_of_number(uint32_t page)
{
    return extent_record(foreign.units.at[unit_of((uint32_t)round_down(page, FOREIGN_UNIT))]);
}

char *foreign_page_address(uint32_t page)
{
    const struct foreign_extent *extent = extent_of_number(page);

    return RELAXED_LOAD(extent->base) + ((size_t)(page - extent->before - 1) << space.page_shift);
}

/* ---- arrays ---- */

/* Makes room for `count` entries of `most`. False: no memory. */
static bool open_array(struct open_array *array, size_t count, size_t most)
{
    size_t step = max_size(META_OPEN_BYTES, os_page_bytes());
    struct os_range range;

    if (count <= array->room) return true;
    if (count > most) return false;
    if (array->at == NULL) {
        range = os_reserve(round_up(most * sizeof *array->at, os_page_bytes()), os_page_bytes());
        if (range.base == NULL) return false;
        array->at = (uint32_t *)range.base;
        array->room_max = range.bytes / sizeof *array->at;
        space.reserved_bytes += range.bytes;
    }
    step = round_up((count - array->room) * sizeof *array->at, step);
    step = min_size(step, (array->room_max - array->room) * sizeof *array->at);
    range = (struct os_range){ (char *)(array->at + array->room), step };
    if (!os_commit(range)) return false;
    array->room += step / sizeof *array->at;
    return true;
}

/* ---- numbers ---- */

/* The three highest bits of its count of units follow those of the doubling. */
static unsigned length_index(uint32_t numbers)
{
    uint32_t units = numbers / FOREIGN_UNIT;
    unsigned top = highest_bit(units);

    return 4 * top + (unsigned)(((uint64_t)units << 2 >> top) & 3);
}

/* With an unused number at both ends. */
static size_t numbers_for(size_t pages)
{
    size_t units = round_up(pages + 2, FOREIGN_UNIT) / FOREIGN_UNIT;
    unsigned top = highest_bit(units);

    return round_up(units, top > 2 ? (size_t)1 << (top - 2) : 1) * FOREIGN_UNIT;
}

static struct foreign_extent *take_unused(unsigned length)
{
    struct foreign_extent *extent;

    if (foreign.unused[length] == 0) return NULL;
    extent = extent_record(foreign.unused[length]);
    foreign.unused[length] = extent->next;
    return extent;
}

/* The first of `count` numbers that nobody had, whose records can be used; a multiple of
 * FOREIGN_UNIT, like `count`. 0: none are left, or no memory for records. */
static uint32_t take_numbers(uint32_t count)
{
    size_t end = round_down(space.foreign_from, FOREIGN_UNIT);
    uintptr_t from, to;

    if (end < (size_t)space.next_number + count
        || !open_array(&foreign.units, unit_of((uint32_t)end - count) + 1, unit_of(0) + 1))
        return 0;
    from = round_down((uintptr_t)page_record((uint32_t)end - count), os_page_bytes());
    to = round_up((uintptr_t)page_record((uint32_t)end), os_page_bytes());
    if (!os_commit((struct os_range){ (char *)from, to - from })) return 0;
    /* It is read, and lists of free runs may write to it. */
    if (!space_open_record_0()) return 0;
    RELAXED_STORE(space.foreign_from, (uint32_t)end - count);
    return space.foreign_from;
}

static struct foreign_extent *make_foreign(uint32_t numbers)
{
    struct foreign_extent *extent = meta_take(sizeof *extent);

    if (extent == NULL) return NULL;
    extent->before = take_numbers(numbers);
    extent->numbers = numbers;
    if (extent->before == 0) {
        meta_give(extent, sizeof *extent);
        return NULL;
    }
    for (uint32_t at = 0; at < numbers; at += FOREIGN_UNIT)
        foreign.units.at[unit_of(extent->before + at)] = meta_number(extent);
    return extent;
}

/* One of that length, a new one, or a longer one. */
static struct foreign_extent *take_foreign(uint32_t numbers)
{
    unsigned length = length_index(numbers);
    struct foreign_extent *extent = take_unused(length);

    if (extent == NULL) extent = make_foreign(numbers);
    while (extent == NULL && ++length < LENGTH_COUNT) extent = take_unused(length);
    return extent;
}

/* ---- order ---- */

static void change_begins(void) { RELAXED_STORE(foreign.version, foreign.version + 1); }

static void change_ends(void)
{
    uint32_t version = foreign.version + 1;

    STORE(foreign.version, version != 0 ? version : 2); /* partner: foreign_page_at */
}

static void insert_in_order(struct foreign_extent *extent, char *base, size_t pages,
                            size_t numbered)
{
    uint32_t at = first_ending_beyond((uintptr_t)base), count = foreign.count;

    change_begins();
    STORE(extent->base, base);
    STORE(extent->pages, pages);
    STORE(extent->last, numbered - 1);
    for (uint32_t i = count; i > at; i--) STORE(foreign.order.at[i], foreign.order.at[i - 1]);
    STORE(foreign.order.at[at], meta_number(extent));
    STORE(foreign.count, count + 1);
    change_ends();
}

static void remove_from_order(struct foreign_extent *extent)
{
    uint32_t at = first_ending_beyond((uintptr_t)extent->base), count = foreign.count - 1;

    check(extent_at(at) == extent);
    change_begins();
    for (uint32_t i = at; i < count; i++) STORE(foreign.order.at[i], foreign.order.at[i + 1]);
    STORE(foreign.count, count);
    STORE(extent->pages, (size_t)0);
    change_ends();
}

/* ---- adding ---- */

bool foreign_overlaps(const char *base, size_t bytes)
{
    uintptr_t from = (uintptr_t)base, end = from + bytes;
    uint32_t at = first_ending_beyond(from);

    for (const struct region *region = space.region; region < space.region + space.region_count;
         region++)
        if (from < (uintptr_t)region->base + region->bytes && (uintptr_t)region->base < end)
            return true;
    return at < foreign.count && (uintptr_t)extent_at(at)->base < end;
}

/* The first so many pages get a number each; those after them have the last one. Under the lock. */
static uint32_t add_foreign(char *base, size_t pages, size_t numbered)
{
    struct foreign_extent *extent;

    if (numbered == 0 || numbered >= space.page_count_max / 2) return 0;
    if (foreign_overlaps(base, pages << space.page_shift)
        || regions_share_slots((struct os_range){ base, pages << space.page_shift })
        || !open_array(&foreign.order, (size_t)foreign.count + foreign.hidden + 1,
                       min_size(FOREIGN_COUNT_MAX, space.page_count_max / FOREIGN_UNIT)))
        return 0;
    extent = take_foreign((uint32_t)numbers_for(numbered));
    if (extent == NULL) return 0;
    __builtin_memset(page_record(extent->before), 0, (numbered + 2) * sizeof(struct page));
    insert_in_order(extent, base, pages, numbered);
    return extent->before + 1;
}

static uint32_t add_locked(char *base, size_t pages, size_t numbered)
{
    uint32_t first;

    lock_take(&space.lock);
    first = add_foreign(base, pages, numbered);
    lock_give(&space.lock);
    return first;
}

uint32_t foreign_add(char *base, size_t pages) { return add_locked(base, pages, pages); }
uint32_t foreign_add_whole(char *base, size_t pages)
{
    return add_locked(base, pages, min_size(pages, 2));
}

size_t foreign_bytes(uint32_t page) { return extent_bytes(extent_of_number(page)); }

void foreign_hide(uint32_t page)
{
    lock_take(&space.lock);
    remove_from_order(extent_of_number(page));
    foreign.hidden++;
    lock_give(&space.lock);
}

void foreign_show(uint32_t page, char *base, size_t pages)
{
    lock_take(&space.lock);
    foreign.hidden--;
    insert_in_order(extent_of_number(page), base, pages, min_size(pages, 2));
    lock_give(&space.lock);
}

void foreign_remove(uint32_t page)
{
    struct foreign_extent *extent = extent_of_number(page);
    unsigned length = length_index(extent->numbers);

    lock_take(&space.lock);
    check(extent->pages != 0 && extent->before + 1 == page);
    remove_from_order(extent);
    extent->next = foreign.unused[length];
    foreign.unused[length] = meta_number(extent);
    lock_give(&space.lock);
}

bool foreign_shares_slots(struct os_range range)
{
    for (uint32_t i = 0; i < foreign.count; i++)
        if (class_map_shares(range,
                             (struct os_range){ extent_at(i)->base, extent_bytes(extent_at(i)) }))
            return true;
    return false;
}

void foreign_visit_whole(void (*visit)(enum page_state state, size_t pages, void *context),
                         void *context)
{
    lock_take(&space.lock);
    for (uint32_t i = 0; i < foreign.count && RELAXED_LOAD(commit.vast_count) != 0; i++)
        if (page_record(extent_at(i)->before + 1)->state == PAGE_VAST)
            visit(PAGE_LARGE, extent_at(i)->pages, context);
    lock_give(&space.lock);
}

void foreign_check(void)
{
    uintptr_t end = 0;
    size_t vast = 0, vast_count = 0;

    check(lock_is_mine(&space.lock));
    for (uint32_t i = 0; i < foreign.count; i++) {
        const struct foreign_extent *extent = extent_at(i);

        require(extent->last < extent->pages);         /* P1: in use */
        require(extent->last + 3 <= extent->numbers);  /* P1 */
        require((uintptr_t)extent->base >= end);       /* P1 */
        require(extent->before >= space.foreign_from); /* P2 */
        require(
            !regions_share_slots((struct os_range){ extent->base, extent_bytes(extent) })); /* P3 */
        for (uint32_t at = 0; at < extent->numbers; at += FOREIGN_UNIT)
            require(extent_of_number(extent->before + at) == extent); /* P2 */
        end = (uintptr_t)extent->base + extent_bytes(extent);
        if (page_record(extent->before + 1)->state != PAGE_VAST) continue;
        vast += extent_bytes(extent);
        vast_count++;
    }
    require(vast == commit.vast_bytes && vast_count == commit.vast_count); /* O1 */
}
