/* runs.c - asks a page heap for many leases and returns: made up ones, or recorded ones.
 * SPDX-License-Identifier: MIT
 *
 *      runs made NAME FREE_RUNS       in steady state, while that many free runs lie about
 *      runs trace NAME FILE           the events of a program (record_runs.h)
 *
 * Contains the whole library with one of the page heaps, without its libc names, and asks that
 * page heap directly. No page is touched. Prints one JSON object; times are the processor's. */
#include RUNS_UNITY

#include "kit/count.h"
#include "../../bench/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LENGTH_MAX = 200, HELD_MAX = 1 << 16, BATCH_MAX = 256, TIMED_PAIRS = 400000 };
enum { COUNTED_PAIRS = 2048 };

static uint64_t random_state = 88172645463325252u;

/* ---- tools ---- */

static double seconds_used(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* What asking the clock twice takes. */
static double clock_cost(void)
{
    double least = 1;

    for (unsigned i = 0; i < 1000; i++) {
        double start = seconds_used(), cost = seconds_used() - start;
        if (cost < least) least = cost;
    }
    return least;
}

static NORETURN void stop(const char *why)
{
    fprintf(stderr, "runs: %s\n", why);
    exit(1);
}

static void *need(void *memory)
{
    if (memory == NULL) stop("no memory");
    return memory;
}

static uint32_t lease(size_t pages)
{
    struct run run = run_lease(pages, 1, PAGE_LARGE);

    if (run.page == 0) stop("a lease was refused");
    return run.page;
}

static void check_page_heap(void)
{
    lock_take(&page_heap->lock);
    page_heaps_check();
    lock_give(&page_heap->lock);
}

/* What the page heap keeps in mind: the tree's extents, or the page map's records of open pages. */
static size_t page_heap_bytes(void)
{
#ifdef PRAIRIE_LAB_EXTENTS_H
    return sizeof kept_runs + kept_runs.extent_count * sizeof(struct tree_run);
#else
    return sizeof page_heap->bins + (space.open_bytes >> space.page_shift) * sizeof(struct page);
#endif
}

static size_t free_run_count(void)
{
    size_t count = 0;

#ifdef PRAIRIE_LAB_EXTENTS_H
    count = count_by_size(FREE_DIRTY) + count_by_size(FREE_CLEAN);
#else
    count = run_bins_check(page_heap);
#endif
    return count;
}

/* ---- made up ---- */

/* Free runs of all lengths, with a used page between any two. */
static void make_free_runs(uint32_t count)
{
    uint32_t *kept = need(malloc(count * sizeof *kept));

    for (uint32_t i = 0; i < count; i++) {
        kept[i] = lease(random_length(random_next(&random_state), LENGTH_MAX));
        lease(1);
    }
    for (uint32_t i = 0; i < count; i++) run_return(kept[i]);
    free(kept);
}

enum verb { LEASE, RETURN, AGAIN };
static const char *const verb_name[] = { "lease", "return", "again" };

struct batch {
    uint32_t count;
    uint32_t pages[BATCH_MAX], page[BATCH_MAX];
};

static void draw_batch(struct batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++)
        batch->pages[i] = random_length(random_next(&random_state), LENGTH_MAX);
}

static NOINLINE void lease_batch(struct batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) batch->page[i] = lease(batch->pages[i]);
}

static NOINLINE void return_batch(const struct batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) run_return(batch->page[i]);
}

/* Returned, and a run of the same length leased at once: what programs mostly do. */
static NOINLINE void replace_batch(struct batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        run_return(batch->page[i]);
        batch->page[i] = lease(batch->pages[i]);
    }
}

/* In the order of a shuffled deck, so that neighbours do not come back one after the other. */
static void shuffle_batch(struct batch *batch)
{
    for (uint32_t i = batch->count; i > 1; i--) {
        uint32_t other = random_below(&random_state, i), page = batch->page[other];
        uint32_t pages = batch->pages[other];
        batch->page[other] = batch->page[i - 1];
        batch->pages[other] = batch->pages[i - 1];
        batch->page[i - 1] = page;
        batch->pages[i - 1] = pages;
    }
}

/* Batches of leases and returns, of which one verb is counted and timed. Nanoseconds a call. */
static double run_verb(enum verb verb, uint32_t free_runs, uint32_t pairs)
{
    struct batch batch = { .count = free_runs < 2 * BATCH_MAX ? free_runs / 2 : BATCH_MAX };
    double seconds = 0;
    uint32_t rounds = pairs / batch.count;

    for (uint32_t round = 0; round < rounds; round++) {
        double start;
        draw_batch(&batch);
        start = seconds_used();
        if (verb == LEASE) count_on();
        lease_batch(&batch);
        if (verb == LEASE) {
            count_off();
            seconds += seconds_used() - start;
        }
        shuffle_batch(&batch);
        if (verb == AGAIN) {
            start = seconds_used();
            count_on();
            replace_batch(&batch);
            count_off();
            seconds += seconds_used() - start;
        }
        start = seconds_used();
        if (verb == RETURN) count_on();
        return_batch(&batch);
        if (verb == RETURN) {
            count_off();
            seconds += seconds_used() - start;
        }
    }
    count_dump(verb_name[verb]);
    seconds -= rounds * clock_cost();
    return seconds * 1e9 / ((double)rounds * batch.count);
}

static void run_made(const char *name, uint32_t free_runs)
{
    uint32_t pairs = is_counted() ? COUNTED_PAIRS : TIMED_PAIRS;

    make_free_runs(free_runs);
    check_page_heap();
    printf("{\"heap\": \"%s\", \"free_runs\": %u, \"pairs\": %u", name, free_runs, pairs);
    for (enum verb verb = LEASE; verb <= AGAIN; verb++) {
        count_clear();
        (void)run_verb(verb, free_runs, pairs / 8); /* warms caches up */
        count_clear();
        printf(", \"%s\": %.2f", verb_name[verb], run_verb(verb, free_runs, pairs));
    }
    if (!is_counted()) check_page_heap();
    printf(", \"free_runs_left\": %zu, \"heap_bytes\": %zu, \"open_pages\": %zu}\n",
           free_run_count(), page_heap_bytes(), space.open_bytes >> space.page_shift);
}

/* ---- recorded ---- */

struct trace {
    uint32_t (*event)[2];
    size_t count;
    uint32_t names;         /* above the highest one */
    uint32_t *page, *pages; /* by name: what stands for it here; 0: returned */
    size_t live_pages, live_pages_max;
    uint32_t reach; /* the last page that was ever in use */
};

static struct trace read_trace(const char *name)
{
    struct trace trace = { 0 };
    FILE *file = fopen(name, "rb");

    if (file == NULL || fseek(file, 0, SEEK_END) != 0) stop("cannot read the trace");
    trace.count = (size_t)ftell(file) / sizeof *trace.event;
    trace.event = need(malloc((trace.count + 1) * sizeof *trace.event));
    rewind(file);
    if (fread(trace.event, sizeof *trace.event, trace.count, file) != trace.count)
        stop("cannot read the trace");
    (void)fclose(file);
    for (size_t i = 0; i < trace.count; i++)
        trace.names = trace.event[i][0] >= trace.names ? trace.event[i][0] + 1 : trace.names;
    trace.page = need(calloc(trace.names + 1, sizeof *trace.page));
    trace.pages = need(calloc(trace.names + 1, sizeof *trace.pages));
    return trace;
}

/* One event. A change of length is replayed as a move. Returns calls of the page heap. */
INLINE unsigned replay_event(struct trace *trace, uint32_t name, uint32_t pages)
{
    uint32_t old_page = trace->page[name];
    unsigned calls = (pages != 0) + (old_page != 0);

    trace->page[name] = pages != 0 ? lease(pages) : 0;
    if (pages != 0 && trace->page[name] + pages - 1 > trace->reach)
        trace->reach = trace->page[name] + pages - 1;
    trace->live_pages += pages;
    trace->live_pages -= trace->pages[name];
    trace->pages[name] = pages;
    if (old_page != 0) run_return(old_page);
    return calls;
}

static NOINLINE size_t replay(struct trace *trace)
{
    size_t calls = 0;

    for (size_t i = 0; i < trace->count; i++) {
        calls += replay_event(trace, trace->event[i][0], trace->event[i][1]);
        if (trace->live_pages > trace->live_pages_max) trace->live_pages_max = trace->live_pages;
    }
    return calls;
}

/* Gives back what the program left. */
static void end_replay(struct trace *trace)
{
    for (uint32_t name = 0; name < trace->names; name++)
        if (trace->page[name] != 0) (void)replay_event(trace, name, 0);
}

static void run_trace(const char *name, const char *file)
{
    struct trace trace = read_trace(file);
    double seconds = 0;
    size_t calls = 0, first_calls = 0, reach = 0, free_runs = 0, bytes = 0;

    count_clear();
    for (unsigned round = 0; round == 0 || (calls < TIMED_PAIRS && !is_counted()); round++) {
        double start = seconds_used();
        count_on();
        calls += replay(&trace);
        count_off();
        seconds += seconds_used() - start;
        if (round == 0) { /* later rounds find what the first one opened */
            check_page_heap();
            first_calls = calls;
            reach = trace.reach;
            free_runs = free_run_count();
            bytes = page_heap_bytes();
        }
        end_replay(&trace);
    }
    count_dump("trace");
    printf("{\"heap\": \"%s\", \"events\": %zu, \"calls\": %zu, \"ns\": %.2f, "
           "\"reach_pages\": %zu, \"live_pages_max\": %zu, \"free_runs\": %zu, "
           "\"heap_bytes\": %zu}\n",
           name, trace.count, first_calls, seconds * 1e9 / (double)calls, reach,
           trace.live_pages_max, free_runs, bytes);
    free(trace.event);
    free(trace.page);
    free(trace.pages);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: runs made NAME FREE_RUNS | runs trace NAME FILE\n");
        return 2;
    }
    prairie_free(prairie_malloc(1));     /* starts the library */
    run_fences_off();                    /* which trees have not */
    page_heap->trigger_pages = SIZE_MAX; /* nobody looks here at what is dirty */
    if (strcmp(argv[1], "trace") == 0) {
        run_trace(argv[2], argv[3]);
        return 0;
    }
    uint32_t free_runs = (uint32_t)strtoul(argv[3], NULL, 10);
    if (strcmp(argv[1], "made") != 0 || free_runs < 2) stop("wrong arguments");
    run_made(argv[2], free_runs);
    return 0;
}
