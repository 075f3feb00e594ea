/* control_arenas.c - arenas and size classes: how many, how large, and how they give memory back.
 *
 * Free pages are shared by all arenas that the library makes by itself. So what jemalloc sets for
 * each arena (how long pages stay dirty, from what size on they do not) is one value here: whoever
 * sets it for one of these arenas sets it for all. A bin is a class of blocks below
 * SMALL_BYTES_MAX; an lextent is a step of four to a doubling, by which large blocks, which are
 * whole pages, are counted.
 * SPDX-License-Identifier: MIT
 */
#include "../arenas/decay.h"
#include "../base/options.h"
#include "../heap/placed.h"
#include "../policy/purge.h"
#include "../view/snapshot.h"
#include "control_classes.h"
#include "control_tables.h"
#include "lengths.h"

#include <errno.h>

enum arenas_leaf {
    ARENAS_NARENAS,
    ARENAS_DIRTY_DECAY_MS,
    ARENAS_MUZZY_DECAY_MS,
    ARENAS_QUANTUM,
    ARENAS_PAGE,
    ARENAS_HUGEPAGE,
    ARENAS_TCACHE_MAX,
    ARENAS_NBINS,
    ARENAS_NHBINS,
    ARENAS_NLEXTENTS,
    ARENAS_BIN_SIZE,
    ARENAS_BIN_NREGS,
    ARENAS_BIN_SLAB_SIZE,
    ARENAS_BIN_NSHARDS,
    ARENAS_LEXTENT_SIZE,
    ARENAS_LOOKUP,
    ARENA_INITIALIZED, /* from here on the first number of the name is an arena's */
    ARENA_PURGE,
    ARENA_DECAY,
    ARENA_DSS,
    ARENA_OVERSIZE_THRESHOLD,
    ARENA_DIRTY_DECAY_MS,
    ARENA_MUZZY_DECAY_MS,
    ARENA_RETAIN_GROW_LIMIT,
    ARENA_NAME,
};

static const struct control_row arenas_rows[] = {
    { "arenas.narenas", CONTROL_UNSIGNED, CONTROL_READ, ARENAS_NARENAS },
    { "arenas.dirty_decay_ms", CONTROL_SSIZE, CONTROL_BOTH, ARENAS_DIRTY_DECAY_MS },
    { "arenas.muzzy_decay_ms", CONTROL_SSIZE, CONTROL_BOTH, ARENAS_MUZZY_DECAY_MS },
    { "arenas.quantum", CONTROL_SIZE, CONTROL_READ, ARENAS_QUANTUM },
    { "arenas.page", CONTROL_SIZE, CONTROL_READ, ARENAS_PAGE },
    { "arenas.hugepage", CONTROL_SIZE, CONTROL_READ, ARENAS_HUGEPAGE },
    { "arenas.tcache_max", CONTROL_SIZE, CONTROL_READ, ARENAS_TCACHE_MAX },
    { "arenas.nbins", CONTROL_UNSIGNED, CONTROL_READ, ARENAS_NBINS },
    { "arenas.nhbins", CONTROL_UNSIGNED, CONTROL_READ, ARENAS_NHBINS },
    { "arenas.nlextents", CONTROL_UNSIGNED, CONTROL_READ, ARENAS_NLEXTENTS },
    { "arenas.bin.*.size", CONTROL_SIZE, CONTROL_READ, ARENAS_BIN_SIZE },
    { "arenas.bin.*.nregs", CONTROL_UNSIGNED, CONTROL_READ, ARENAS_BIN_NREGS },
    { "arenas.bin.*.slab_size", CONTROL_SIZE, CONTROL_READ, ARENAS_BIN_SLAB_SIZE },
    { "arenas.bin.*.nshards", CONTROL_UNSIGNED, CONTROL_READ, ARENAS_BIN_NSHARDS },
    { "arenas.lextent.*.size", CONTROL_SIZE, CONTROL_READ, ARENAS_LEXTENT_SIZE },
    { "arenas.lookup", CONTROL_RAW, CONTROL_BOTH, ARENAS_LOOKUP },
    { "arena.*.initialized", CONTROL_BOOL, CONTROL_READ, ARENA_INITIALIZED },
    { "arena.*.purge", CONTROL_ACTION, 0, ARENA_PURGE },
    { "arena.*.decay", CONTROL_ACTION, 0, ARENA_DECAY },
    { "arena.*.dss", CONTROL_TEXT, CONTROL_BOTH, ARENA_DSS },
    { "arena.*.oversize_threshold", CONTROL_SIZE, CONTROL_BOTH, ARENA_OVERSIZE_THRESHOLD },
    { "arena.*.dirty_decay_ms", CONTROL_SSIZE, CONTROL_BOTH, ARENA_DIRTY_DECAY_MS },
    { "arena.*.muzzy_decay_ms", CONTROL_SSIZE, CONTROL_BOTH, ARENA_MUZZY_DECAY_MS },
    { "arena.*.retain_grow_limit", CONTROL_SIZE, CONTROL_BOTH, ARENA_RETAIN_GROW_LIMIT },
    { "arena.*.name", CONTROL_RAW, CONTROL_BOTH, ARENA_NAME },
};

/* ---- which arenas there are ---- */

unsigned control_arena_count(void)
{
    return arenas_end() > arena_limit ? arenas_end() : arena_limit;
}

bool control_arena_is_all(size_t index)
{
    return index == CONTROL_ARENAS_ALL || index == control_arena_count();
}

/* The first one counts as made, for what is of no arena is its. */
bool control_arena_is_made(size_t index) { return index == 0 || made_arena_at(index) != NULL; }

bool control_arena_is_past(size_t index)
{
    return index == CONTROL_ARENAS_DESTROYED && RELAXED_LOAD(past_arenas.count) != 0;
}

bool control_arena_is_known(size_t index)
{
    return index <= control_arena_count() || index == CONTROL_ARENAS_ALL
        || index == CONTROL_ARENAS_DESTROYED;
}

static bool arenas_exists(const struct control_row *row, const size_t *index)
{
    if (row->leaf >= ARENA_INITIALIZED) return control_arena_is_known(index[0]);
    if (row->leaf == ARENAS_LEXTENT_SIZE) return index[0] < lextent_count();
    if (row->leaf >= ARENAS_BIN_SIZE && row->leaf <= ARENAS_BIN_NSHARDS)
        return index[0] < BIN_CLASS_COUNT;
    return true;
}

/* ---- names that programs give to arenas ---- */

void arena_name_copy(unsigned index, char *name)
{
    static const char automatic[] = "auto_", made[] = "manual_";
    const char *start = index < arena_limit ? automatic : made;
    const struct arena *arena = made_arena_at(index);
    size_t used = __builtin_strlen(start);

    check(lock_is_mine(&control_lock));
    if (arena != NULL && arena->name[0] != '\0') {
        __builtin_memcpy(name, arena->name, sizeof arena->name);
        return;
    }
    __builtin_memcpy(name, start, used);
    for (unsigned unit = 1000; unit > 0; unit /= 10)
        if (index >= unit || unit == 1) name[used++] = (char)('0' + index / unit % 10);
    name[used] = '\0';
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
static int serve_name(struct control_call *call)
{
    int error = 0;

    if (control_arena_is_all(call->index[0])) return EINVAL;
    if (!control_arena_is_made(call->index[0])) return EFAULT;
    if (call->old_buffer != NULL
        && (call->old_length == NULL || *call->old_length != sizeof(char *)))
        return EINVAL;
    if (call->new_buffer != NULL && call->new_length != sizeof(char *)) return EINVAL;
    lock_take(&control_lock);
    if (call->old_buffer != NULL)
        arena_name_copy((unsigned)call->index[0], *(char **)call->old_buffer);
    if (call->new_buffer != NULL) {
        const char *name = *(const char *const *)call->new_buffer;
        error = name != NULL ? name_arena((unsigned)call->index[0], name) : EINVAL;
    }
    lock_give(&control_lock);
    return error;
}

/* ---- what is one value for all ---- */

static int serve_decay(struct control_call *call, enum option option)
{
    int error = 0;

    lock_take(&control_lock);
    call->old.ssize = (int64_t)option_value(option);
    if (call->writes) {
        if (call->new_value.ssize < -1) error = EFAULT;
        else option_set(option, call->new_value.u64);
    }
    lock_give(&control_lock);
    if (call->writes && error == 0 && heap_start()) decay_obey_options();
    return error;
}

static int serve_oversize(struct control_call *call)
{
    lock_take(&control_lock);
    call->old.size = option_value(OPTION_OVERSIZE_THRESHOLD);
    if (call->writes) option_set(OPTION_OVERSIZE_THRESHOLD, call->new_value.size);
    lock_give(&control_lock);
    if (call->writes && heap_start()) decay_obey_options();
    return 0;
}

static int serve_dss(struct control_call *call)
{
    int wanted, error = 0;

    lock_take(&control_lock);
    call->old.text = option_word(OPTION_DSS, option_value(OPTION_DSS));
    if (call->writes) {
        wanted = option_number(OPTION_DSS, call->new_value.text);
        if (wanted < 0) error = EINVAL;
        else option_set(OPTION_DSS, (uint64_t)wanted);
    }
    lock_give(&control_lock);
    return error;
}

/* Of an arena whose memory the program supplies: the longest extent that is asked for ahead of
 * need. For all others the heap grows by what is missing, at most 64 MiB ahead; so the limit is
 * kept and no more. */
static int serve_grow_limit(struct control_call *call)
{
    static size_t limit; /* under control_lock; 0: none was set */
    size_t index = call->index[0];
    struct arena *arena = made_arena_at(index);

    if (!option_is_set(OPTION_RETAIN)) return ENOENT;
    if (!control_arena_is_made(index)) return EFAULT;
    if (call->writes) {
        if (call->new_value.size < page_bytes() || call->new_value.size == SIZE_MAX) return EFAULT;
        call->new_value.size = step_bytes(last_step_below(call->new_value.size, step_count()));
    }
    if (arena != NULL && arena->extents != NULL) {
        lock_take(&arena->lock);
        call->old.size = arena->extents->grow_limit;
        if (call->writes) extents_limit_growth(arena->extents, call->new_value.size);
        lock_give(&arena->lock);
        return 0;
    }
    lock_take(&control_lock);
    call->old.size = limit != 0 ? limit : lextent_bytes(lextent_count() - 1);
    if (call->writes) limit = call->new_value.size;
    lock_give(&control_lock);
    return 0;
}

static int serve_lookup(struct control_call *call)
{
    const struct arena *arena;
    const void *block;

    if (call->new_buffer == NULL || call->new_length != sizeof block) return EINVAL;
    if (call->old_buffer == NULL || call->old_length == NULL
        || *call->old_length != sizeof arena->index)
        return EINVAL;
    block = *(const void *const *)call->new_buffer;
    arena = arena_of_address(block);
    if (arena == NULL) return EINVAL;
    __builtin_memcpy(call->old_buffer, &arena->index, sizeof arena->index);
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

static int serve_arena(struct control_call *call)
{
    size_t index = call->index[0];
    bool made = control_arena_is_made(index), all = control_arena_is_all(index);

    switch (call->row->leaf) {
    case ARENA_INITIALIZED: call->old.flag = made || all || control_arena_is_past(index); return 0;
    case ARENA_PURGE:
        if (made || all) {
            purge_manual(index, all);
            (void)prairie_purge();
        }
        return 0;
    case ARENA_DECAY:
        if (made || all) {
            (void)arenas_drain_unneeded();
            purge_beyond_budget(&page_heap);
        }
        return 0;
    case ARENA_DSS: return serve_dss(call);
    case ARENA_NAME: return serve_name(call);
    default: break;
    }
    if (call->row->leaf == ARENA_RETAIN_GROW_LIMIT) return serve_grow_limit(call);
    if (!made && !all) return EFAULT;
    switch (call->row->leaf) {
    case ARENA_OVERSIZE_THRESHOLD: return serve_oversize(call);
    case ARENA_DIRTY_DECAY_MS: return serve_decay(call, OPTION_DIRTY_DECAY_MS);
    default: return serve_decay(call, OPTION_MUZZY_DECAY_MS);
    }
}

static int serve_arenas(struct control_call *call)
{
    size_t index = call->index[0];

    if (!heap_start()) return EAGAIN;
    switch ((enum arenas_leaf)call->row->leaf) {
    case ARENAS_NARENAS: call->old.number = control_arena_count(); return 0;
    case ARENAS_DIRTY_DECAY_MS: return serve_decay(call, OPTION_DIRTY_DECAY_MS);
    case ARENAS_MUZZY_DECAY_MS: return serve_decay(call, OPTION_MUZZY_DECAY_MS);
    case ARENAS_QUANTUM: call->old.size = QUANTUM_BYTES; return 0;
    case ARENAS_PAGE: call->old.size = page_bytes(); return 0;
    case ARENAS_HUGEPAGE: call->old.size = huge_page_bytes(); return 0;
    case ARENAS_TCACHE_MAX: call->old.size = class_bytes[cached_class_max]; return 0;
    case ARENAS_NBINS: call->old.number = BIN_CLASS_COUNT; return 0;
    case ARENAS_NHBINS: call->old.number = cached_class_max; return 0;
    case ARENAS_NLEXTENTS: call->old.number = lextent_count(); return 0;
    case ARENAS_BIN_SIZE: call->old.size = class_bytes[bin_class(index)]; return 0;
    case ARENAS_BIN_NREGS: call->old.number = slab_shape[bin_class(index)].block_count; return 0;
    case ARENAS_BIN_SLAB_SIZE: call->old.size = slab_shape[bin_class(index)].bytes; return 0;
    case ARENAS_BIN_NSHARDS: call->old.number = 1; return 0;
    case ARENAS_LEXTENT_SIZE: call->old.size = lextent_bytes((unsigned)index); return 0;
    case ARENAS_LOOKUP: return serve_lookup(call);
    default: return serve_arena(call);
    }
}

const struct control_table control_arenas = { arenas_rows, ARRAY_COUNT(arenas_rows), arenas_exists,
                                              serve_arenas };
