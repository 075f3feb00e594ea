/* stats_general.c - the statistics' first part: how the library was built, what is set, and sizes.
 * SPDX-License-Identifier: MIT
 */
#include "stats_print.h"

#include "../base/options.h"
#include "conf.h"
#include "control.h"
#include "control_classes.h"

/* ---- leaves of the control tree, as they are ---- */

static union control_value read_leaf(const char *name)
{
    union control_value value = { .u64 = 0 };

    for (size_t bytes = sizeof value; bytes != 0; bytes /= 2) {
        size_t length = bytes;
        if (control_by_name(name, &value, &length, NULL, 0) == 0) return value;
        value.u64 = 0;
    }
    return value;
}

static void print_value(struct report *report, unsigned type, union control_value value)
{
    switch (type) {
    case CONTROL_BOOL: report_text(report, value.flag ? "true" : "false"); return;
    case CONTROL_TEXT: report_quoted(report, value.text); return;
    case CONTROL_SSIZE: report_signed(report, value.ssize); return;
    default: report_number(report, value.u64); return;
    }
}

/* `name` begins with `section`, which is its first word and the dot. */
static void print_leaf(struct report *report, const char *section, const char *name, unsigned type)
{
    if (report->json) {
        report_key(report, name + __builtin_strlen(section));
    } else {
        report_text(report, "  ");
        report_text(report, name);
        report_text(report, ": ");
    }
    print_value(report, type, read_leaf(name));
}

static void end_line(struct report *report)
{
    if (!report->json) report_text(report, "\n");
}

static void title(struct report *report, const char *key, const char *line)
{
    if (report->json) {
        report_open(report, key, '{');
        return;
    }
    report_text(report, line);
    report_text(report, "\n");
}

static void end_section(struct report *report)
{
    if (report->json) report_close(report, '}');
}

static void print_config(struct report *report)
{
    static const char flags[][28] = {
        "config.cache_oblivious",
        "config.debug",
        "config.fill",
        "config.lazy_lock",
        "config.malloc_conf",
        "config.opt_safety_checks",
        "config.prof",
        "config.prof_libgcc",
        "config.prof_libunwind",
        "config.prof_frameptr",
        "config.stats",
        "config.utrace",
        "config.xmalloc",
    };

    title(report, "config", "Build-time option settings");
    for (unsigned i = 0; i < ARRAY_COUNT(flags); i++) {
        bool is_text = flags[i][7] == 'm';
        print_leaf(report, "config.", flags[i], is_text ? CONTROL_TEXT : CONTROL_BOOL);
        end_line(report);
    }
    end_section(report);
}

static void print_system(struct report *report)
{
    char text[64];

    title(report, "system", "System configuration");
    if (report->json) report_key(report, "thp_mode");
    else report_text(report, "  system.thp_mode: ");
    os_huge_page_mode(text, sizeof text);
    report_quoted(report, text);
    end_line(report);
    end_section(report);
}

static void print_source(struct report *report, enum conf_source source, const char *key,
                         const char *line)
{
    const char *text = conf_text(source);

    if (report->json) {
        report_key(report, key);
    } else {
        if (text == NULL && source == CONF_GLOBAL_2) return;
        report_text(report, "  ");
        report_text(report, line);
        report_text(report, ": ");
    }
    report_quoted(report, text);
    end_line(report);
}

/* In 65536ths, as text. */
static void print_fraction(struct report *report, uint64_t value)
{
    uint64_t hundredths = ((value & 65535) * 100 + 32768) >> 16;

    if (value == UINT32_MAX) {
        report_text(report, "\"-1\"");
        return;
    }
    report_text(report, "\"");
    report_number(report, value >> 16);
    report_text(report, hundredths < 10 ? ".0" : ".");
    report_number(report, hundredths);
    report_text(report, "\"");
}

/* What a leaf of another name says now, behind the option that it began with. */
static void print_now(struct report *report, enum option option)
{
    static const struct {
        uint8_t option, type;
        char name[28];
    } leaves[] = {
        { OPTION_BACKGROUND_THREAD, CONTROL_BOOL, "background_thread" },
        { OPTION_DIRTY_DECAY_MS, CONTROL_SSIZE, "arenas.dirty_decay_ms" },
        { OPTION_MUZZY_DECAY_MS, CONTROL_SSIZE, "arenas.muzzy_decay_ms" },
        { OPTION_PROF_ACTIVE, CONTROL_BOOL, "prof.active" },
        { OPTION_PROF_THREAD_ACTIVE_INIT, CONTROL_BOOL, "prof.thread_active_init" },
        { OPTION_LG_PROF_SAMPLE, CONTROL_SSIZE, "prof.lg_sample" },
    };

    for (unsigned i = 0; i < ARRAY_COUNT(leaves) && !report->json; i++) {
        if (leaves[i].option != option) continue;
        report_text(report, " (");
        report_text(report, leaves[i].name);
        report_text(report, ": ");
        print_value(report, leaves[i].type, read_leaf(leaves[i].name));
        report_text(report, ")");
    }
}

static void print_option(struct report *report, enum option option)
{
    const struct option_row *row = &option_rows[option];
    uint64_t value = option_value_at_start(option);

    if (report->json) {
        report_key(report, row->name);
    } else {
        report_text(report, "  opt.");
        report_text(report, row->name);
        report_text(report, ": ");
    }
    switch ((enum option_kind)row->kind) {
    case OPTION_KIND_BOOL:
        report_text(report, option_asked_at_start(option) ? "true" : "false");
        break;
    case OPTION_KIND_CHOICE: report_quoted(report, option_word(option, value)); break;
    case OPTION_KIND_TEXT: report_quoted(report, option_text(option)); break;
    case OPTION_KIND_FRACTION: print_fraction(report, value); break;
    case OPTION_KIND_SSIZE:
    case OPTION_KIND_I64: report_signed(report, (int64_t)value); break;
    default: report_number(report, option == OPTION_NARENAS ? arena_limit : value); break;
    }
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
    title(report, "opt", "Run-time option settings");
    print_source(report, CONF_GLOBAL, "global_var", "Global variable malloc_conf");
    print_source(report, CONF_SYMLINK, "symlink", "Symbolic link malloc.conf");
    print_source(report, CONF_MALLOC_CONF, "env_var", "Environment variable MALLOC_CONF");
    print_source(report, CONF_PRAIRIE_CONF, "prairie_conf", "Environment variable PRAIRIE_CONF");
    print_source(report, CONF_GLOBAL_2, "global_var_2_conf_harder",
                 "Global variable malloc_conf_2_conf_harder");
    for (unsigned i = 0; i < OPTION_COUNT; i++)
        if (is_shown((enum option)i)) print_option(report, (enum option)i);
    end_section(report);
}

static void print_profiling(struct report *report)
{
    static const struct {
        char name[28];
        uint8_t type;
    } leaves[] = {
        { "prof.thread_active_init", CONTROL_BOOL },
        { "prof.active", CONTROL_BOOL },
        { "prof.gdump", CONTROL_BOOL },
        { "prof.interval", CONTROL_U64 },
        { "prof.lg_sample", CONTROL_SSIZE },
    };

    title(report, "prof", "Profiling settings");
    for (unsigned i = 0; i < ARRAY_COUNT(leaves); i++) {
        print_leaf(report, "prof.", leaves[i].name, leaves[i].type);
        end_line(report);
    }
    end_section(report);
}

/* ---- sizes ---- */

static void print_bin_shapes(struct report *report)
{
    report_open(report, "bin", '[');
    for (unsigned bin = 0; bin < BIN_CLASS_COUNT; bin++) {
        report_open(report, NULL, '{');
        report_member(report, "size", class_bytes[bin_class(bin)]);
        report_member(report, "nregs", slab_shape[bin_class(bin)].block_count);
        report_member(report, "slab_size", slab_shape[bin_class(bin)].bytes);
        report_member(report, "nshards", 1);
        report_close(report, '}');
    }
    report_close(report, ']');
}

static void print_large_sizes(struct report *report)
{
    report_open(report, "lextent", '[');
    for (unsigned i = 0; i < lextent_count(); i++) {
        report_open(report, NULL, '{');
        report_member(report, "size", lextent_bytes(i));
        report_close(report, '}');
    }
    report_close(report, ']');
}

static void print_sizes(struct report *report)
{
    if (report->json) report_open(report, "arenas", '{');
    stats_number(report, "narenas", "Arenas: ", control_arena_count());
    if (report->json) {
        report_key(report, "dirty_decay_ms");
        report_signed(report, option_decay_ms());
        report_key(report, "muzzy_decay_ms");
        report_signed(report, (int64_t)option_value(OPTION_MUZZY_DECAY_MS));
    }
    stats_number(report, "quantum", "Quantum size: ", QUANTUM_BYTES);
    stats_number(report, "page", "Page size: ", page_bytes());
    stats_number(report, "hugepage", "Hugepage size: ", huge_page_bytes());
    stats_number(report, "tcache_max",
                 "Maximum thread-cached size class: ", class_bytes[cached_class_max]);
    stats_number(report, "nbins", "Number of bin size classes: ", BIN_CLASS_COUNT);
    stats_number(report, "nhbins", "Number of thread-cache bin size classes: ", cached_class_max);
    if (report->json) print_bin_shapes(report);
    stats_number(report, "nlextents", "Number of large size classes: ", lextent_count());
    if (report->json) print_large_sizes(report);
    end_section(report);
}

void stats_print_general(struct report *report)
{
    if (report->json) {
        report_key(report, "version");
    } else {
        report_text(report, "Version: ");
    }
    report_quoted(report, read_leaf("version").text);
    end_line(report);
    print_config(report);
    print_system(report);
    print_options(report);
    print_profiling(report);
    print_sizes(report);
}
