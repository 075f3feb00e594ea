/* figures.h - the table of all numbers that the statistics have, and where each is read.
 *
 * A row says what a number is called, of which type it is, where it is shown, and its place: a
 * scope, which is a struct of 64-bit members, and which of them.
 *
 *      "stats.arenas.*.pactive"   SIZE   control, JSON   OF_ARENA, active_pages
 *
 * The control tree finds rows by name. JSON takes those of a scope in the order of the table, with
 * the last word of the name for a key. Columns of the text and rows of OpenMetrics name places,
 * too. What prairie has no number for is at NOWHERE, and so is all of a scope that is not set: they
 * read as 0. The table is control_figures; the `leaf` of its rows is their place.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CONTROL_FIGURES_H
#define PRAIRIE_CONTROL_FIGURES_H

#include "../view/snapshot.h"
#include "control_tree.h"
#include "lengths.h"

enum figure_scope {
    OF_SHAPE,      /* struct figure_shape: of one class */
    OF_LARGE_SIZE, /* struct figure_step: of one step of large blocks */
    OF_LOCK,       /* struct lock_numbers */
    OF_FLOW,       /* struct snapshot_flow */
    OF_PROCESS,    /* struct snapshot */
    OF_BACKGROUND, /* the same */
    OF_SETTINGS,   /* struct figure_settings; from here on a name's first number is an arena's */
    OF_ARENA,      /* struct snapshot_arena */
    OF_PAGES,      /* the same */
    OF_SMALL,      /* the same */
    OF_LARGE,      /* the same */
    OF_CLASS,      /* struct snapshot_class; the second number is a bin's */
    OF_CLASS_LOCK, /* struct snapshot_arena: one lock for all bins */
    OF_LARGE_STEP, /* struct figure_step; the second number is a step's */
    OF_STEP,       /* the same, of all steps */
    FIGURE_SCOPES
};

struct figure_shape {
    uint64_t bytes, index, blocks, slab_bytes, slab_pages, shards;
    uint64_t allocated, cached, slabs_bytes, used_thousandths; /* of the arena that is set */
};

struct figure_settings {
    uint64_t uptime_ns;
    int64_t dirty_decay_ms, muzzy_decay_ms;
    uint64_t dss; /* address of a text */
};

struct figure_step {
    uint64_t bytes, index, large, large_bytes;
    uint64_t dirty, dirty_bytes, clean, clean_bytes, free, free_bytes;
};

/* A place: the scope, and below it the member, in steps of 64 bits. */
enum { PLACE_BITS = 12, NOWHERE = (1 << PLACE_BITS) - 1 };
#define PLACE(scope, type, member) \
    (uint16_t)((scope) << PLACE_BITS | offsetof(struct type, member) / sizeof(uint64_t))
#define SHAPE_AT(member) PLACE(OF_SHAPE, figure_shape, member)
#define LOCK_AT(member) PLACE(OF_LOCK, lock_numbers, member)
#define FLOW_AT(member) PLACE(OF_FLOW, snapshot_flow, member)
#define PROCESS_AT(member) PLACE(OF_PROCESS, snapshot, member)
#define ARENA_AT(member) PLACE(OF_ARENA, snapshot_arena, member)
#define CLASS_AT(member) PLACE(OF_CLASS, snapshot_class, member)
#define LARGE_STEP_AT(member) PLACE(OF_LARGE_STEP, figure_step, member)
#define STEP_AT(member) PLACE(OF_STEP, figure_step, member)

struct figures {
    const void *of[FIGURE_SCOPES]; /* NULL: all of it is 0 */
    const struct lengths *lengths;
    struct figure_settings settings;
    struct figure_shape shape;
    struct figure_step step;
};

/* `numbers` NULL: only sizes are asked for. */
void figures_of_process(struct figures *figures, const struct snapshot *numbers);
/* The arena of that number in the snapshot, or CONTROL_ARENAS_DESTROYED. Under control_lock. NULL:
 * it had not been made, or no memory. */
const struct snapshot_arena *figures_find_arena(size_t index);
/* `index` may be CONTROL_ARENAS_ALL, too. `lengths` NULL: nobody asks for those. */
void figures_of_arena(struct figures *figures, const struct snapshot_arena *arena, unsigned index,
                      const struct lengths *lengths);
/* Sets the scope, one of classes or of steps, to the class or step of that index. */
void figures_at(struct figures *figures, enum figure_scope scope, unsigned index);

/* NULL: it is nowhere. */
const void *figure_at(const struct figures *figures, unsigned place);
uint64_t figure(const struct figures *figures, unsigned place);
/* As a leaf of that type has it. */
union control_value figure_value(const struct figures *figures, const struct control_row *row);

#endif
