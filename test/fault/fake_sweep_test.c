/* fake_sweep_test.c - one scripted life, with the n-th call of the fake kernel refused, for each n.
 * SPDX-License-Identifier: MIT
 *
 * The script is the same each time: every kind of size from 0 to 64 MiB through every door, bursts
 * that make magazines grow, blocks that grow and shrink by realloc, purges in between. So n names
 * one call, and the sweep ends when a life meets no failure.
 *
 * After a refused call the contents of all blocks are verified and everything is walked; a refused
 * call may cost one refused request at most; at the end all is given back and nothing is left. */
#include <prairie/prairie.h>

#include "page_heap/page_heap.h"
#include "sweep.h"

#include <errno.h>

/* A request tries several ways, and all of them twice: so many refusals in a row are more than some
 * can bear. More of them at the very start would leave a region too small for the largest
 * requests. */
enum { ROW_REFUSES = 6 };
enum { SLOTS = 4096, CALLS_LEAST = 25, STEPS_LEAST = 500 };

/* A block as the program knows it. */
struct slot {
    unsigned char *base;
    size_t bytes, align; /* align: what was asked for; 0 through the doors without */
    unsigned char stamp;
};

static struct slot slots[SLOTS];
static unsigned step_count, step_of_failure, refusals;
static uint64_t failures_seen;

static _Noreturn void complain(const char *what, size_t number)
{
    fprintf(stderr, "step %u: %s (%zu)\n", step_count, what, number);
    _exit(1);
}

/* ---- contents ---- */

/* Small blocks whole; of large ones both ends and a word in each 64 KiB. */
static size_t next_place(size_t at, size_t bytes)
{
    if (bytes <= 8192 || at < 4096 || at + 1 >= bytes - 4096) return at + 1;
    at = (at | 65535) + 1;
    return at < bytes - 4096 ? at : bytes - 4096;
}

static void write_contents(const struct slot *slot)
{
    for (size_t at = 0; at < slot->bytes; at = next_place(at, slot->bytes))
        slot->base[at] = (unsigned char)(slot->stamp + at / 4096 + at);
}

static void check_contents(const struct slot *slot, size_t bytes)
{
    for (size_t at = 0; at < bytes; at = next_place(at, slot->bytes))
        if (slot->base[at] != (unsigned char)(slot->stamp + at / 4096 + at))
            complain("a block's contents changed", at);
}

static void check_zeros(const unsigned char *base, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += at < 65536 ? 1 : 20992)
        if (base[at] != 0) complain("calloc gave a byte that is not zero", at);
}

static void check_everything(void)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (slots[i].base != NULL) check_contents(&slots[i], slots[i].bytes);
    prairie_check_all();
}

/* ---- the steps of a life ---- */

/* Before step `step_of_failure` all is well; from it on every call fails, for ten steps. */
static void begin_step(void)
{
    step_count++;
    if (step_of_failure == 0) return;
    if (step_count == step_of_failure) fake_fail_all(true);
    if (step_count == step_of_failure + 10) fake_fail_all(false);
}

static void end_step(void)
{
    if (fake_failures() == failures_seen) return;
    failures_seen = fake_failures();
    check_everything();
}

static void note_refusal(void)
{
    refusals++;
    if (errno != ENOMEM) complain("a refusal set errno to something else", (size_t)errno);
    if (fake_failures() == 0) complain("memory was refused although no call failed", 0);
}

static void keep(unsigned index, void *base, size_t align, size_t bytes)
{
    static unsigned char stamp;

    if (base == NULL) {
        note_refusal();
    } else {
        if (prairie_usable_size(base) < bytes) complain("a block is too small", bytes);
        slots[index] = (struct slot){ base, bytes, align, ++stamp };
        write_contents(&slots[index]);
    }
    end_step();
}

static void take(unsigned index, size_t bytes)
{
    begin_step();
    errno = 0;
    keep(index, prairie_malloc(bytes), 0, bytes);
}

static void take_zeroed(unsigned index, size_t bytes)
{
    void *base;

    begin_step();
    errno = 0;
    base = prairie_calloc(bytes, 1);
    if (base != NULL) check_zeros(base, bytes);
    keep(index, base, 0, bytes);
}

static void take_on_boundary(unsigned index, size_t align, size_t bytes)
{
    void *base = NULL;

    begin_step();
    errno = 0;
    if (index % 2 == 0) base = prairie_aligned_alloc(align, bytes);
    else if (prairie_posix_memalign(&base, align, bytes) == ENOMEM) errno = ENOMEM;
    if (((uintptr_t)base & (align - 1)) != 0) complain("a block is not aligned", align);
    keep(index, base, align, bytes);
}

static void resize(unsigned index, size_t bytes)
{
    struct slot *slot = &slots[index];
    void *base;

    begin_step();
    errno = 0;
    base = prairie_realloc(slot->base, bytes);
    if (base == NULL) {
        note_refusal();
        end_step();
        return;
    }
    /* What is compared lies in both sizes' places: the front of the block. */
    slot->base = base;
    for (size_t at = 0; at < bytes && at < slot->bytes && at < 4096; at++)
        if (slot->base[at] != (unsigned char)(slot->stamp + at / 4096 + at))
            complain("realloc lost a byte", at);
    keep(index, base, 0, bytes);
}

static void give(unsigned index)
{
    struct slot *slot = &slots[index];

    begin_step();
    if (slot->base != NULL) check_contents(slot, slot->bytes);
    errno = 4711;
    if (index % 3 == 0 || slot->base == NULL) prairie_free(slot->base);
    else if (slot->align == 0) prairie_free_sized(slot->base, slot->bytes);
    else prairie_free_aligned_sized(slot->base, slot->align, slot->bytes);
    if (errno != 4711) complain("free changed errno", (size_t)errno);
    slot->base = NULL;
    end_step();
}

static void give_to_the_kernel(void)
{
    begin_step();
    (void)prairie_purge();
    end_step();
}

/* ---- the script ---- */

static const size_t sizes[] = {
    0,     1,     8,      9,      16,      48,      100,     128,      200,      500,   1000,
    1024,  1025,  2000,   4000,   4096,    6000,    8192,    10000,    14336,    14337, 16384,
    20000, 65536, 100000, 300000, 1 << 20, 3 << 20, 5000000, 16 << 20, 64 << 20,
};

enum { SIZES = ARRAY_COUNT(sizes) };

static void live_through_all_doors(unsigned first)
{
    for (unsigned i = 0; i < SIZES; i++) take(first + i, sizes[i]);
    for (unsigned i = 0; i < SIZES; i++) take_zeroed(first + SIZES + i, sizes[i]);
    for (unsigned i = 0; i < SIZES; i++)
        take_on_boundary(first + 2 * SIZES + i, (size_t)16 << (i % 17), sizes[i] / 2);
    for (unsigned i = 0; i < 3 * SIZES; i += 2) give(first + i);
}

static void live_through_bursts(unsigned first)
{
    static const size_t burst_sizes[] = { 16, 48, 300, 2000, 9000 };

    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < 400; i++) take(first + i, burst_sizes[(i + round) % 5]);
        for (unsigned i = 0; i < 400; i++) give(first + (i * 7) % 400);
    }
}

static void live_by_resizing(unsigned first)
{
    for (unsigned i = 0; i < 3; i++) take(first + i, 50 + i);
    for (size_t bytes = 100; bytes < 12 << 20; bytes *= 2)
        for (unsigned i = 0; i < 3; i++) resize(first + i, bytes + i * 5000);
    for (size_t bytes = 12 << 20; bytes > 10; bytes = bytes * 2 / 5)
        for (unsigned i = 0; i < 3; i++) resize(first + i, bytes + i * 10);
    for (unsigned i = 0; i < 3; i++) give(first + i);
}

static void live(void)
{
    live_through_all_doors(0);
    live_through_bursts(200);
    live_by_resizing(700);
    give_to_the_kernel();
    fake_clock_ms(5000);
    live_through_all_doors(800);
    live_through_bursts(1000);
    give_to_the_kernel();
    live_by_resizing(1500);
    for (unsigned i = 0; i < SLOTS; i++)
        if (slots[i].base != NULL) give(i);
}

/* All that a life had is back; nothing of it was lost on the way. */
static void check_nothing_left(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };

    (void)prairie_purge();
    check_everything();
    if (!prairie_stats_read(&stats)) complain("no statistics", 0);
    if (stats.allocated != 0) complain("blocks were lost", stats.allocated);
    if (page_heap_used_pages(page_heap) != 0)
        complain("pages were lost", page_heap_used_pages(page_heap));
    if (stats.dirty != 0) complain("pages stayed dirty", stats.dirty);
}

static void live_on(void)
{
    check_everything();
    check_nothing_left();
    account->refusals = refusals;
    account->steps = step_count;
    step_of_failure = 0;
    refusals = 0;
    live_through_all_doors(0);
    live_by_resizing(300);
    for (unsigned i = 0; i < SLOTS; i++)
        if (slots[i].base != NULL) give(i);
    if (refusals != 0) complain("requests are refused after the failures ended", refusals);
    check_nothing_left();
}

/* ---- the sweeps ---- */

static unsigned sweep_row(uint64_t row)
{
    struct swept swept = sweep_calls(row, UINT64_MAX, (unsigned)row);

    return swept.bad + (swept.call < CALLS_LEAST) + (row >= ROW_REFUSES && swept.refusals == 0);
}

static unsigned sweep_steps(void)
{
    unsigned bad = 0, requests = 0, steps = 1, lives = 0;

    for (unsigned step = 1; step <= steps && bad < BAD_MOST; step += 1 + step / 8, lives++) {
        step_of_failure = step;
        if (!run_life(0, 0)) {
            printf("FAILED: ten steps from %u on without any kernel\n", step);
            bad++;
            continue;
        }
        requests += account->refusals;
        steps = account->steps;
    }
    step_of_failure = 0;
    printf("ten steps without a kernel: %u lives, %u requests refused, %u bad\n", lives, requests,
           bad);
    return bad + (requests == 0) + (steps < STEPS_LEAST);
}

static unsigned sweep_all(void)
{
    unsigned bad = sweep_row(1);

    bad += sweep_row(3);
    bad += sweep_row(ROW_REFUSES);
    return bad + sweep_steps();
}
