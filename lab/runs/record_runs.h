/* record_runs.h - between the page heap and the rest: writes down what is asked.
 *
 * The file that PRAIRIE_RUN_TRACE names gets eight bytes for each event, two numbers of 32 bits:
 *
 *      page, pages     a run was leased; when it is leased already, it has another length now
 *      page, 0         a run was returned
 *
 * Page numbers serve as names of runs. Returns are written before they happen and leases after,
 * so that the file's order is a possible one with any number of threads. Alignment is not
 * written.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_LAB_RECORD_RUNS_H
#define PRAIRIE_LAB_RECORD_RUNS_H

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { RECORD_EVENTS = 8192 };

static struct {
    struct lock lock; /* the innermost: nothing is called under it but write */
    int file;         /* 0: not opened yet; -1: not recording */
    unsigned count;
    uint32_t event[RECORD_EVENTS][2];
} record;

/* Under its lock. */
static void record_flush(void)
{
    const char *at = (const char *)record.event;
    size_t left = record.count * sizeof record.event[0];

    while (left > 0) {
        ssize_t written = write(record.file, at, left);
        if (written <= 0) break;
        at += written;
        left -= (size_t)written;
    }
    record.count = 0;
}

static void record_open(void)
{
    const char *name = getenv("PRAIRIE_RUN_TRACE");

    record.file = name == NULL ? -1 : open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (record.file == 0) record.file = -1;
}

static void record_event(uint32_t page, size_t pages)
{
    lock_take(&record.lock);
    if (unlikely(record.file == 0)) record_open();
    if (record.file > 0) {
        record.event[record.count][0] = page;
        record.event[record.count][1] = (uint32_t)pages;
        if (++record.count == RECORD_EVENTS) record_flush();
    }
    lock_give(&record.lock);
}

/* Programs without a proper end lose the last events. */
__attribute__((destructor)) static void record_end(void)
{
    lock_take(&record.lock);
    if (record.file > 0) record_flush();
    lock_give(&record.lock);
}

static struct run record_lease_for(size_t pages, size_t align_pages, uintptr_t purpose)
{
    struct run run = run_lease_for(pages, align_pages, purpose);

    if (run.page != 0) record_event(run.page, pages);
    return run;
}

static void record_return(uint32_t page)
{
    record_event(page, 0);
    run_return(page);
}

static void record_return_clean(uint32_t page)
{
    record_event(page, 0);
    run_return_clean(page);
}

/* Under the page heap's lock, which none is taken under here. */
static void record_return_emptied(uint32_t page)
{
    record_event(page, 0);
    run_return_emptied(page);
}

static unsigned record_lease_batch(struct page_heap *heap, size_t pages, unsigned wanted,
                                   uint32_t *leased)
{
    unsigned count = run_lease_batch(heap, pages, wanted, leased);

    for (unsigned i = 0; i < count; i++) record_event(leased[i], pages);
    return count;
}

static void record_return_batch(const uint32_t *pages, unsigned count)
{
    for (unsigned i = 0; i < count; i++) record_event(pages[i], 0);
    run_return_batch(pages, count);
}

static enum extended record_extend(struct page_heap *heap, uint32_t page, size_t pages)
{
    enum extended extended = run_extend(heap, page, pages);

    if (extended != EXTENDED_NOT) record_event(page, pages);
    return extended;
}

static void record_trim(struct page_heap *heap, uint32_t page, size_t pages)
{
    record_event(page, pages);
    run_trim(heap, page, pages);
}

/* The page heap's own is inline, and would ask past the recorder. */
static bool record_resize(struct page_heap *heap, uint32_t page, size_t pages)
{
    if (pages > page_record(page)->run_pages) return record_extend(heap, page, pages);
    record_trim(heap, page, pages);
    return true;
}

/* What comes after this in the unity file asks the recorder. Runs of extents with hooks
 * (run_return_remapped) are not recorded: arenas with hooks are not measured here. */
#define run_lease_for record_lease_for
#define run_lease(pages, align_pages, state) \
    record_lease_for(pages, align_pages, purpose_of(page_heap, state))
#define run_return record_return
#define run_return_clean record_return_clean
#define run_return_emptied record_return_emptied
#define run_lease_batch record_lease_batch
#define run_return_batch record_return_batch
#define run_extend record_extend
#define run_trim record_trim
#define run_resize record_resize

#endif
