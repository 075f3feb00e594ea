/* guarded_fuzz.c - cells for guarded blocks: where they lie, what an address in them is, U1 to
 * U4. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "fuzz.h"
#include "guard/guarded.h"

const unsigned fuzz_bytes_max = 300;

enum { CELLS = 24 };

static struct {
    char *base;
    size_t size, class_size;
} held[CELLS];

static void take(unsigned slot)
{
    size_t size = 1 + random_below(page_bytes() + 100), align = (size_t)1 << random_below(10);
    unsigned class_index = class_of_aligned(size, align);
    struct guarded_trace taken = { .thread = 1,
                                   .depth = 1,
                                   .return_address = { 4096 + random_below(8) } };
    char *base;

    if (class_index == 0) return;
    base = guarded_take(size, align, class_index, &taken);
    if (base == NULL) return;
    assert_true(is_aligned((uintptr_t)base, align));
    assert_true(class_bytes[class_index] <= page_bytes());
    /* A page that the kernel would not close has what was in it. */
    if (fake_failures() == 0) assert_true(all_bytes_are(base, 0, class_bytes[class_index]));
    assert_int_equal(round_down((uintptr_t)base, page_bytes()),
                     round_down((uintptr_t)base + class_bytes[class_index] - 1, page_bytes()));
    for (unsigned i = 0; i < CELLS; i++)
        if (held[i].base != NULL)
            assert_true(round_down((uintptr_t)held[i].base, page_bytes())
                        != round_down((uintptr_t)base, page_bytes()));
    memset(base, (int)slot + 1, class_bytes[class_index]);
    held[slot].base = base;
    held[slot].size = size;
    held[slot].class_size = class_bytes[class_index];
    assert_int_equal(guarded_pool_class(base), class_index);
}

static void give(unsigned slot)
{
    struct guarded_trace given = { .thread = 2, .depth = 1, .return_address = { 8192 } };

    assert_true(all_bytes_are(held[slot].base, (unsigned char)(slot + 1), held[slot].class_size));
    assert_true(guarded_give(held[slot].base, &given));
    assert_false(guarded_give(held[slot].base, &given));
    assert_int_equal(guarded_find(held[slot].base).kind, GUARDED_GONE);
    held[slot].base = NULL;
}

/* Somewhere around a block that is held. */
static void ask(unsigned slot)
{
    intptr_t off = (intptr_t)random_below(3 * page_bytes()) - (intptr_t)page_bytes();
    const char *address = held[slot].base + off;
    struct guarded_finding finding = guarded_find(address);

    if (off == 0) assert_int_equal(finding.kind, GUARDED_BLOCK);
    if (off > 0 && (size_t)off < held[slot].class_size)
        assert_int_equal(finding.kind, GUARDED_INSIDE);
    if (off >= 0 && (size_t)off < held[slot].class_size) {
        assert_true(guarded_holds(address));
        assert_ptr_equal(finding.cell.block, held[slot].base);
    }
    if (finding.kind == GUARDED_BEFORE || finding.kind == GUARDED_BEHIND) {
        if (random_below(2) == 0) (void)guarded_tell_once(&finding);
        if (random_below(2) == 0 && guarded_let_pass(address))
            assert_true(fake_is_committed((void *)round_down((uintptr_t)address, page_bytes()),
                                          page_bytes()));
    }
}

void fuzz_one(void)
{
    unsigned cells = 1 + (unsigned)random_below(GUARDED_CELLS_MAX < 64 ? GUARDED_CELLS_MAX : 64);

    assert_true(heap_start());
    if (!guarded_start(cells)) return;
    while (!random_is_over()) {
        unsigned slot = (unsigned)random_below(CELLS);

        if (random_below(8) == 0) fake_fail_nth(1 + random_below(3));
        if (random_below(24) == 0) guarded_end_watch();
        else if (held[slot].base == NULL) take(slot);
        else if (random_below(3) == 0) ask(slot);
        else give(slot);
        fake_fail_nth(0);
        lock_take(&guarded_lock);
        guarded_check();
        lock_give(&guarded_lock);
    }
}
