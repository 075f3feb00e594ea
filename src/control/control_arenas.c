/* control_arenas.c - arenas: which there are, their names, and how they give memory back.
 *
 * Free pages are shared by all arenas but those with hooks. So what jemalloc sets for each arena
 * (how long pages stay dirty, from what size on they do not) is one value here: whoever sets it for
 * one of these arenas sets it for all. How long they stay in one with hooks is its own.
 * SPDX-License-Identifier: MIT
 */
#include "../arenas/decay.h"
#include "../arenas/manual.h"
#include "../heap/doors.h"
#include "../heap/heap.h"
#include "../policy/purge.h"
#include "../space/sealed.h"
#include "../base/report.h"
#include "../view/snapshot.h"
#include "control_tree.h"
#include "lengths.h"

#include <errno.h>

/* ---- which arenas there are ---- */

unsigned control_arena_count(void)
{
    return arenas_end() > arena_limit ? arenas_end() : arena_limit;
}

enum control_arena_kind control_arena_kind(size_t index)
{
    if (index == 0 || made_arena_at(index) != NULL) return CONTROL_ARENA_ONE;
    if (index == CONTROL_ARENAS_ALL || index == control_arena_count()) return CONTROL_ARENA_SUM;
    if (index == CONTROL_ARENAS_DESTROYED && RELAXED_LOAD(past_arenas.count) != 0)
        return CONTROL_ARENA_PAST;
    return CONTROL_ARENA_NONE;
}

/* ---- names that programs give to arenas ---- */

void control_arena_name(unsigned index, char *name)
{
    const struct arena *arena = made_arena_at(index);
    struct report standard = { .used = 0 };

    check(lock_is_mine(&control_lock));
    if (arena != NULL && arena->name[0] != '\0') {
        __builtin_memcpy(name, arena->name, sizeof arena->name);
        return;
    }
    report_print(&standard, "%s_%" PRIu64, index < arena_limit ? "auto" : "manual",
                 (uint64_t)index);
    __builtin_memcpy(name, report_kept(&standard), standard.used + 1);
}

static int name_arena(unsigned index, const char *name)
{
    struct arena *arena = index < arena_limit ? arena_at(index) : made_arena_at(index);
    size_t length = 0;

    if (arena == NULL) return EAGAIN;
    while (length < sizeof arena->name - 1 && name[length] != '\0') length++;
    __builtin_memset(arena->name, 0, sizeof arena->name);
    __builtin_memcpy(arena->name, name, length);
    return 0;
}

/* Reading writes into the buffer that the caller's pointer leads to. */
int serve_name(struct control_call *call)
{
    enum control_arena_kind kind = control_arena_kind(call->index[0]);
    int error = 0;

    if (kind == CONTROL_ARENA_SUM) return EINVAL;
    if (kind != CONTROL_ARENA_ONE) return EFAULT;
    if (call->old_buffer != NULL
        && (call->old_length == NULL || *call->old_length != sizeof(char *)))
        return EINVAL;
    if (call->new_buffer != NULL && call->new_length != sizeof(char *)) return EINVAL;
    lock_take(&control_lock);
    if (call->old_buffer != NULL)
        control_arena_name((unsigned)call->index[0], *(char **)call->old_buffer);
    if (call->new_buffer != NULL) {
        const char *name = *(const char *const *)call->new_buffer;
        error = name != NULL ? name_arena((unsigned)call->index[0], name) : EINVAL;
    }
    lock_give(&control_lock);
    return error;
}

/* ---- what is one value for all ---- */

/* An option that may change while the program runs. */
int serve_option(struct control_call *call, enum option option)
{
    bool is_word = option_rows[option].kind == OPTION_KIND_CHOICE;
    uint64_t wanted = 0, value;
    bool may_write;

    if (call->writes && is_word) {
        int number = option_number(option, call->new_value.text);
        if (number < 0) return EINVAL;
        wanted = (uint64_t)number;
    } else if (call->writes) {
        wanted = control_number_of(call->row->type, call->new_value);
    }
    lock_take(&control_lock);
    value = option_value(option);
    may_write = call->writes && sealed_open();
    if (may_write) {
        option_set(option, wanted);
        sealed_close();
    }
    lock_give(&control_lock);
    if (may_write != call->writes) return EAGAIN;
    call->old = control_value_of(call->row->type, value);
    if (is_word) call->old.text = option_word(option, value);
    if (call->writes && (call->row->rights & CONTROL_HEAP) != 0) decay_obey_options();
    return 0;
}

int serve_decay(struct control_call *call, enum option option)
{
    return call->writes && call->new_value.ssize < -1 ? EFAULT : serve_option(call, option);
}

static bool is_there(size_t index)
{
    enum control_arena_kind kind = control_arena_kind(index);

    return kind == CONTROL_ARENA_ONE || kind == CONTROL_ARENA_SUM;
}

/* Where an arena with hooks keeps it; NULL: it has no hooks. Under its lock. */
static int64_t *kept_decay(struct arena *arena, enum option option)
{
    if (arena->extents == NULL) return NULL;
    return option == OPTION_DIRTY_DECAY_MS ? &arena->extents->dirty_decay_ms
                                           : &arena->extents->muzzy_decay_ms;
}

int64_t control_arena_decay(size_t index, enum option option)
{
    struct arena *arena = placed_arena_if_made(index);
    int64_t decay_ms = (int64_t)option_value(option);
    const int64_t *kept;

    if (arena == NULL || RELAXED_LOAD(arena->extents) == NULL) return decay_ms;
    lock_take(&arena->lock);
    kept = kept_decay(arena, option);
    if (kept != NULL) decay_ms = *kept;
    lock_give(&arena->lock);
    return decay_ms;
}

/* False: the arena has no hooks. */
static bool serve_kept_decay(struct arena *arena, struct control_call *call, enum option option)
{
    int64_t *kept;
    bool is_kept;

    lock_take(&arena->lock);
    kept = kept_decay(arena, option);
    is_kept = kept != NULL;
    if (is_kept) {
        call->old.ssize = (intptr_t)*kept;
        if (call->writes) *kept = call->new_value.ssize;
    }
    lock_give(&arena->lock);
    return is_kept;
}

int serve_arena_decay(struct control_call *call, enum option option)
{
    struct arena *arena;

    if (!is_there(call->index[0]) || (call->writes && call->new_value.ssize < -1)) return EFAULT;
    arena = placed_arena_if_made(call->index[0]);
    return arena != NULL && serve_kept_decay(arena, call, option) ? 0 : serve_option(call, option);
}

int serve_arena_option(struct control_call *call, enum option option)
{
    return is_there(call->index[0]) ? serve_option(call, option) : EFAULT;
}

/* The longest extent that an arena asks its hooks for ahead of need. Without hooks the value is
 * kept for those that may come, and has no effect: the heap grows by what is missing, and by at
 * most 64 MiB ahead of need. */
int serve_grow_limit(struct control_call *call)
{
    size_t index = call->index[0], limit = call->new_value.size;
    struct arena *arena;

    if (!option_is_set(OPTION_RETAIN)) return ENOENT;
    if (control_arena_kind(index) != CONTROL_ARENA_ONE) return EFAULT;
    if (call->writes && (limit < page_bytes() || limit == SIZE_MAX)) return EFAULT;
    arena = placed_arena((unsigned)index);
    if (arena == NULL) return EAGAIN;
    lock_take(&arena->lock);
    call->old.size =
        arena->grow_limit != 0 ? arena->grow_limit : lextent_bytes(lextent_count() - 1);
    if (arena->extents != NULL) call->old.size = arena->extents->grow_limit;
    if (call->writes) {
        arena->grow_limit = step_bytes(last_step_below(limit, step_count()));
        if (arena->extents != NULL) extents_limit_growth(arena->extents, arena->grow_limit);
    }
    lock_give(&arena->lock);
    return 0;
}

/* Those whose memory the program supplies have free pages of their own. What caches and depots hold
 * for them has to be back there first. */
static void purge_supplied(size_t index, bool all)
{
    for (size_t i = all ? 0 : index; i < (all ? arenas_end() : index + 1); i++) {
        struct arena *arena = made_arena_at(i);
        if (arena != NULL) arena_purge(arena);
    }
}

int serve_purge(struct control_call *call)
{
    size_t index = call->index[0];

    if (!is_there(index)) return 0;
    (void)prairie_purge();
    purge_supplied(index, control_arena_kind(index) == CONTROL_ARENA_SUM);
    return 0;
}

int serve_decay_now(struct control_call *call)
{
    if (!is_there(call->index[0])) return 0;
    (void)arenas_clear(CLEAR_UNNEEDED);
    purge_beyond_budget();
    return 0;
}
