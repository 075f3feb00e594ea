/* stats_print.c - the whole of the statistics: how it was built, what is set, sizes, sums, arenas.
 * SPDX-License-Identifier: MIT
 */
#include "stats_print.h"

#include "../base/options.h"
#include "../base/port.h"
#include "conf.h"
#include "control.h"
#include "control_classes.h"

PUBLIC void (*malloc_message)(void *context, const char *text);

static void write_to_error(void *unused, const char *text)
{
    (void)unused;
    port_write_error(text, __builtin_strlen(text));
}

static struct stats_wish wish_of(const char *letters)
{
    struct stats_wish wish = { false, true, true, true, true, true, true, true, true };

    for (; letters != NULL && *letters != '\0'; letters++) {
        switch (*letters) {
        case 'J': wish.json = true; break;
        case 'g': wish.general = false; break;
        case 'm': wish.merged = false; break;
        case 'd': wish.destroyed = false; break;
        case 'a': wish.each_arena = false; break;
        case 'b': wish.bins = false; break;
        case 'l': wish.large = false; break;
        case 'x': wish.mutexes = false; break;
        case 'e': wish.extents = false; break;
        default: break; /* h, and what others may have */
        }
    }
    return wish;
}

void stats_number(struct report *report, const char *key, const char *line, uint64_t number)
{
    if (report->json) {
        report_member(report, key, number);
        return;
    }
    report_text(report, line);
    report_number(report, number);
    report_text(report, "\n");
}

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
        char name[24];
    } leaves[] = {
        { OPTION_BACKGROUND_THREAD, CONTROL_BOOL, "background_thread" },
        { OPTION_DIRTY_DECAY_MS, CONTROL_SSIZE, "arenas.dirty_decay_ms" },
        { OPTION_MUZZY_DECAY_MS, CONTROL_SSIZE, "arenas.muzzy_decay_ms" },
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
    case OPTION_KIND_BOOL: report_text(report, value != 0 ? "true" : "false"); break;
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

static void print_options(struct report *report)
{
    title(report, "opt", "Run-time option settings");
    print_source(report, CONF_GLOBAL, "global_var", "Global variable malloc_conf");
    print_source(report, CONF_SYMLINK, "symlink", "Symbolic link malloc.conf");
    print_source(report, CONF_MALLOC_CONF, "env_var", "Environment variable MALLOC_CONF");
    print_source(report, CONF_PRAIRIE_CONF, "prairie_conf", "Environment variable PRAIRIE_CONF");
    print_source(report, CONF_GLOBAL_2, "global_var_2_conf_harder",
                 "Global variable malloc_conf_2_conf_harder");
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        bool shown = option_rows[i].kind != OPTION_KIND_IGNORED
                  && option_rows[i].mode != OPTION_MODE_SAMPLER;
        if (shown) print_option(report, (enum option)i);
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

static void print_general(struct report *report)
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
    print_sizes(report);
}

/* ---- sums ---- */

static void print_sums_as_text(struct report *report, const struct snapshot *numbers)
{
    const struct snapshot_arena *all = &numbers->all;
    const struct {
        const char *before;
        uint64_t number;
    } parts[] = {
        { "Allocated: ", all->small_allocated + all->large_allocated },
        { ", active: ", all->active },
        { ", metadata: ", all->metadata },
        { " (n_thp 0, edata ", all->metadata - all->metadata_map },
        { ", rtree ", all->metadata_map },
        { "), resident: ", all->resident },
        { ", mapped: ", all->mapped },
        { ", retained: ", all->clean },
        { "\nCount of realloc(non-null-ptr, 0) calls: ", numbers->realloc_zero_calls },
        { "\nBackground threads: ", numbers->helper_runs },
        { ", num_runs: ", numbers->helper_looks },
        { ", run_interval: ", numbers->helper_look_ms * 1000000 },
    };

    for (unsigned i = 0; i < ARRAY_COUNT(parts); i++) {
        report_text(report, parts[i].before);
        report_number(report, parts[i].number);
    }
    report_text(report, " ns\n");
}

static void print_sums_as_json(struct report *report, const struct snapshot *numbers)
{
    const struct snapshot_arena *all = &numbers->all;

    report_member(report, "allocated", all->small_allocated + all->large_allocated);
    report_member(report, "active", all->active);
    report_member(report, "metadata", all->metadata);
    report_member(report, "metadata_edata", all->metadata - all->metadata_map);
    report_member(report, "metadata_rtree", all->metadata_map);
    report_member(report, "metadata_thp", 0);
    report_member(report, "resident", all->resident);
    report_member(report, "mapped", all->mapped);
    report_member(report, "retained", all->clean);
    report_member(report, "zero_reallocs", numbers->realloc_zero_calls);
    report_open(report, "background_thread", '{');
    report_member(report, "num_threads", numbers->helper_runs);
    report_member(report, "num_runs", numbers->helper_looks);
    report_member(report, "run_interval", numbers->helper_look_ms * 1000000);
    report_close(report, '}');
}

static void print_global_locks(struct report *report, const struct snapshot *numbers)
{
    static const char names[][20] = {
        "background_thread",
        "max_per_bg_thd",
        "ctl",
        "prof",
        "prof_thds_data",
        "prof_dump",
        "prof_recent_alloc",
        "prof_recent_dump",
        "prof_stats",
    };

    if (report->json) report_open(report, "mutexes", '{');
    else stats_print_lock_titles(report);
    for (unsigned i = 0; i < ARRAY_COUNT(names); i++) {
        bool is_known = __builtin_strcmp(names[i], "ctl") == 0;
        stats_print_lock(report, names[i], is_known ? &numbers->control_lock : NULL,
                         numbers->uptime_ms / 1000);
    }
    end_section(report);
}

/* ---- arenas ---- */

/* Copies, so that no lock is held while the program's function runs, which may ask us something. */
static bool copy_arena(unsigned index, struct snapshot_arena *arena)
{
    const struct snapshot_arena *found = NULL;

    lock_take(&control_lock);
    if (control_arena_is_made(index)) found = snapshot_arena(index);
    if (found != NULL) *arena = *found;
    lock_give(&control_lock);
    return found != NULL;
}

static NOINLINE void print_each_arena(struct report *report, const struct stats_wish *wish,
                                      const struct snapshot *numbers)
{
    struct snapshot_arena arena;

    for (unsigned index = 0; index < numbers->arena_count; index++)
        if (copy_arena(index, &arena)) stats_print_arena(report, wish, numbers, &arena, (int)index);
}

static unsigned arenas_made(const struct snapshot *numbers)
{
    unsigned made = 0;

    for (unsigned index = 0; index < numbers->arena_count; index++)
        made += control_arena_is_made(index);
    return made;
}

static void print_numbers(struct report *report, const struct stats_wish *wish,
                          const struct snapshot *numbers)
{
    if (report->json) {
        report_open(report, "stats", '{');
        print_sums_as_json(report, numbers);
    } else {
        print_sums_as_text(report, numbers);
    }
    if (wish->mutexes) print_global_locks(report, numbers);
    end_section(report);

    if (!wish->merged && !wish->each_arena) return;
    if (report->json) report_open(report, "stats.arenas", '{');
    if (wish->merged && (arenas_made(numbers) > 1 || !wish->each_arena))
        stats_print_arena(report, wish, numbers, &numbers->all, -1);
    if (wish->each_arena) print_each_arena(report, wish, numbers);
    end_section(report);
}

static bool copy_numbers(struct snapshot *numbers)
{
    const struct snapshot *taken;

    if (!heap_start()) return false;
    lock_take(&control_lock);
    taken = snapshot_take();
    if (taken != NULL) *numbers = *taken;
    lock_give(&control_lock);
    return taken != NULL;
}

PUBLIC void malloc_stats_print(void (*write)(void *context, const char *text), void *context,
                               const char *letters)
{
    struct stats_wish wish = wish_of(letters);
    struct report report = { .write = write, .context = context, .json = wish.json };
    struct snapshot numbers;

    if (report.write == NULL)
        report.write = malloc_message != NULL ? malloc_message : write_to_error;
    if (!copy_numbers(&numbers)) return; /* no memory */
    report_text(&report, wish.json ? "{\"jemalloc\":{" : "___ Begin jemalloc statistics ___\n");
    if (wish.general) print_general(&report);
    print_numbers(&report, &wish, &numbers);
    report_text(&report, wish.json ? "}}" : "--- End jemalloc statistics ---\n");
    report_flush(&report);
}
