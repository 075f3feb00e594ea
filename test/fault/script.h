/* script.h - blocks whose contents are known, and the steps of a scripted life. */
/* SPDX-License-Identifier: MIT */
/*
 * For programs that make a kernel refuse calls. Such a program says
 *
 *      step_begins     what comes before each step
 *      calls_refused   how many calls were refused so far
 *
 * After a step in which a call was refused the contents of all blocks are verified, and everything
 * is walked. A request may be refused with ENOMEM, and only after a call was.
 */
#ifndef PRAIRIE_TEST_FAULT_SCRIPT_H
#define PRAIRIE_TEST_FAULT_SCRIPT_H

#include <prairie/prairie.h>

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { SLOTS = 4096, ENDS_BYTES = 4096, WHOLE_BYTES = 8192, STRIDE = 65536, PLACES = 128 };

/* A block as the program knows it. */
struct slot {
    unsigned char *base;
    size_t bytes, align; /* align: what was asked for; 0 through the doors without */
    unsigned char stamp;
};

static struct slot slots[SLOTS];
static unsigned slots_used; /* the highest that ever had a block, and one */
static unsigned steps_taken, refusals;
static uint64_t refused_seen;
static uint64_t walks;               /* atomic */
static bool refusals_need_no_reason; /* a limit of the program's own may be met */

static void step_begins(void);
static uint64_t calls_refused(void);

static _Noreturn void complain(const char *what, size_t number)
{
    fprintf(stderr, "step %u: %s (%zu)\n", steps_taken, what, number);
    _exit(1);
}

/* ---- contents ---- */

/* Small blocks whole; of large ones both ends and a byte in each 64 KiB, of the largest some. */
static size_t next_place(size_t at, size_t bytes)
{
    size_t stride = STRIDE;

    if (bytes <= WHOLE_BYTES || at < ENDS_BYTES || at + 1 >= bytes - ENDS_BYTES) return at + 1;
    if (bytes / stride > PLACES) stride = bytes / 16;
    while ((stride & (stride - 1)) != 0) stride &= stride - 1;
    at = (at | (stride - 1)) + 1;
    return at < bytes - ENDS_BYTES ? at : bytes - ENDS_BYTES;
}

static unsigned char content(const struct slot *slot, size_t at)
{
    return (unsigned char)(slot->stamp + at / 4096 + at);
}

static void write_contents(const struct slot *slot)
{
    for (size_t at = 0; at < slot->bytes; at = next_place(at, slot->bytes))
        slot->base[at] = content(slot, at);
}

/* Of what was written, the first bytes. */
static void check_contents(const struct slot *slot, size_t bytes, const char *complaint)
{
    for (size_t at = 0; at < bytes && at < slot->bytes; at = next_place(at, slot->bytes))
        if (slot->base[at] != content(slot, at)) complain(complaint, at);
}

static void check_zeros(const unsigned char *base, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += at < 16384 ? 1 : at < 1 << 20 ? 1984 : 65344)
        if (base[at] != 0) complain("calloc gave a byte that is not zero", at);
}

static void walk(void)
{
    prairie_check_all();
    (void)__atomic_add_fetch(&walks, 1, __ATOMIC_RELAXED);
}

static void check_everything(void)
{
    for (unsigned i = 0; i < slots_used; i++)
        if (slots[i].base != NULL)
            check_contents(&slots[i], slots[i].bytes, "a block's contents changed");
    walk();
}

/* ---- steps ---- */

static void begin_step(void)
{
    steps_taken++;
    step_begins();
    errno = 0;
}

static void end_step(void)
{
    if (calls_refused() == refused_seen) return;
    refused_seen = calls_refused();
    check_everything();
}

static void note_refusal(void)
{
    if (errno != ENOMEM) complain("a refusal set errno to something else", (size_t)errno);
    if (refusals_need_no_reason) return;
    refusals++;
    if (calls_refused() == 0) complain("memory was refused although no call failed", 0);
}

static void keep(unsigned index, void *base, size_t align, size_t bytes)
{
    static unsigned char stamp;

    if (base == NULL) {
        note_refusal();
    } else {
        if (prairie_usable_size(base) < bytes) complain("a block is too small", bytes);
        if (align != 0 && ((uintptr_t)base & (align - 1)) != 0)
            complain("a block is not aligned", align);
        slots[index] = (struct slot){ base, bytes, align, ++stamp };
        if (index >= slots_used) slots_used = index + 1;
        write_contents(&slots[index]);
    }
    end_step();
}

static void take(unsigned index, size_t bytes)
{
    begin_step();
    keep(index, prairie_malloc(bytes), 0, bytes);
}

static void take_zeroed(unsigned index, size_t bytes)
{
    void *base;

    begin_step();
    base = prairie_calloc(bytes, 1);
    if (base != NULL) check_zeros(base, bytes);
    keep(index, base, 0, bytes);
}

static void take_on_boundary(unsigned index, size_t align, size_t bytes)
{
    void *base = NULL;

    begin_step();
    if (index % 2 == 0) base = prairie_aligned_alloc(align, bytes);
    else if (prairie_posix_memalign(&base, align, bytes) == ENOMEM) errno = ENOMEM;
    keep(index, base, align, bytes);
}

static void resize(unsigned index, size_t bytes)
{
    struct slot *slot = &slots[index];
    void *base;

    begin_step();
    base = prairie_realloc(slot->base, bytes);
    if (base == NULL) {
        note_refusal();
        end_step();
        return;
    }
    slot->base = base;
    check_contents(slot, bytes, "realloc lost a byte");
    keep(index, base, 0, bytes);
}

static void give(unsigned index)
{
    struct slot *slot = &slots[index];

    begin_step();
    if (slot->base != NULL) check_contents(slot, slot->bytes, "a block's contents changed");
    errno = 4711;
    if (index % 3 == 0 || slot->base == NULL) prairie_free(slot->base);
    else if (slot->align == 0) prairie_free_sized(slot->base, slot->bytes);
    else prairie_free_aligned_sized(slot->base, slot->align, slot->bytes);
    if (errno != 4711) complain("free changed errno", (size_t)errno);
    slot->base = NULL;
    end_step();
}

static void give_all(void)
{
    for (unsigned i = 0; i < slots_used; i++)
        if (slots[i].base != NULL) give(i);
}

static void give_to_the_kernel(void)
{
    begin_step();
    (void)prairie_purge();
    end_step();
}

/* ---- stretches of a life ---- */

static const size_t script_sizes[] = {
    0,     1,     8,      9,      16,      48,      100,     128,      200,      500,   1000,
    1024,  1025,  2000,   4000,   4096,    6000,    8192,    10000,    14336,    14337, 16384,
    20000, 65536, 100000, 300000, 1 << 20, 3 << 20, 5000000, 16 << 20, 64 << 20,
};

enum { SIZES = sizeof script_sizes / sizeof *script_sizes };

static void live_through_all_doors(unsigned first)
{
    for (unsigned i = 0; i < SIZES; i++) take(first + i, script_sizes[i]);
    for (unsigned i = 0; i < SIZES; i++) take_zeroed(first + SIZES + i, script_sizes[i]);
    for (unsigned i = 0; i < SIZES; i++)
        take_on_boundary(first + 2 * SIZES + i, (size_t)16 << (i % 17), script_sizes[i] / 2);
    for (unsigned i = 0; i < 3 * SIZES; i += 2) give(first + i);
}

static void live_by_resizing(unsigned first, size_t most)
{
    for (unsigned i = 0; i < 3; i++) take(first + i, 50 + i);
    for (size_t bytes = 100; bytes < most; bytes *= 2)
        for (unsigned i = 0; i < 3; i++) resize(first + i, bytes + i * 5000);
    for (size_t bytes = most; bytes > 10; bytes = bytes * 2 / 5)
        for (unsigned i = 0; i < 3; i++) resize(first + i, bytes + i * 10);
    for (unsigned i = 0; i < 3; i++) give(first + i);
}

#endif
