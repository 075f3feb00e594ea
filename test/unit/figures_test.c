/* figures_test.c - one snapshot for all outputs, and which rows are names. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "control_tree.h"
#include "guarded.h"

static bool ended;

static void look_for_end(void *context, const char *text)
{
    assert_null(context);
    ended = strstr(text, "# EOF\n") != NULL;
}

static struct snapshot snapshot_now(bool anew)
{
    struct snapshot copy;

    lock_take(&control_lock);
    copy = *(anew ? snapshot_take() : snapshot_get());
    lock_give(&control_lock);
    return copy;
}

/* Who asks for sums sees now, and the control tree's moment stays. */
static void sums_leave_the_control_tree_alone(void **state)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    struct snapshot before, kept, after;

    (void)state;
    prairie_free(prairie_malloc(100));
    before = snapshot_now(true);
    for (unsigned i = 0; i < 500; i++) assert_non_null(prairie_malloc(i * 97));
    assert_true(prairie_stats_read(&stats));
    assert_true(prairie_stats_metrics(look_for_end, NULL));
    kept = snapshot_now(false);
    assert_int_equal(kept.epoch, before.epoch);
    assert_int_equal(kept.all.all.allocated, before.all.all.allocated);
    after = snapshot_now(true);
    assert_int_equal(stats.allocated, after.all.all.allocated);
    assert_int_equal(stats.active, after.all.active);
    assert_int_equal(stats.cached, after.all.cached);
    assert_int_equal(stats.dirty, after.all.dirty);
    assert_int_equal(stats.clean, after.all.clean);
    assert_int_equal(stats.large_count, after.all.large_count);
    assert_int_equal(stats.slab_fills, after.all.small.fills);
    assert_true(ended);
}

/* Rows that only JSON has are no names, whole or in part. */
static void what_json_alone_has_is_no_name(void **state)
{
    unsigned shown = 0;

    (void)state;
    prairie_free(prairie_malloc(100));
    for (unsigned i = 0; i < control_figures.count; i++) {
        const struct control_row *row = &control_figures.rows[i];
        char name[CONTROL_NAME_BYTES];
        union control_value value;
        size_t path[CONTROL_DEPTH_MAX], length = CONTROL_DEPTH_MAX;

        memcpy(name, row->name, sizeof name);
        for (char *at = name; *at != '\0'; at++)
            if (*at == '*') *at = '0';
        assert_true((control_read(name, &value) != NULL) == ((row->rights & CONTROL_READ) != 0));
        assert_int_equal(control_path_of(name, path, &length),
                         (row->rights & CONTROL_READ) != 0 ? 0 : ENOENT);
        shown += (row->rights & CONTROL_JSON) != 0;
    }
    assert_true(shown > 60);
}

/* Neither its numbers nor what is set for it. */
static void an_arena_that_is_not_there_has_no_names(void **state)
{
    static const char ends[][20] = { "uptime",  "dss",    "dirty_decay_ms", "muzzy_decay_ms",
                                     "pactive", "mapped", "small.nmalloc",  "bins.0.nmalloc" };
    char name[CONTROL_NAME_BYTES];

    (void)state;
    prairie_free(prairie_malloc(100));
    for (unsigned i = 0; i < ARRAY_COUNT(ends); i++) {
        size_t path[CONTROL_DEPTH_MAX], length = CONTROL_DEPTH_MAX;

        (void)snprintf(name, sizeof name, "stats.arenas.0.%s", ends[i]);
        assert_int_equal(control_path_of(name, path, &length), 0);
        (void)snprintf(name, sizeof name, "stats.arenas.77.%s", ends[i]);
        length = CONTROL_DEPTH_MAX;
        assert_int_equal(control_path_of(name, path, &length), ENOENT);
    }
}

static char metrics[1 << 17];

static void keep_metrics(void *context, const char *text)
{
    (void)context;
    assert_true(strlen(metrics) + strlen(text) < sizeof metrics);
    strcat(metrics, text);
}

/* OpenMetrics wants the unit of those whose names end in one, and of no others. */
static void metrics_have_the_units_of_their_names(void **state)
{
    unsigned units = 0;

    (void)state;
    prairie_free(prairie_malloc(100));
    assert_true(prairie_stats_metrics(keep_metrics, NULL));
    assert_non_null(strstr(metrics, "# UNIT prairie_allocated_bytes bytes\n"));
    assert_non_null(strstr(metrics, "# UNIT prairie_uptime_seconds seconds\n"));
    for (const char *at = metrics; (at = strstr(at, "# TYPE prairie_")) != NULL; at++) {
        const char *name = at + strlen("# TYPE "), *space = strchr(name, ' ');
        const char *next = strchr(at, '\n') + 1;
        bool has_unit =
            strncmp(space - 6, "_bytes", 6) == 0 || strncmp(space - 8, "_seconds", 8) == 0;

        assert_true((strncmp(next, "# UNIT ", 7) == 0) == has_unit);
        units += has_unit;
    }
    assert_true(units > 10);
}

/* Each kind of lock has a line for each of its numbers. */
static void metrics_tell_of_all_locks(void **state)
{
    static const char *const names[] = { "arenas", "runs", "meta" };
    char line[80];

    (void)state;
    prairie_free(prairie_malloc(100));
    assert_true(prairie_stats_metrics(keep_metrics, NULL));
    for (unsigned i = 0; i < ARRAY_COUNT(names); i++) {
        snprintf(line, sizeof line, "\nprairie_lock_waits_total{lock=\"%s\"} ", names[i]);
        assert_non_null(strstr(metrics, line));
    }
}

static uint64_t metrics_sum(const char *begin)
{
    uint64_t sum = 0;

    for (const char *at = metrics; (at = strstr(at, begin)) != NULL; at++)
        sum += strtoull(strchr(at, '}') + 1, NULL, 10);
    return sum;
}

/* Also of one whose blocks all are guarded, so that it has no slab. */
static void metrics_of_classes_are_all_of_the_small_blocks(void **state)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };

    (void)state;
    guard_from_now();
    assert_true(guarded_pool_has(prairie_malloc(2000)));
    assert_non_null(prairie_malloc(100));
    assert_true(prairie_stats_metrics(keep_metrics, NULL));
    assert_true(prairie_stats_read(&stats));
    assert_non_null(strstr(metrics, "\nprairie_class_allocated_bytes{size=\"2048\"} 2048\n"));
    assert_int_equal(metrics_sum("\nprairie_class_allocated_bytes{"), stats.allocated);
}

UNIT_MAIN(UNIT_TEST(sums_leave_the_control_tree_alone), UNIT_TEST(what_json_alone_has_is_no_name),
          UNIT_TEST(an_arena_that_is_not_there_has_no_names),
          UNIT_TEST(metrics_have_the_units_of_their_names), UNIT_TEST(metrics_tell_of_all_locks),
          UNIT_TEST(metrics_of_classes_are_all_of_the_small_blocks))
