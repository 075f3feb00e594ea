/* control_tables.c - where the tables of the control tree meet.
 * SPDX-License-Identifier: MIT
 */
#include "control_tables.h"

const struct control_table *const control_tables[] = {
    &control_root, &control_config, &control_opt,   &control_arenas,  &control_placed,
    &control_prof, &control_thread, &control_stats, &control_reserve,
};
const unsigned control_table_count = ARRAY_COUNT(control_tables);
