/* run_model.h - leases, returns, extensions, trims and purges of runs against an array. */
/* SPDX-License-Identifier: MIT */
/*
 * The model has one entry a page: who holds it, and whether it was written since it was last known
 * to be zero. After every step the walker runs, and what the page heap says is compared with the
 * model: no page is held twice, contents stay, `zero` is true exactly when no page was written, and
 * memory is refused only when no free run is sure to fit. The regions are small, and calls fail now
 * and then. What happens is drawn by random_below.
 */
#ifndef PRAIRIE_TEST_UNIT_RUN_MODEL_H
#define PRAIRIE_TEST_UNIT_RUN_MODEL_H

#include "page_heap/run_bins.h"

#include "pages.h"

enum { MODEL_PAGES = 1 << 15, HELD_RUNS_MAX = 400 };

struct held_run {
    uint32_t page, pages;
    bool large;   /* leased as a large block */
    bool leaving; /* on its way to the kernel */
    uint64_t stamp;
};

static struct {
    uint32_t holder;
    bool written;
} model_page[MODEL_PAGES];
static struct held_run held_runs[HELD_RUNS_MAX];
static unsigned refusals, extensions, hole_leases;
static uint64_t last_stamp;

static uint64_t *first_word(uint32_t page) { return (uint64_t *)page_address(page); }
static uint64_t *last_word(uint32_t page)
{
    return (uint64_t *)(page_address(page) + page_bytes() - sizeof(uint64_t));
}

/* ---- the model ---- */

static void hold(unsigned index, uint32_t page, uint32_t pages)
{
    for (uint32_t at = page; at < page + pages; at++) {
        assert_true(at < MODEL_PAGES);
        assert_int_equal(model_page[at].holder, 0);
        model_page[at].holder = index + 1;
    }
}

static void let_go(uint32_t page, uint32_t pages)
{
    for (uint32_t at = page; at < page + pages; at++) {
        assert_int_not_equal(model_page[at].holder, 0);
        model_page[at].holder = 0;
    }
}

static bool is_free(uint32_t page)
{
    for (uint32_t i = 0; i < space.region_count; i++)
        if (page - space.region[i].first_page < space.region[i].open_pages)
            return model_page[page].holder == 0;
    return false;
}

static bool all_zero(uint32_t page, uint32_t pages)
{
    bool zero = true;

    for (uint32_t at = page; at < page + pages; at++) zero &= !model_page[at].written;
    return zero;
}

/* The longest stretch of free pages of one kind: what the page heap may call a run. */
static uint32_t longest_free(void)
{
    uint32_t longest = 0;

    for (uint32_t i = 0; i < space.region_count; i++) {
        uint32_t first = space.region[i].first_page, length = 0;
        for (uint32_t at = first; at < first + space.region[i].open_pages; at++) {
            bool free = model_page[at].holder == 0;
            bool goes_on = length > 0 && model_page[at].written == model_page[at - 1].written;
            length = !free ? 0 : goes_on ? length + 1 : 1;
            if (length > longest) longest = length;
        }
    }
    return longest;
}

/* ---- contents ---- */

static void stamp_pages(const struct held_run *run, uint32_t from)
{
    for (uint32_t at = run->page + from; at < run->page + run->pages; at++) {
        *first_word(at) = run->stamp ^ at;
        *last_word(at) = ~run->stamp ^ at;
        model_page[at].written = true;
    }
}

static void check_stamps(const struct held_run *run)
{
    for (uint32_t at = run->page; at < run->page + run->pages; at++) {
        assert_true(*first_word(at) == (run->stamp ^ at));
        assert_true(*last_word(at) == (~run->stamp ^ at));
    }
}

static void check_zero(uint32_t page, uint32_t pages, bool zero)
{
    assert_int_equal(zero, all_zero(page, pages));
    if (zero) assert_true(all_bytes_are(page_address(page), 0, bytes_of(pages)));
}

/* ---- the steps ---- */

static size_t random_length(void)
{
    switch (random_below(8)) {
    case 0: return 1 + random_below(700);
    case 1:
    case 2: return 1 + random_below(140);
    default: return 1 + random_below(12);
    }
}

static void lease_one(unsigned index)
{
    size_t pages = random_length(), align = random_below(6) == 0 ? (size_t)1 << random_below(7) : 1;
    size_t open = space.open_bytes;
    uint32_t longest = longest_free();
    bool fits = longest > 0 && bin_of(longest) >= bin_fitting(pages + align - 1);
    bool large = random_below(2) == 0;
    struct run run = run_lease(pages, align, large ? PAGE_LARGE : PAGE_USED);

    if (fits) assert_int_equal(space.open_bytes, open);
    if (run.page == 0) {
        refusals++;
        assert_false(fits);
        return;
    }
    if (longest < pages && space.open_bytes == open) hole_leases++;
    assert_int_equal(page_record(run.page)->run_pages, pages);
    assert_true(is_aligned((uintptr_t)page_address(run.page), bytes_of(align)));
    check_zero(run.page, (uint32_t)pages, run.zero);
    hold(index, run.page, (uint32_t)pages);
    last_stamp += 0x9e3779b97f4a7c15;
    held_runs[index] = (struct held_run){ run.page, (uint32_t)pages, large, false, last_stamp | 1 };
    stamp_pages(&held_runs[index], 0);
}

static void return_one(unsigned index)
{
    struct held_run *run = &held_runs[index];

    check_stamps(run);
    let_go(run->page, run->pages);
    run_return(run->page);
    run->pages = 0;
}

static void extend_one(struct held_run *run, unsigned index)
{
    uint32_t added = (uint32_t)(1 + random_below(random_below(3) == 0 ? 200 : 6));
    uint32_t end = run->page + run->pages;
    enum extended extended;
    bool free = true;

    for (uint32_t at = end; at < end + added; at++) free &= is_free(at);
    extended = run_extend(page_heap_of(run->page), run->page, run->pages + added);
    assert_int_equal(extended != EXTENDED_NOT, free);
    if (!free) return;
    extensions++;
    check_stamps(run);
    hold(index, end, added);
    run->pages += added;
    stamp_pages(run, run->pages - added);
}

static void trim_one(struct held_run *run)
{
    uint32_t keep = (uint32_t)(1 + random_below(run->pages - 1));

    check_stamps(run);
    run_trim(page_heap_of(run->page), run->page, keep);
    let_go(run->page + keep, run->pages - keep);
    run->pages = keep;
}

/* All of the run was written to, or none of it. */
static void send_off(unsigned index, uint32_t page, bool written)
{
    uint32_t pages = page_record(page)->run_pages;

    for (uint32_t at = page; at < page + pages; at++)
        assert_int_equal(model_page[at].written, written);
    hold(index, page, pages);
    held_runs[index] = (struct held_run){ page, pages, false, true, 0 };
}

/* The first half of a purge: the run is out of the bins while the kernel works. */
static void take_dirty_one(unsigned index)
{
    uint32_t page = run_take_dirty(page_heap, 1 + random_below(20), 20 + random_below(100));

    if (page != 0) send_off(index, page, true);
}

/* The same of clean pages, from anywhere on: what they hold stays zero, whatever the kernel
 * says. */
static uint32_t clean_from;
static void take_clean_one(unsigned index)
{
    uint32_t page = run_take_clean_edge(&clean_from);

    if (page == 0) {
        clean_from = 0;
        return;
    }
    assert_int_equal(clean_from, page + page_record(page)->run_pages);
    send_off(index, page, false);
}

/* The second half; the kernel may have refused. */
static void put_back_one(struct held_run *run)
{
    bool clean = !model_page[run->page].written
              || os_purge((struct os_range){ page_address(run->page), bytes_of(run->pages) });

    for (uint32_t at = run->page; clean && at < run->page + run->pages; at++)
        model_page[at].written = false;
    let_go(run->page, run->pages);
    run_put_free(run->page, clean ? PAGE_CLEAN : PAGE_DIRTY);
    run->pages = 0;
}

static void step_at(unsigned index)
{
    struct held_run *run = &held_runs[index];

    if (run->pages == 0) {
        if (random_below(10) == 0) take_dirty_one(index);
        else if (random_below(20) == 0) take_clean_one(index);
        else lease_one(index);
    } else if (run->leaving) {
        put_back_one(run);
    } else if (run->large && random_below(3) == 0) {
        extend_one(run, index);
    } else if (run->large && run->pages > 1 && random_below(3) == 0) {
        trim_one(run);
    } else {
        return_one(index);
    }
}

static void check_counts(void)
{
    size_t large_pages = 0, large_count = 0, used = 0;

    for (unsigned i = 0; i < HELD_RUNS_MAX; i++) {
        used += held_runs[i].pages;
        large_pages += held_runs[i].large ? held_runs[i].pages : 0;
        large_count += held_runs[i].large && held_runs[i].pages != 0;
    }
    assert_int_equal(page_heap_used_pages(page_heap), used);
    assert_int_equal(page_heap->large_pages, large_pages);
    assert_int_equal(page_heap_large_count(page_heap), large_count);
}

/* `held_max`: runs at once, at most HELD_RUNS_MAX. */
static void live(unsigned held_max, unsigned steps)
{
    for (unsigned step = 0; step < steps && !random_is_over(); step++) {
        if (random_below(12) == 0) fake_fail_nth(1);
        step_at((unsigned)random_below(held_max));
        fake_fail_nth(0);
        check_runs();
        if (step % 16 == 0) check_counts();
    }
    for (unsigned i = 0; i < held_max; i++) {
        if (held_runs[i].pages == 0) continue;
        if (held_runs[i].leaving) put_back_one(&held_runs[i]);
        else return_one(i);
        check_runs();
    }
    check_counts();
}

#endif
