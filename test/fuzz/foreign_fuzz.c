/* foreign_fuzz.c - page numbers of memory that others reserved, against a list of what was
 * added. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "fuzz.h"

const unsigned fuzz_bytes_max = 400;

enum { EXTENTS = 40, PAGES_MAX = 300 };
#define SOMEWHERE BY_WORD(TiB, 256 * MiB)

static struct {
    char *base; /* NULL: none */
    size_t pages;
    uint32_t first;
    bool whole, hidden;
} extents[EXTENTS];

static char *draw_place(void)
{
    return (char *)(SOMEWHERE + random_below(EXTENTS * (uint64_t)PAGES_MAX) * page_bytes());
}

static bool overlaps(const char *base, size_t pages)
{
    for (unsigned i = 0; i < EXTENTS; i++)
        if (extents[i].base != NULL && !extents[i].hidden
            && base < extents[i].base + extents[i].pages * page_bytes()
            && extents[i].base < base + pages * page_bytes())
            return true;
    return false;
}

static void add(unsigned slot)
{
    char *base = draw_place();
    size_t pages = 1 + random_below(PAGES_MAX);
    bool whole = random_below(3) == 0, taken = overlaps(base, pages);
    uint64_t failures = fake_failures();
    uint32_t first;

    if (random_below(8) == 0) fake_fail_nth(1);
    first = whole ? foreign_add_whole(base, pages) : foreign_add(base, pages);
    fake_fail_nth(0);
    if (taken) assert_int_equal(first, 0);
    else assert_true(first != 0 || fake_failures() > failures);
    if (first == 0) return;
    extents[slot].base = base;
    extents[slot].pages = pages;
    extents[slot].first = first;
    extents[slot].whole = whole;
    extents[slot].hidden = false;
}

static uint32_t expected_number(const char *address)
{
    for (unsigned i = 0; i < EXTENTS; i++) {
        size_t at = (size_t)(address - extents[i].base) / page_bytes();

        if (extents[i].base == NULL || extents[i].hidden || address < extents[i].base
            || at >= extents[i].pages)
            continue;
        return extents[i].first + (uint32_t)(extents[i].whole && at > 1 ? 1 : at);
    }
    return 0;
}

static void look(const char *address)
{
    assert_int_equal(page_at(address), expected_number(address));
    assert_int_equal(foreign_overlaps(address, 1), expected_number(address) != 0);
}

/* Of a whole one: hidden, and shown with another length or place. */
static void move(unsigned slot)
{
    char *base = extents[slot].base;
    size_t pages = extents[slot].pages;

    if (!extents[slot].hidden) {
        foreign_hide(extents[slot].first);
        extents[slot].hidden = true;
        return;
    }
    if (random_below(2) == 0) pages = 1 + random_below(PAGES_MAX);
    if (random_below(2) == 0) base = draw_place();
    if (overlaps(base, pages)) return;
    foreign_show(extents[slot].first, base, pages);
    extents[slot].base = base;
    extents[slot].pages = pages;
    extents[slot].hidden = false;
}

static void check_numbers(void)
{
    lock_take(&space.lock);
    foreign_check();
    lock_give(&space.lock);
}

void fuzz_one(void)
{
    page_heaps_start();
    assert_true(space_start());
    while (!random_is_over()) {
        unsigned slot = (unsigned)random_below(EXTENTS);

        lock_take(&space.lock);
        look(draw_place());
        lock_give(&space.lock);
        if (extents[slot].base == NULL) {
            add(slot);
        } else if (extents[slot].whole && random_below(2) == 0) {
            move(slot);
        } else if (!extents[slot].hidden) {
            foreign_remove(extents[slot].first);
            extents[slot].base = NULL;
        }
        check_numbers();
    }
}
