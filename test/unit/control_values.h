/* control_values.h - names of the control tree that are true or false, or sizes, for the tests of
 * several. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_UNIT_CONTROL_VALUES_H
#define PRAIRIE_TEST_UNIT_CONTROL_VALUES_H

#include "control/control_tree.h"
#include "unit.h"

static inline int write_flag(const char *name, bool value)
{
    return control_by_name(name, NULL, NULL, &value, sizeof value);
}

static inline bool read_flag(const char *name)
{
    bool value = false;
    size_t length = sizeof value;

    assert_int_equal(control_by_name(name, &value, &length, NULL, 0), 0);
    return value;
}

static inline int write_size(const char *name, size_t value)
{
    return control_by_name(name, NULL, NULL, &value, sizeof value);
}

static inline size_t read_size(const char *name)
{
    size_t value = 0, length = sizeof value;

    assert_int_equal(control_by_name(name, &value, &length, NULL, 0), 0);
    return value;
}

#endif
