/* guarded_report.c - some lines on the standard error.
 * SPDX-License-Identifier: MIT
 */
#include "guarded_report.h"

#include "../base/report.h"

enum { SAYING_MAPPINGS_MAX = 256, SAYING_PATHS_BYTES = 16 * 1024 };
enum { TURN_WAITS_MAX = 200, TURN_WAIT_MS = 5 };

/* What lies where, as of this report: too much for the stack of a signal handler. */
static struct {
    uint32_t busy; /* atomic: one report at a time */
    size_t count;
    struct os_code mapping[SAYING_MAPPINGS_MAX];
    char paths[SAYING_PATHS_BYTES];
} saying SPARSE;

const char *guarded_access_words(enum guarded_kind kind)
{
    switch (kind) {
    case GUARDED_GONE: return "prairie: use after free: ";
    case GUARDED_BEFORE: return "prairie: underflow of a block: ";
    default: return "prairie: overflow of a block: ";
    }
}

static void say_head(struct report *report, const struct guarded_deed *deed)
{
    report_text(report, deed->is_access ? "" : "prairie: ");
    report_text(report, deed->what);
    report_text(report, deed->is_access ? "" : ": ");
    report_print(report, "0x%" PRIx64 "\n", (uint64_t)(uintptr_t)deed->address);
}

static void begin_line(struct report *report) { report_text(report, "prairie:   "); }

static void say_bytes(struct report *report, size_t bytes)
{
    report_print(report, "%" PRIu64 "%s", (uint64_t)bytes, bytes == 1 ? " byte" : " bytes");
}

/* Distances are from the size that was asked for. */
static void say_where(struct report *report, const struct guarded_cell *cell, const char *address)
{
    const char *end = cell->block + cell->size;

    if (address == cell->block) {
        report_text(report, "at the start of");
    } else if (address < cell->block) {
        say_bytes(report, (size_t)(cell->block - address));
        report_text(report, " before the start of");
    } else if (address < end) {
        say_bytes(report, (size_t)(address - cell->block));
        report_text(report, " into");
    } else if (address == end) {
        report_text(report, "at the end of");
    } else {
        say_bytes(report, (size_t)(address - end));
        report_text(report, " beyond the end of");
    }
}

static void say_block(struct report *report, const struct guarded_finding *finding,
                      const struct guarded_deed *deed)
{
    const struct guarded_cell *cell = &finding->cell;

    begin_line(report);
    report_text(report, deed->how);
    report_text(report, " ");
    say_where(report, cell, deed->address);
    report_text(report, finding->kind == GUARDED_GONE ? " a freed block of " : " a block of ");
    say_bytes(report, cell->size);
    report_print(report, " at 0x%" PRIx64 "\n", (uint64_t)(uintptr_t)cell->block);
}

/* NULL: it is in no code. */
static const struct os_code *code_at(uintptr_t address)
{
    for (size_t i = 0; i < saying.count; i++)
        if (address - saying.mapping[i].start < saying.mapping[i].limit - saying.mapping[i].start)
            return &saying.mapping[i];
    return NULL;
}

/* False: that is no code, where code without frame pointers misled the walk. */
static bool say_code(struct report *report, uintptr_t address, bool is_return)
{
    const struct os_code *code = code_at(address - is_return);

    if (code == NULL && saying.count != 0 && saying.count < SAYING_MAPPINGS_MAX) return false;
    begin_line(report);
    report_print(report, "  0x%" PRIx64, (uint64_t)address);
    if (code != NULL)
        report_print(report, " %s+0x%" PRIx64, code->path[0] != '\0' ? code->path : "?",
                     (uint64_t)(address - code->start + code->offset));
    report_text(report, "\n");
    return true;
}

static void say_trace(struct report *report, const char *verb, const struct guarded_trace *trace,
                      bool first_is_return)
{
    begin_line(report);
    report_print(report, "%s by thread %" PRIu64 ":\n", verb, (uint64_t)trace->thread);
    for (uint32_t i = 0; i < trace->depth; i++)
        if (!say_code(report, trace->return_address[i], i != 0 || first_is_return)) break;
}

static void say_history(struct report *report, const struct guarded_finding *finding)
{
    const struct guarded_cell *cell = &finding->cell;

    if (!finding->is_watched) {
        begin_line(report);
        report_text(report, "if it is freed with its size: it may have been taken again since:\n");
    }
    say_trace(report, "taken", &cell->taken, true);
    if (finding->kind != GUARDED_GONE) return;
    if (cell->given.depth != 0) {
        say_trace(report, "freed", &cell->given, true);
    } else {
        begin_line(report);
        report_text(report, "freed with its size, which nobody saw\n");
    }
}

/* Who waits too long goes on: the turn may be that of a thread that was ended. */
static void begin_turn(void)
{
    for (unsigned waits = 0; waits < TURN_WAITS_MAX; waits++) {
        if (__atomic_exchange_n(&saying.busy, 1, __ATOMIC_ACQUIRE) == 0) return;
        os_pause(TURN_WAIT_MS);
    }
}

void guarded_report(const struct guarded_finding *finding, const struct guarded_deed *deed)
{
    struct report report = { .write = report_to_error };

    begin_turn();
    say_head(&report, deed);
    say_block(&report, finding, deed);
    report_flush(&report);
    saying.count =
        os_code_read(saying.mapping, SAYING_MAPPINGS_MAX, saying.paths, sizeof saying.paths);
    say_trace(&report, "done", &deed->by, !deed->is_access);
    say_history(&report, finding);
    report_flush(&report);
    __atomic_store_n(&saying.busy, 0, __ATOMIC_RELEASE);
}
