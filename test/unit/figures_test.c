/* figures_test.c - one snapshot for all outputs, and which rows are names. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "control_tree.h"

#include "unit.h"

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

UNIT_MAIN(UNIT_TEST(sums_leave_the_control_tree_alone), UNIT_TEST(what_json_alone_has_is_no_name))
