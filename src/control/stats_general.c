/* stats_general.c - the statistics' first part: how the library was built, what is set, and sizes.
 * SPDX-License-Identifier: MIT
 */
#include "stats_print.h"

#include "../base/options.h"
#include "conf.h"
#include "control_tree.h"

/* ---- leaves of the control tree, as they are ---- */

/* What stands before a value: the key, or the line so far. */
static void begin(struct report *report, const char *key, const char *indent, const char *line)
{
    if (report->json) {
        report_key(report, key);
        return;
    }
    report_print(report, "%s%s: ", indent, line);
}

static void end_line(struct report *report)
{
    if (!report->json) report_text(report, "\n");
}

static void print_text(struct report *report, const char *key, const char *line, const char *text)
{
    begin(report, key, "  ", line);
    report_quoted(report, text);
    end_line(report);
}

/* A member by the last word of the name, or a line: `line`, or the name. */
static void print_row(struct report *report, const struct control_row *row,
                      union control_value value, const char *line)
{
    begin(report, __builtin_strrchr(row->name, '.') + 1, line != NULL ? "" : "  ",
          line != NULL ? line : row->name);
    stats_value(report, row->type, value);
    end_line(report);
}

static void print_leaf(struct report *report, const char *name, const char *line)
{
    union control_value value;
    const struct control_row *row = control_read(name, &value);

    print_row(report, row, value, line);
}

static void title(struct report *report, const char *key, const char *line)
{
    if (report->json) {
        report_open(report, key, '{');
        return;
    }
    report_print(report, "%s\n", line);
}

static void end_section(struct report *report)
{
    if (report->json) report_close(report, '}');
}

static void print_config(struct report *report)
{
    title(report, "config", "Build-time option settings");
    for (unsigned i = 0; i < control_list.count; i++) {
        const struct control_row *row = &control_list.rows[i];
        if (__builtin_strncmp(row->name, "config.", 7) == 0)
            print_row(report, row, control_read_row(&control_list, row), NULL);
    }
    end_section(report);
}

static void print_system(struct report *report)
{
    char text[64];

    title(report, "system", "System configuration");
    os_huge_page_mode(text, sizeof text);
    print_text(report, "thp_mode", "system.thp_mode", text);
    end_section(report);
}

/* In 65536ths, as text. */
static void print_fraction(struct report *report, uint64_t value)
{
    uint64_t hundredths = (value * 100 + 32768) >> 16;

    if (value == UINT32_MAX) {
        report_text(report, "\"-1\"");
        return;
    }
    report_print(report, "\"%" PRIu64 ".%" PRIu64 "%" PRIu64 "\"", hundredths / 100,
                 hundredths / 10 % 10, hundredths % 10);
}

/* What a leaf of another name says now, behind the option that it began with. */
static void print_now(struct report *report, enum option option)
{
    static const struct {
        uint8_t option;
        char name[28];
    } leaves[] = {
        { OPTION_BACKGROUND_THREAD, "background_thread" },
        { OPTION_DIRTY_DECAY_MS, "arenas.dirty_decay_ms" },
        { OPTION_MUZZY_DECAY_MS, "arenas.muzzy_decay_ms" },
        { OPTION_PROF_ACTIVE, "prof.active" },
        { OPTION_PROF_THREAD_ACTIVE_INIT, "prof.thread_active_init" },
        { OPTION_LG_PROF_SAMPLE, "prof.lg_sample" },
    };

    for (unsigned i = 0; i < ARRAY_COUNT(leaves) && !report->json; i++) {
        union control_value value;
        const struct control_row *row;

        if (leaves[i].option != option) continue;
        report_print(report, " (%s: ", leaves[i].name);
        row = control_read(leaves[i].name, &value);
        stats_value(report, row->type, value);
        report_text(report, ")");
    }
}

/* As the leaf of its name has it, but fractions. */
static void print_option(struct report *report, enum option option)
{
    const struct control_row *row = &control_opt.rows[option];

    begin(report, option_rows[option].name, "  ", row->name);
    if (option_rows[option].kind == OPTION_KIND_FRACTION)
        print_fraction(report, option_value_at_start(option));
    else stats_value(report, row->type, control_read_row(&control_opt, row));
    print_now(report, option);
    end_line(report);
}

/* What has an effect, and what scripts read in jemalloc's statistics. */
static bool is_shown(enum option option)
{
    static const uint8_t unseen[] = {
        OPTION_TRUST_MADVISE,      OPTION_NARENAS_RATIO,        OPTION_CALLOC_MADVISE_THRESHOLD,
        OPTION_LG_SAN_UAF_ALIGN,   OPTION_SAN_GUARD_SMALL,      OPTION_SAN_GUARD_LARGE,
        OPTION_PROF_PID_NAMESPACE, OPTION_PROF_SYS_THREAD_NAME, OPTION_PROF_RECENT_ALLOC_MAX,
        OPTION_PROF_STATS,         OPTION_PROF_TIME_RESOLUTION,
    };

    if (option_rows[option].kind == OPTION_KIND_IGNORED) return false;
    for (unsigned i = 0; i < ARRAY_COUNT(unseen); i++)
        if (unseen[i] == option) return false;
    return true;
}

static void print_options(struct report *report)
{
#define KEY_AND_TITLE(id, leaf, name, title) { leaf, title },
    static const struct {
        char key[28], title[44];
    } sources[] = { CONF_SOURCES(KEY_AND_TITLE) };
#undef KEY_AND_TITLE

    title(report, "opt", "Run-time option settings");
    for (unsigned i = 0; i < CONF_SOURCE_COUNT; i++)
        if (report->json || i != CONF_GLOBAL_2 || conf_text(CONF_GLOBAL_2) != NULL)
            print_text(report, sources[i].key, sources[i].title, conf_text((enum conf_source)i));
    for (unsigned i = 0; i < OPTION_COUNT; i++)
        if (is_shown((enum option)i)) print_option(report, (enum option)i);
    end_section(report);
}

static void print_profiling(struct report *report)
{
    title(report, "prof", "Profiling settings");
    print_leaf(report, "prof.thread_active_init", NULL);
    print_leaf(report, "prof.active", NULL);
    print_leaf(report, "prof.gdump", NULL);
    print_leaf(report, "prof.interval", NULL);
    print_leaf(report, "prof.lg_sample", NULL);
    end_section(report);
}

static void print_sizes(struct report *report, struct figures *figures)
{
    if (report->json) report_open(report, "arenas", '{');
    print_leaf(report, "arenas.narenas", "Arenas");
    if (report->json) print_leaf(report, "arenas.dirty_decay_ms", NULL);
    if (report->json) print_leaf(report, "arenas.muzzy_decay_ms", NULL);
    print_leaf(report, "arenas.quantum", "Quantum size");
    print_leaf(report, "arenas.page", "Page size");
    print_leaf(report, "arenas.hugepage", "Hugepage size");
    print_leaf(report, "arenas.tcache_max", "Maximum thread-cached size class");
    print_leaf(report, "arenas.nbins", "Number of bin size classes");
    print_leaf(report, "arenas.nhbins", "Number of thread-cache bin size classes");
    if (report->json) stats_array(report, figures, "bin", OF_SHAPE, BIN_CLASS_COUNT, false);
    print_leaf(report, "arenas.nlextents", "Number of large size classes");
    if (report->json)
        stats_array(report, figures, "lextent", OF_LARGE_SIZE, lextent_count(), false);
    end_section(report);
}

void stats_print_general(struct report *report, struct figures *figures)
{
    union control_value version = { .text = "" };

    (void)control_read("version", &version);
    begin(report, "version", "", "Version");
    report_quoted(report, version.text);
    end_line(report);
    print_config(report);
    print_system(report);
    print_options(report);
    print_profiling(report);
    print_sizes(report, figures);
}
