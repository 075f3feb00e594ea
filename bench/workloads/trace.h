/* trace.h - the file format of recorded allocation traces, and how it is written.
 * SPDX-License-Identifier: MIT
 *
 * A file is the eight bytes "PRTRACE1" and then chunks until its end:
 *
 *     thread 4 bytes | count 4 bytes | count bytes of events          (little-endian)
 *
 * The chunks of one thread, in file order, are what that thread did, in its order. Thread 0 is the
 * first one. Between threads nothing is ordered but what must be. An event is one byte and then
 * numbers of 7 bits per byte, lowest first, the top bit set in all but the last:
 *
 *     0 malloc         slot size            4 free           slot
 *     1 calloc         slot size            5 free-other     slot generation
 *     2 aligned        slot size log2       6 realloc-other  slot generation size
 *     3 realloc        slot size            7 start          thread
 *                                           8 clock          number
 *
 * A slot is a number for a live block; numbers are used again, but only by the thread that freed
 * the block before (so the replayer needs no order for that). The generation of a slot counts the
 * events that stored a block in it: allocations and reallocs. The two events named "other" are
 * those of a thread that did not store the slot's present block: they wait for that generation. All
 * other events depend on their own thread only. The clock ticks once in TRACE_TICK events of all
 * threads; a thread writes it before its first event after a tick. The replayer lets no thread run
 * more than a tick ahead of the last one (up to 2 * TRACE_TICK - 1 events, for a tick begins
 * anywhere), so that the heap's size stays that of the program. Blocks that are never freed are
 * left by the program. */
#ifndef PRAIRIE_BENCH_TRACE_H
#define PRAIRIE_BENCH_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#define TRACE_MAGIC "PRTRACE1"

enum {
    TRACE_MAGIC_BYTES = 8,
    TRACE_CHUNK_BYTES_MAX = 16 * 1024,
    TRACE_EVENT_BYTES_MAX = 1 + 3 * 10,
    TRACE_SLOTS_MAX = 1 << 27,
    TRACE_THREADS_MAX = 1 << 16,
    TRACE_TICK = 2048,
};

enum trace_event {
    TRACE_MALLOC,
    TRACE_CALLOC,
    TRACE_ALIGNED,
    TRACE_REALLOC,
    TRACE_FREE,
    TRACE_FREE_OTHER,
    TRACE_REALLOC_OTHER,
    TRACE_START,
    TRACE_CLOCK,
    TRACE_EVENTS, /* how many there are */
};

/* How many numbers follow the byte of an event. */
static const unsigned char trace_numbers[TRACE_EVENTS] = { 2, 2, 3, 2, 1, 2, 3, 1, 1 };

struct trace_head {
    uint32_t thread;
    uint32_t count;
};

/* The events of one thread that are not in the file yet. */
struct trace_writer {
    int file;
    uint64_t clock; /* that it wrote last */
    struct trace_head head;
    unsigned char events[TRACE_CHUNK_BYTES_MAX];
};

/* False: the file did not take it. Safe between threads as long as one at a time calls it. */
static inline bool trace_flush(struct trace_writer *writer)
{
    struct iovec parts[2] = { { &writer->head, sizeof writer->head },
                              { writer->events, writer->head.count } };
    size_t bytes = sizeof writer->head + writer->head.count;
    if (writer->head.count == 0) return true;
    writer->head.count = 0;
    struct trace_head head = { writer->head.thread, (uint32_t)(bytes - sizeof writer->head) };
    parts[0].iov_base = &head;
    return writev(writer->file, parts, 2) == (ssize_t)bytes;
}

/* Numbers beyond those that the event has are not written. */
static inline bool trace_put(struct trace_writer *writer, enum trace_event event, uint64_t first,
                             uint64_t second, uint64_t third)
{
    const uint64_t numbers[3] = { first, second, third };
    bool flushed = true;
    if (writer->head.count + TRACE_EVENT_BYTES_MAX > TRACE_CHUNK_BYTES_MAX)
        flushed = trace_flush(writer);
    writer->events[writer->head.count++] = (unsigned char)event;
    for (unsigned i = 0; i < trace_numbers[event]; i++) {
        uint64_t rest = numbers[i];
        for (; rest >= 0x80; rest >>= 7)
            writer->events[writer->head.count++] = (unsigned char)(rest | 0x80);
        writer->events[writer->head.count++] = (unsigned char)rest;
    }
    return flushed;
}

#endif
