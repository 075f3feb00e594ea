/* control_flags.h - names of the control tree that are true or false, for the tests of several. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_UNIT_CONTROL_FLAGS_H
#define PRAIRIE_TEST_UNIT_CONTROL_FLAGS_H

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

#endif
