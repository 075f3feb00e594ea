/* control_tree.h - the control tree and the printed statistics, which library.c holds too. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_CONTROL_TREE_H
#define PRAIRIE_TEST_CONTROL_TREE_H

#include "control/control.h"
#include "control/figures.h"
#include "control/lengths.h"
#include "control/stats_print.h"
#include "base/report.h"

#include <jemalloc/jemalloc.h>

#endif
