/* control_arenas.c - arenas: which there are, their names, and how they give memory back.
 *
 * Free pages are shared by all arenas that the library makes by itself. So what jemalloc sets for
 * each arena (how long pages stay dirty, from what size on they do not) is one value here: whoever
 * sets it for one of these arenas sets it for all.
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

int serve_arena_decay(struct control_call *call, enum option option)
{
    return is_there(call->index[0]) ? serve_decay(call, option) : EFAULT;
}

int serve_arena_option(struct control_call *call, enum option option)
{
    return is_there(call->index[0]) ? serve_option(call, option) : EFAULT;
}

/* False: the arena has no hooks. */
static bool serve_grow_limit_of(struct arena *arena, struct control_call *call)
{
    struct extents *extents;

    lock_take(&arena->lock);
    extents = arena->extents;
    if (extents != NULL) {
        call->old.size = extents->grow_limit;
        if (call->writes) extents_limit_growth(extents, call->new_value.size);
    }
    lock_give(&arena->lock);
    return extents != NULL;
}

/* The longest extent that an arena asks its hooks for ahead of need. Without hooks the value is
 * kept and has no effect: the heap grows by what is missing, and by at most 64 MiB ahead of
 * need. */
int serve_grow_limit(struct control_call *call)
{
    static size_t limit; /* under control_lock; 0: none was set */
    size_t index = call->index[0];
    struct arena *arena = made_arena_at(index);

    if (!option_is_set(OPTION_RETAIN)) return ENOENT;
    if (control_arena_kind(index) != CONTROL_ARENA_ONE) return EFAULT;
    if (call->writes) {
        if (call->new_value.size < page_bytes() || call->new_value.size == SIZE_MAX) return EFAULT;
        call->new_value.size = step_bytes(last_step_below(call->new_value.size, step_count()));
    }
    if (arena != NULL && serve_grow_limit_of(arena, call)) return 0;
    lock_take(&control_lock);
    call->old.size = limit != 0 ? limit : lextent_bytes(lextent_count() - 1);
    if (call->writes) limit = call->new_value.size;
    lock_give(&control_lock);
    return 0;
}

/* Those whose memory the program supplies have free pages of their own. */
static void purge_manual(size_t index, bool all)
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
    purge_manual(index, control_arena_kind(index) == CONTROL_ARENA_SUM);
    (void)prairie_purge();
    return 0;
}

int serve_decay_now(struct control_call *call)
{
    if (!is_there(call->index[0])) return 0;
    (void)arenas_clear(CLEAR_UNNEEDED);
    purge_beyond_budget();
    return 0;
}
