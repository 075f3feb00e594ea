/* control_tree.c - the list of leaves as a table, those that need little, and where the tables
 * meet.
 * SPDX-License-Identifier: MIT
 */
#include "control_tree.h"
#include "lengths.h"

#include "../../include/prairie/reserve.h"
#include "../policy/limits.h"
#include "../profile/profile.h"
#include "../view/snapshot.h"
#include "../view/stats.h"

#include <errno.h>

/* Whoever reads the version looks for the release of jemalloc whose interface this is. */
#define JEMALLOC_RELEASE "5.3.1-0-gprairie-" PRAIRIE_VERSION

/* Writing any number takes a new snapshot. */
static int serve_epoch(struct control_call *call)
{
    const struct snapshot *numbers;

    lock_take(&control_lock);
    numbers = call->writes ? snapshot_take() : snapshot_get();
    if (numbers != NULL) call->old.u64 = numbers->epoch;
    lock_give(&control_lock);
    return numbers != NULL ? 0 : EAGAIN;
}

enum { BACKGROUND_THREADS_MAX = 4096 };

static int serve_thread_limit(struct control_call *call)
{
    if (call->writes && call->new_value.size - 1 >= BACKGROUND_THREADS_MAX) return EINVAL;
    return serve_option(call, OPTION_MAX_BACKGROUND_THREADS);
}

static int serve_locks_reset(void)
{
    lock_take(&control_lock);
    snapshot_forget_locks();
    lock_give(&control_lock);
    return 0;
}

static void set_active(bool active) { RELAXED_STORE(sampling_active, active); }

/* EAGAIN: the reserve could not be filled, and will be when there is memory. */
static int serve_reserve(struct control_call *call)
{
    call->old.size = reserve_min_get();
    return call->writes && reserve_min_set(call->new_value.size) ? EAGAIN : 0;
}

static int serve_limit(struct control_call *call, size_t (*get)(void), void (*set)(size_t bytes))
{
    call->old.size = get();
    if (call->writes) set(call->new_value.size);
    return 0;
}

/* ---- the list ---- */

static const struct control_row list_rows[] = {
#define LEAF(name, type, rights, serve) { name, CONTROL_##type, CONTROL_##rights, __LINE__ },
#include "control_list.h"
#undef LEAF
};
enum { ROWS_OF_QUANTUM_8 = 2, ROWS = ARRAY_COUNT(list_rows) };

/* Numbers of arenas that are to come are known to all but what is experimental. */
static bool list_exists(const struct control_row *row, const size_t *index)
{
    bool is_experimental = row->name[0] == 'e';

    if (__builtin_strchr(row->name, '*') == NULL) return true;
    if (is_experimental && index[0] < CONTROL_ARENAS_ALL)
        return control_arena_kind(index[0]) == CONTROL_ARENA_ONE;
    return index[0] <= control_arena_count() || index[0] == CONTROL_ARENAS_ALL
        || index[0] == CONTROL_ARENAS_DESTROYED;
}

#define GIVE(member, value) (call->old.member = (value), 0)
#define OF_THREAD(member, value) \
    ((counting = totals_count_calls()) != NULL ? GIVE(member, value) : EAGAIN)

static int serve_list(struct control_call *call)
{
    struct counting_front *counting;

    if ((call->row->rights & CONTROL_HEAP) != 0 && !heap_start()) return EAGAIN;
    switch (call->row->leaf) {
#define LEAF(name, type, rights, serve) \
    case __LINE__:                      \
        return serve;
#include "control_list.h"
#undef LEAF
    default: return ENOENT;
    }
}

const struct control_table control_list = { list_rows,
                                            CLASS_QUANTUM == 8 ? ROWS : ROWS - ROWS_OF_QUANTUM_8,
                                            list_exists, serve_list };

/* ---- all tables ---- */

const struct control_table *const control_tables[] = { &control_list, &control_opt,
                                                       &control_figures };
const unsigned control_table_count = ARRAY_COUNT(control_tables);
