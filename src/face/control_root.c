/* control_root.c - the version, the snapshot's epoch, the background thread, and how the library
 * was built.
 * SPDX-License-Identifier: MIT
 */
#include "../space/commit.h"
#include "../arenas/decay.h"
#include "../base/options.h"
#include "../view/snapshot.h"
#include "control_tables.h"

#include <errno.h>

/* Whoever reads the version looks for the release of jemalloc whose interface this is. */
#define JEMALLOC_RELEASE "5.3.1-0-gprairie-" PRAIRIE_VERSION

enum root_leaf {
    ROOT_VERSION,
    ROOT_EPOCH,
    ROOT_BACKGROUND_THREAD,
    ROOT_MAX_BACKGROUND_THREADS,
    ROOT_THREAD_IDLE,
    ROOT_APPROXIMATE_ACTIVE,
};

static const struct control_row root_rows[] = {
    { "version", CONTROL_TEXT, CONTROL_READ, ROOT_VERSION },
    { "epoch", CONTROL_U64, CONTROL_BOTH, ROOT_EPOCH },
    { "background_thread", CONTROL_BOOL, CONTROL_BOTH, ROOT_BACKGROUND_THREAD },
    { "max_background_threads", CONTROL_SIZE, CONTROL_BOTH, ROOT_MAX_BACKGROUND_THREADS },
    { "thread.idle", CONTROL_ACTION, 0, ROOT_THREAD_IDLE },
    { "approximate_stats.active", CONTROL_SIZE, CONTROL_READ, ROOT_APPROXIMATE_ACTIVE },
};

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

static int serve_background_thread(struct control_call *call)
{
    lock_take(&control_lock);
    call->old.flag = option_helper_thread();
    if (call->writes) option_set(OPTION_BACKGROUND_THREAD, call->new_value.flag);
    lock_give(&control_lock);
    return 0;
}

static int serve_thread_limit(struct control_call *call)
{
    int error = 0;

    lock_take(&control_lock);
    call->old.size = option_value(OPTION_MAX_BACKGROUND_THREADS);
    if (call->writes) {
        size_t wanted = call->new_value.size;
        if (wanted == 0 || wanted > CONTROL_ARENAS_ALL) error = EINVAL;
        else option_set(OPTION_MAX_BACKGROUND_THREADS, wanted);
    }
    lock_give(&control_lock);
    return error;
}

/* Vast blocks are no runs. */
static size_t active_bytes(void)
{
    return (page_heap_used_pages_now(&page_heap) << space.page_shift)
         + RELAXED_LOAD(commit.vast_bytes);
}

static int serve_root(struct control_call *call)
{
    switch (call->row->leaf) {
    case ROOT_VERSION: call->old.text = JEMALLOC_RELEASE; return 0;
    case ROOT_EPOCH: return serve_epoch(call);
    case ROOT_BACKGROUND_THREAD: return serve_background_thread(call);
    case ROOT_MAX_BACKGROUND_THREADS: return serve_thread_limit(call);
    case ROOT_THREAD_IDLE:
        thread_flush();
        (void)decay_after_return();
        return 0;
    case ROOT_APPROXIMATE_ACTIVE: call->old.size = heap_start() ? active_bytes() : 0; return 0;
    default: return ENOENT;
    }
}

const struct control_table control_root = { root_rows, ARRAY_COUNT(root_rows), NULL, serve_root };

/* ---- config ---- */

enum config_leaf { CONFIG_FALSE, CONFIG_TRUE, CONFIG_DEBUG, CONFIG_MALLOC_CONF };

static const struct control_row config_rows[] = {
    { "config.cache_oblivious", CONTROL_BOOL, CONTROL_READ, CONFIG_FALSE },
    { "config.debug", CONTROL_BOOL, CONTROL_READ, CONFIG_DEBUG },
    { "config.fill", CONTROL_BOOL, CONTROL_READ, CONFIG_TRUE },
    { "config.lazy_lock", CONTROL_BOOL, CONTROL_READ, CONFIG_FALSE },
    { "config.malloc_conf", CONTROL_TEXT, CONTROL_READ, CONFIG_MALLOC_CONF },
    { "config.opt_safety_checks", CONTROL_BOOL, CONTROL_READ, CONFIG_DEBUG },
    { "config.prof", CONTROL_BOOL, CONTROL_READ, CONFIG_TRUE },
    { "config.prof_libgcc", CONTROL_BOOL, CONTROL_READ, CONFIG_FALSE },
    { "config.prof_libunwind", CONTROL_BOOL, CONTROL_READ, CONFIG_FALSE },
    { "config.prof_frameptr", CONTROL_BOOL, CONTROL_READ, CONFIG_TRUE },
    { "config.stats", CONTROL_BOOL, CONTROL_READ, CONFIG_TRUE },
    { "config.utrace", CONTROL_BOOL, CONTROL_READ, CONFIG_FALSE },
    { "config.xmalloc", CONTROL_BOOL, CONTROL_READ, CONFIG_TRUE },
};

static int serve_config(struct control_call *call)
{
    switch (call->row->leaf) {
    case CONFIG_TRUE: call->old.flag = true; return 0;
    case CONFIG_DEBUG: call->old.flag = CHECKED; return 0;
    case CONFIG_MALLOC_CONF: call->old.text = ""; return 0;
    default: call->old.flag = false; return 0;
    }
}

const struct control_table control_config = { config_rows, ARRAY_COUNT(config_rows), NULL,
                                              serve_config };
