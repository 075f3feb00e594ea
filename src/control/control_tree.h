/* control_tree.h - the tables of the control tree, and what serves their leaves.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CONTROL_TREE_H
#define PRAIRIE_CONTROL_TREE_H

#include "../base/options.h"
#include "../heap/placed.h"
#include "../sample/sampling.h"
#include "control.h"

extern PRIVATE const struct control_table control_list;    /* control_list.h */
extern PRIVATE const struct control_table control_opt;     /* options */
extern PRIVATE const struct control_table control_figures; /* sizes, and the snapshot's numbers */

typedef int control_serve(struct control_call *call);

/* ---- control_arenas.c ---- */

control_serve serve_purge, serve_decay_now;
control_serve serve_grow_limit, serve_name;
int serve_option(struct control_call *call, enum option option);
int serve_decay(struct control_call *call, enum option option);
/* An arena with hooks has a value of its own. */
int serve_arena_decay(struct control_call *call, enum option option);
int64_t control_arena_decay(size_t index, enum option option);
int serve_arena_option(struct control_call *call, enum option option);

/* ---- control_blocks.c ---- */

control_serve serve_lookup, serve_batch_take, serve_batch_query, serve_query;

/* ---- control_placed.c ---- */

/* Records never come from hooks, so that the second member changes nothing. */
struct arena_wish {
    struct extent_hooks *hooks;
    bool records_from_hooks;
};
/* The caller's wish is so many bytes of that. */
int serve_create(struct control_call *call, size_t wish_bytes);
control_serve serve_reset, serve_destroy, serve_extent_hooks, serve_active_at;
control_serve serve_cache_create, serve_cache_flush, serve_cache_destroy;
control_serve serve_thread_arena, serve_cache_enabled, serve_cache_max, serve_cache_blocks;
int serve_thread_flush(void);

/* ---- control_prof.c ---- */

/* A switch that is off for good without prof:true. */
int serve_switch(struct control_call *call, bool is_on, void (*set)(bool));
control_serve serve_dump, serve_profile_reset, serve_prefix;
int serve_prof_hook(struct control_call *call, enum sampling_hook_kind kind);
control_serve serve_thread_name, serve_thread_sampling;

#endif
