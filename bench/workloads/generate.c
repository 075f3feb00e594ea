/* generate.c - writes made-up traces of three kinds of program, so that replay has some everywhere.
 * SPDX-License-Identifier: MIT
 *
 * requests: a server makes blocks for each request and frees them at its end; some belong to a
 * session that lives for hundreds of requests. document: a tree of many small blocks is loaded,
 * then edited at random places, with texts that grow, then closed. pipeline: a reader allocates
 * records, a worker resizes some and adds its own, a writer frees them all. */
#define _GNU_SOURCE
#include "sizes.h"
#include "trace_book.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum {
    THREADS = 3,
    REQUESTS = 6000,
    SESSIONS = 400,
    SESSION_BLOCKS = 12,
    REQUEST_BLOCKS_MAX = 60,
    DOCUMENT_BLOCKS = 120000,
    EDITS = 150000,
    RECORDS = 120000,
    RECORD_BATCH = 500
};

static struct trace_book book;
static struct trace_writer writers[THREADS];
static uint64_t random_state;

static void check(bool written)
{
    if (!written) stop("cannot write the trace: %s", strerror(errno));
}

static uint32_t make(unsigned thread, enum trace_event event, size_t bytes)
{
    uint32_t slot = trace_book_take(&book, thread);
    check(trace_put_new(&book, &writers[thread], event, slot, bytes, 0));
    return slot;
}

static uint32_t make_one(unsigned thread)
{
    enum trace_event event = random_below(&random_state, 8) == 0 ? TRACE_CALLOC : TRACE_MALLOC;
    return make(thread, event, size_program(&random_state));
}

static void resize(unsigned thread, uint32_t slot, size_t bytes)
{
    check(trace_put_realloc(&book, &writers[thread], slot, bytes));
}

static void end(unsigned thread, uint32_t slot)
{
    check(trace_put_free(&book, &writers[thread], slot));
}

static void renew_session(uint32_t *session, bool had_one)
{
    for (unsigned i = 0; i < SESSION_BLOCKS; i++) {
        if (had_one) end(0, session[i]);
        session[i] = make_one(0);
    }
}

static void write_requests(void)
{
    static uint32_t session[SESSIONS][SESSION_BLOCKS];
    uint32_t block[REQUEST_BLOCKS_MAX];
    for (unsigned i = 0; i < SESSIONS; i++) renew_session(session[i], false);
    for (unsigned i = 0; i < REQUESTS; i++) {
        unsigned count = 8 + random_below(&random_state, REQUEST_BLOCKS_MAX - 8);
        uint32_t input = make(0, TRACE_MALLOC, 16384), output = make(0, TRACE_MALLOC, 256);
        for (unsigned j = 0; j < count; j++) {
            block[j] = make_one(0);
            if (j % 8 == 7) resize(0, output, 256 + j * 200);
            if (j % 3 == 2) { /* a temporary */
                uint32_t passing = make_one(0);
                end(0, passing);
            }
        }
        if (random_below(&random_state, 6) == 0)
            renew_session(session[random_below(&random_state, SESSIONS)], true);
        for (unsigned j = count; j-- > 0;) end(0, block[j]);
        end(0, input);
        end(0, output);
    }
}

static void write_document(void)
{
    static uint32_t block[DOCUMENT_BLOCKS];
    for (unsigned i = 0; i < DOCUMENT_BLOCKS; i++) {
        block[i] = make_one(0);
        if (i % 5 == 4) { /* the parser's own */
            uint32_t passing = make(0, TRACE_MALLOC, 64 + random_below(&random_state, 400));
            end(0, passing);
        }
    }
    for (unsigned i = 0; i < EDITS; i++) {
        uint32_t *edited = &block[random_below(&random_state, DOCUMENT_BLOCKS)];
        if (i % 4 == 0) {
            resize(0, *edited, size_program(&random_state) + 64);
        } else {
            end(0, *edited);
            *edited = make_one(0);
        }
    }
    for (unsigned i = 0; i < DOCUMENT_BLOCKS; i++) end(0, block[i]);
}

static void write_pipeline(void)
{
    static uint32_t record[RECORDS], added[RECORDS];
    check(trace_put(&writers[0], TRACE_START, 1, 0, 0));
    check(trace_put(&writers[0], TRACE_START, 2, 0, 0));
    for (unsigned first = 0; first < RECORDS; first += RECORD_BATCH) {
        for (unsigned i = first; i < first + RECORD_BATCH; i++) record[i] = make_one(0);
        for (unsigned i = first; i < first + RECORD_BATCH; i++) {
            added[i] = make_one(1);
            if (i % 10 == 0) resize(1, record[i], 300);
        }
        for (unsigned i = first; i < first + RECORD_BATCH; i++) {
            uint32_t line = make(2, TRACE_MALLOC, 80);
            end(2, record[i]);
            end(2, added[i]);
            end(2, line);
        }
    }
}

static struct outcome run_generate(const struct job *job)
{
    const char *kind = job->argument_count == 2 ? job->arguments[0] : "";
    void (*write_kind)(void) = strcmp(kind, "requests") == 0 ? write_requests
                             : strcmp(kind, "document") == 0 ? write_document
                             : strcmp(kind, "pipeline") == 0 ? write_pipeline
                                                             : NULL;
    if (write_kind == NULL) stop("usage: generate requests|document|pipeline FILE");
    int file = open(job->arguments[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0 || write(file, TRACE_MAGIC, TRACE_MAGIC_BYTES) != TRACE_MAGIC_BYTES)
        stop("cannot write %s: %s", job->arguments[1], strerror(errno));
    if (!trace_book_open(&book)) stop("no address space for the trace's slots");
    random_state = random_start(job->seed, 0);
    for (unsigned i = 0; i < THREADS; i++) {
        writers[i].file = file;
        writers[i].head.thread = i;
    }
    write_kind();
    for (unsigned i = 0; i < THREADS; i++) check(trace_flush(&writers[i]));
    if (close(file) != 0) check(false);
    return (struct outcome){ book.used, 1 };
}

static const struct workload workloads[] = {
    { "generate", "traces", "writes a made-up trace", "Zorn and Grunwald's synthetic allocations",
      1, NULL, run_generate, SUITE_NONE, NULL, "requests|document|pipeline FILE" },
};

const struct workload_list generate_list = { workloads, sizeof workloads / sizeof *workloads };
