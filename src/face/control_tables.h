/* control_tables.h - the tables that there are.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_FACE_CONTROL_TABLES_H
#define PRAIRIE_FACE_CONTROL_TABLES_H

#include "control.h"

extern PRIVATE const struct control_table control_root; /* version, epoch, the background thread */
extern PRIVATE const struct control_table control_config;  /* how the library was built */
extern PRIVATE const struct control_table control_opt;     /* options */
extern PRIVATE const struct control_table control_arenas;  /* arenas and size classes */
extern PRIVATE const struct control_table control_placed;  /* manual arenas, explicit caches */
extern PRIVATE const struct control_table control_prof;    /* samples of allocations */
extern PRIVATE const struct control_table control_thread;  /* the calling thread's totals */
extern PRIVATE const struct control_table control_stats;   /* the snapshot's numbers */
extern PRIVATE const struct control_table control_reserve; /* the memory reserve and the limits */

#endif
