/* face.h - the control tree and the printed statistics, without the C library's names. */
/* SPDX-License-Identifier: MIT */
/*
 * Include it after prairie.c.
 */
#ifndef PRAIRIE_TEST_FACE_H
#define PRAIRIE_TEST_FACE_H

#include "face/conf.c"
#include "face/control.c"
#include "face/control_arenas.c"
#include "face/control_opt.c"
#include "face/control_placed.c"
#include "face/control_prof.c"
#include "face/control_reserve.c"
#include "face/control_root.c"
#include "face/control_stats.c"
#include "face/control_tables.c"
#include "face/lengths.c"
#include "face/report.c"
#include "face/stats_arena.c"
#include "face/stats_general.c"
#include "face/stats_lists.c"
#include "face/stats_print.c"

#endif
