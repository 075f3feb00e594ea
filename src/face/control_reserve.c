/* control_reserve.c - the memory reserve and the limits; names of prairie's own.
 * SPDX-License-Identifier: MIT
 */
#include "../../include/prairie/reserve.h"
#include "control_tables.h"

#include <errno.h>

enum reserve_leaf { RESERVE_CUR, RESERVE_MAX, RESERVE_MIN, LIMIT_HARD, LIMIT_SOFT };

static const struct control_row reserve_rows[] = {
    { "reserve.cur", CONTROL_SIZE, CONTROL_READ, RESERVE_CUR },
    { "reserve.max", CONTROL_SIZE, CONTROL_READ, RESERVE_MAX },
    { "reserve.min", CONTROL_SIZE, CONTROL_BOTH, RESERVE_MIN },
    { "limit.hard", CONTROL_SIZE, CONTROL_BOTH, LIMIT_HARD },
    { "limit.soft", CONTROL_SIZE, CONTROL_BOTH, LIMIT_SOFT },
};

/* EAGAIN: the reserve could not be filled, and will be when there is memory. */
static int serve_reserve(struct control_call *call)
{
    size_t wanted = call->new_value.size;

    switch (call->row->leaf) {
    case RESERVE_CUR: call->old.size = reserve_cur_get(); return 0;
    case RESERVE_MAX: call->old.size = reserve_max_get(); return 0;
    case RESERVE_MIN:
        call->old.size = reserve_min_get();
        return call->writes && reserve_min_set(wanted) ? EAGAIN : 0;
    case LIMIT_HARD:
        call->old.size = limit_hard_get();
        if (call->writes) limit_hard_set(wanted);
        return 0;
    case LIMIT_SOFT:
        call->old.size = limit_soft_get();
        if (call->writes) limit_soft_set(wanted);
        return 0;
    default: return ENOENT;
    }
}

const struct control_table control_reserve = { reserve_rows, ARRAY_COUNT(reserve_rows), NULL,
                                               serve_reserve };
