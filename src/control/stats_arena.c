/* stats_arena.c - one arena's statistics, as text in columns and as JSON.
 * SPDX-License-Identifier: MIT
 */
#include "stats_print.h"

/* ---- JSON ---- */

void stats_value(struct report *report, unsigned type, union control_value value)
{
    switch (type) {
    case CONTROL_BOOL: report_text(report, value.flag ? "true" : "false"); return;
    case CONTROL_TEXT: report_quoted(report, value.text); return;
    case CONTROL_SSIZE: report_signed(report, value.ssize); return;
    case CONTROL_I64: report_signed(report, (int64_t)value.u64); return;
    case CONTROL_UNSIGNED: report_number(report, value.number); return;
    case CONTROL_SIZE: report_number(report, value.size); return;
    default: report_number(report, value.u64); return;
    }
}

static enum figure_scope scope_of_row(unsigned row)
{
    return (enum figure_scope)(control_figures.rows[row].leaf >> PLACE_BITS);
}

/* What JSON shows of a scope stands together in the table. */
static unsigned first_row(enum figure_scope first, enum figure_scope last)
{
    unsigned row = 0;

    while (scope_of_row(row) < first || scope_of_row(row) > last) row++;
    return row;
}

static void members_from(struct report *report, const struct figures *figures, unsigned first_row,
                         enum figure_scope first, enum figure_scope last)
{
    for (unsigned i = first_row; i < control_figures.count; i++) {
        const struct control_row *row = &control_figures.rows[i];

        if (scope_of_row(i) < first || scope_of_row(i) > last) return;
        if ((row->rights & CONTROL_JSON) == 0) continue;
        report_key(report, __builtin_strrchr(row->name, '.') + 1);
        stats_value(report, row->type, figure_value(figures, row));
    }
}

void stats_members(struct report *report, const struct figures *figures, enum figure_scope first,
                   enum figure_scope last)
{
    members_from(report, figures, first_row(first, last), first, last);
}

static void print_object(struct report *report, const struct figures *figures, const char *key,
                         enum figure_scope scope)
{
    report_open(report, key, '{');
    stats_members(report, figures, scope, scope);
    report_close(report, '}');
}

void stats_array(struct report *report, struct figures *figures, const char *key,
                 enum figure_scope scope, unsigned end, bool with_lock)
{
    unsigned start = first_row(scope, scope);

    report_open(report, key, '[');
    for (unsigned i = 0; i < end; i++) {
        figures_at(figures, scope, i);
        report_open(report, NULL, '{');
        members_from(report, figures, start, scope, scope);
        if (with_lock) print_object(report, figures, "mutex", OF_LOCK);
        report_close(report, '}');
    }
    report_close(report, ']');
}

/* ---- tables of text ---- */

/* A number against the right side of its column, and how many that are per second. */
struct column {
    char title[22];
    uint8_t columns, rate_columns;
    uint16_t place;
};
#define COLUMNS(columns) columns, ARRAY_COUNT(columns)
enum { SHARE = 255 }; /* for rate_columns: thousandths, as a fraction */

static const struct column lock_columns[] = {
    { "n_lock_ops", 16, 8, LOCK_AT(taken) },        { "n_waiting", 16, 8, LOCK_AT(waits) },
    { "n_spin_acq", 16, 8, LOCK_AT(spins) },        { "n_owner_switch", 16, 8, NOWHERE },
    { "total_wait_ns", 16, 10, LOCK_AT(wait_ns) },  { "max_wait_ns", 16, 0, LOCK_AT(wait_ns_max) },
    { "max_n_thds", 12, 0, LOCK_AT(sleepers_max) },
};
static const struct column flow_columns[] = {
    { "allocated", 15, 0, FLOW_AT(allocated) }, { "nmalloc", 16, 10, FLOW_AT(taken) },
    { "ndalloc", 16, 10, FLOW_AT(given) },      { "nrequests", 16, 10, FLOW_AT(requests) },
    { "nfill", 16, 10, FLOW_AT(fills) },        { "nflush", 16, 10, FLOW_AT(drains) },
};
static const struct column bin_columns[] = {
    { "bins:           size", 20, 0, SHAPE_AT(bytes) },
    { "ind", 4, 0, SHAPE_AT(index) },
    { "allocated", 14, 0, SHAPE_AT(allocated) },
    { "nmalloc", 14, 8, CLASS_AT(taken) },
    { "ndalloc", 14, 8, CLASS_AT(given) },
    { "nrequests", 15, 10, NOWHERE },
    { "nshards", 9, 0, SHAPE_AT(shards) },
    { "curregs", 13, 0, CLASS_AT(blocks) },
    { "curslabs", 13, 0, CLASS_AT(slabs) },
    { "nonfull_slabs", 15, 0, CLASS_AT(slabs_not_full) },
    { "regs", 5, 0, SHAPE_AT(blocks) },
    { "pgs", 4, 0, SHAPE_AT(slab_pages) },
    { "util", 7, SHARE, SHAPE_AT(used_thousandths) },
    { "nfills", 13, 8, CLASS_AT(fills) },
    { "nflushes", 13, 8, CLASS_AT(drains) },
    { "nslabs", 13, 0, CLASS_AT(slabs_opened) },
    { "nreslabs", 13, 8, NOWHERE },
};
static const struct column large_columns[] = {
    { "large:          size", 20, 0, LARGE_STEP_AT(bytes) },
    { "ind", 4, 0, LARGE_STEP_AT(index) },
    { "allocated", 14, 0, LARGE_STEP_AT(large_bytes) },
    { "curlextents", 15, 0, LARGE_STEP_AT(large) },
};
static const struct column extent_columns[] = {
    { "extents:        size", 20, 0, STEP_AT(bytes) },
    { "ind", 4, 0, STEP_AT(index) },
    { "ndirty", 13, 0, STEP_AT(dirty) },
    { "dirty", 13, 0, STEP_AT(dirty_bytes) },
    { "nmuzzy", 13, 0, NOWHERE },
    { "muzzy", 13, 0, NOWHERE },
    { "nretained", 13, 0, STEP_AT(clean) },
    { "retained", 13, 0, STEP_AT(clean_bytes) },
    { "ntotal", 13, 0, STEP_AT(free) },
    { "total", 13, 0, STEP_AT(free_bytes) },
};
static const struct column decay_columns[] = {
    { "npages", 13, 0, ARENA_AT(dirty_pages) },
    { "sweeps", 13, 0, ARENA_AT(purges) },
    { "madvises", 13, 0, ARENA_AT(purges) },
    { "purged", 13, 0, ARENA_AT(purged_pages) },
};

static void print_titles(struct report *report, const struct column *columns, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        bool has_rate = columns[i].rate_columns != 0 && columns[i].rate_columns != SHARE;

        report_print(report, "%*s", columns[i].columns, columns[i].title);
        if (has_rate) report_print(report, "%*s", columns[i].rate_columns, "(#/sec)");
    }
}

/* As 1, or 0.123. */
static void print_share(struct report *report, uint64_t thousandths)
{
    const char *zeros = thousandths < 10 ? "00" : thousandths < 100 ? "0" : "";

    if (thousandths >= 1000) report_text(report, "      1");
    else report_print(report, "  0.%s%" PRIu64, zeros, thousandths);
}

/* Rates are 0 in the first second. */
static void print_cells(struct report *report, const struct figures *figures,
                        const struct column *columns, unsigned count)
{
    uint64_t seconds = figure(figures, PROCESS_AT(uptime_seconds));

    for (unsigned i = 0; i < count; i++) {
        uint64_t number = figure(figures, columns[i].place);

        if (columns[i].rate_columns == SHARE) {
            print_share(report, number);
            continue;
        }
        report_print(report, "%*" PRIu64, columns[i].columns, number);
        if (columns[i].rate_columns != 0)
            report_print(report, "%*" PRIu64, columns[i].rate_columns,
                         seconds == 0 ? 0 : number / seconds);
    }
}

/* A line: `before`, then cells, or titles where `figures` is NULL. */
static void print_row_of(struct report *report, const struct figures *figures, const char *before,
                         int width, const struct column *columns, unsigned count)
{
    report_print(report, "%*s", width, before);
    if (figures != NULL) print_cells(report, figures, columns, count);
    else print_titles(report, columns, count);
    report_text(report, "\n");
}

/* An array of JSON, or a table: a line for each index below `end` but those where the number at
 * `used` is 0, and one for each gap of such. */
struct list {
    char letter; /* that leaves it out */
    const char *key;
    const struct column *columns;
    unsigned column_count;
    enum figure_scope scope;
    unsigned end, used;
};

static void print_list(struct report *report, struct figures *figures, const struct list *list,
                       bool with_lock)
{
    bool in_gap = false;

    print_titles(report, list->columns, list->column_count);
    if (with_lock) print_titles(report, COLUMNS(lock_columns));
    report_text(report, "\n");
    for (unsigned i = 0; i < list->end; i++) {
        bool unused;

        figures_at(figures, list->scope, i);
        unused = figure(figures, list->used) == 0;
        if (in_gap && !unused) report_text(report, "                     ---\n");
        in_gap = unused;
        if (unused) continue;
        print_cells(report, figures, list->columns, list->column_count);
        if (with_lock) print_cells(report, figures, COLUMNS(lock_columns));
        report_text(report, "\n");
    }
    if (in_gap) report_text(report, "                     ---\n");
}

/* ---- locks ---- */

void stats_print_locks(struct report *report, struct figures *figures,
                       const struct stats_lock *locks, unsigned count)
{
    if (report->json) report_open(report, "mutexes", '{');
    else print_row_of(report, NULL, "", -21, COLUMNS(lock_columns));
    for (unsigned i = 0; i < count; i++) {
        figures->of[OF_LOCK] = figure_at(figures, locks[i].place);
        if (report->json) print_object(report, figures, locks[i].name, OF_LOCK);
        else print_row_of(report, figures, locks[i].name, -21, COLUMNS(lock_columns));
    }
    if (report->json) report_close(report, '}');
}

static const struct stats_lock arena_locks[] = {
    { "large", NOWHERE },
    { "extent_avail", NOWHERE },
    { "extents_dirty", ARENA_AT(locks[ARENA_LOCK_RUNS]) },
    { "extents_muzzy", NOWHERE },
    { "extents_retained", NOWHERE },
    { "decay_dirty", NOWHERE },
    { "decay_muzzy", NOWHERE },
    { "base", ARENA_AT(locks[ARENA_LOCK_META]) },
    { "tcache_list", ARENA_AT(locks[ARENA_LOCK_THREADS]) },
    { "hpa_shard", NOWHERE },
    { "hpa_shard_grow", NOWHERE },
    { "hpa_sec", NOWHERE },
};

/* ---- the arena ---- */

static void print_name(struct report *report, unsigned index)
{
    char name[CONTROL_ARENA_NAME_BYTES];

    lock_take(&control_lock);
    control_arena_name(index, name);
    lock_give(&control_lock);
    if (report->json) report_key(report, "name");
    else report_text(report, "name: ");
    report_quoted(report, name);
    if (!report->json) report_text(report, "\n");
}

static void print_heading(struct report *report, unsigned index)
{
    bool merged = index == CONTROL_ARENAS_ALL, is_sum = index >= CONTROL_ARENAS_ALL;
    char digits[REPORT_DIGITS];
    const char *number = report_digits(index, digits);

    if (report->json) {
        report_open(report, merged ? "merged" : is_sum ? "destroyed" : number, '{');
    } else if (is_sum) {
        report_print(report, "%s arenas stats:\n", merged ? "Merged" : "Destroyed");
    } else {
        report_print(report, "arenas[%s]:\n", number);
    }
}

static void print_line(struct report *report, const char *key, uint64_t number)
{
    report_print(report, "%s:%*" PRIu64 "\n", key, 36 - (int)__builtin_strlen(key), number);
}

static void print_decay(struct report *report, const struct figures *figures, const char *name,
                        int64_t decay_ms)
{
    char digits[REPORT_DIGITS];

    report_text(report, name);
    print_row_of(report, figures, decay_ms < 0 ? "N/A" : report_digits((uint64_t)decay_ms, digits),
                 6, COLUMNS(decay_columns));
}

static void print_flow(struct report *report, struct figures *figures, const char *name,
                       const struct snapshot_flow *flow)
{
    figures->of[OF_FLOW] = flow;
    print_row_of(report, figures, name, -22, COLUMNS(flow_columns));
}

static void print_as_text(struct report *report, struct figures *figures,
                          const struct snapshot_arena *arena)
{
    static const struct figures unset; /* nothing is muzzy */

    report_print(report,
                 "assigned threads: %" PRIu64 "\nuptime: %" PRIu64 "\ndss allocation precedence: ",
                 arena->threads, figures->settings.uptime_ns);
    report_quoted(report, (const char *)(uintptr_t)figures->settings.dss);
    report_text(report, "\n");
    print_row_of(report, NULL, "decaying:  time", 0, COLUMNS(decay_columns));
    print_decay(report, figures, "   dirty:", figures->settings.dirty_decay_ms);
    print_decay(report, &unset, "   muzzy:", figures->settings.muzzy_decay_ms);
    print_row_of(report, NULL, "", -22, COLUMNS(flow_columns));
    print_flow(report, figures, "small:", &arena->small);
    print_flow(report, figures, "large:", &arena->large);
    print_flow(report, figures, "total:", &arena->all);
    report_text(report, "\n");
    print_line(report, "active", arena->active);
    for (unsigned i = first_row(OF_PAGES, OF_PAGES); scope_of_row(i) == OF_PAGES; i++) {
        const struct control_row *row = &control_figures.rows[i];
        print_line(report, __builtin_strrchr(row->name, '.') + 1, figure(figures, row->leaf));
    }
}

static void print_as_json(struct report *report, const struct figures *figures)
{
    stats_members(report, figures, OF_SETTINGS, OF_ARENA);
    print_object(report, figures, "small", OF_SMALL);
    print_object(report, figures, "large", OF_LARGE);
    stats_members(report, figures, OF_PAGES, OF_PAGES);
}

void stats_print_arena(struct report *report, const char *letters, struct figures *figures,
                       unsigned index)
{
    const struct snapshot_arena *arena = figures->of[OF_ARENA];
    bool with_lock = stats_wanted(letters, 'x');
    const struct list lists[] = {
        { 'b', "bins", COLUMNS(bin_columns), OF_CLASS, BIN_CLASS_COUNT, CLASS_AT(taken) },
        { 'l', "lextents", COLUMNS(large_columns), OF_LARGE_STEP, lextent_count(),
          LARGE_STEP_AT(large) },
        { 'e', "extents", COLUMNS(extent_columns), OF_STEP, step_count(), STEP_AT(free) },
    };

    print_heading(report, index);
    if (index < CONTROL_ARENAS_ALL) print_name(report, index);
    if (report->json) print_as_json(report, figures);
    else print_as_text(report, figures, arena);
    if (with_lock) stats_print_locks(report, figures, arena_locks, ARRAY_COUNT(arena_locks));
    figures->of[OF_LOCK] = &arena->locks[ARENA_LOCK_OWN];
    for (unsigned i = 0; i < ARRAY_COUNT(lists); i++) {
        const struct list *list = &lists[i];
        bool each_with_lock = with_lock && list->scope == OF_CLASS;

        if (!stats_wanted(letters, list->letter)) continue;
        if (report->json)
            stats_array(report, figures, list->key, list->scope, list->end, each_with_lock);
        else print_list(report, figures, list, each_with_lock);
    }
    if (report->json) report_close(report, '}');
}
