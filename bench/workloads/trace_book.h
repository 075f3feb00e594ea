/* trace_book.h - which slots of a trace are free, and who stored what in them: for writers.
 * SPDX-License-Identifier: MIT
 *
 * One caller at a time. A freed slot goes on the list of the thread that freed it. */
#ifndef PRAIRIE_BENCH_TRACE_BOOK_H
#define PRAIRIE_BENCH_TRACE_BOOK_H

#include "trace.h"

#include <sys/mman.h>

struct trace_slot {
    uint32_t generation; /* how many blocks were stored in it */
    uint32_t thread;     /* that stored the present one */
    uint32_t next_free;  /* slot + 1, 0 at the end */
};

struct trace_book {
    struct trace_slot *slot; /* TRACE_SLOTS_MAX of them, touched as they are used */
    uint32_t *free_first;    /* by thread: slot + 1, 0 when there is none */
    uint32_t used;           /* slots that were ever given */
    uint64_t events;         /* of all threads */
};

static inline void *trace_reserve(size_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

static inline bool trace_book_open(struct trace_book *book)
{
    book->slot = (struct trace_slot *)trace_reserve(TRACE_SLOTS_MAX * sizeof *book->slot);
    book->free_first = (uint32_t *)trace_reserve(TRACE_THREADS_MAX * sizeof *book->free_first);
    book->used = 0;
    book->events = 0;
    return book->slot != NULL && book->free_first != NULL;
}

/* UINT32_MAX: there is no slot left. */
static inline uint32_t trace_book_take(struct trace_book *book, uint32_t thread)
{
    uint32_t first = book->free_first[thread];
    if (first == 0) return book->used < TRACE_SLOTS_MAX ? book->used++ : UINT32_MAX;
    book->free_first[thread] = book->slot[first - 1].next_free;
    return first - 1;
}

/* After each allocation or realloc into the slot. */
static inline void trace_book_store(struct trace_book *book, uint32_t slot, uint32_t thread)
{
    book->slot[slot].generation++;
    book->slot[slot].thread = thread;
}

static inline void trace_book_give(struct trace_book *book, uint32_t slot, uint32_t thread)
{
    book->slot[slot].next_free = book->free_first[thread];
    book->free_first[thread] = slot + 1;
}

/* Counts an event, and writes the clock before it when that ticked since the thread's last one. */
static inline bool trace_tick(struct trace_book *book, struct trace_writer *writer)
{
    uint64_t clock = book->events++ / TRACE_TICK;
    if (clock == writer->clock) return true;
    writer->clock = clock;
    return trace_put(writer, TRACE_CLOCK, clock, 0, 0);
}

static inline bool trace_put_new(struct trace_book *book, struct trace_writer *writer,
                                 enum trace_event event, uint32_t slot, uint64_t size,
                                 unsigned log2)
{
    bool ticked = trace_tick(book, writer);
    trace_book_store(book, slot, writer->head.thread);
    return trace_put(writer, event, slot, size, log2) && ticked;
}

static inline bool trace_put_realloc(struct trace_book *book, struct trace_writer *writer,
                                     uint32_t slot, uint64_t size)
{
    struct trace_slot *entry = &book->slot[slot];
    bool ticked = trace_tick(book, writer);
    bool put = entry->thread == writer->head.thread
                 ? trace_put(writer, TRACE_REALLOC, slot, size, 0)
                 : trace_put(writer, TRACE_REALLOC_OTHER, slot, entry->generation, size);
    trace_book_store(book, slot, writer->head.thread);
    return put && ticked;
}

static inline bool trace_put_free(struct trace_book *book, struct trace_writer *writer,
                                  uint32_t slot)
{
    struct trace_slot *entry = &book->slot[slot];
    bool ticked = trace_tick(book, writer);
    bool put = entry->thread == writer->head.thread
                 ? trace_put(writer, TRACE_FREE, slot, 0, 0)
                 : trace_put(writer, TRACE_FREE_OTHER, slot, entry->generation, 0);
    trace_book_give(book, slot, writer->head.thread);
    return put && ticked;
}

#endif
