/* arena_hooks.h - an arena whose memory the program supplies: which hooks it has, who is in them,
 * and when they are asked.
 *
 * What is asked of them, and what they answered, is in extents.h. They are called without a lock,
 * and may come back to the doors. Each thread on its way through them is noted with the arena,
 * whose extents stay until it is back.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_ARENAS_ARENA_HOOKS_H
#define PRAIRIE_ARENAS_ARENA_HOOKS_H

#include "arena.h"
#include "extents.h"

/* All of these but arenas_forget_calls are called without a lock of arenas or later. */

/* Is the calling thread in a call of some arena's hooks? */
bool thread_is_in_hooks(void);
/* The program supplies the arena's memory from now on. Returns its hooks before, which no other
 * thread uses any more, unless this one is in a hook: then it does not wait. NULL: no memory, or
 * the arena is being destroyed. */
struct extent_hooks *arena_set_hooks(struct arena *arena, struct extent_hooks *hooks);
struct extent_hooks *arena_hooks(struct arena *arena);
/* What an arena without any has; not to be written to. */
struct extent_hooks *extent_hooks_unset(void);
/* Asks the hooks for more, when there are any: room for a run of these pages. False: there is
 * none. */
bool arena_grow(struct arena *arena, size_t pages, size_t align_pages);
/* In the child of a fork. */
void arenas_forget_calls(void);
/* Lets the hooks purge all free pages, when there are any. */
void arena_purge(struct arena *arena);
/* Gives extents that are wholly free back to the hooks; of one, which may be NULL, and of all
 * arenas. */
void arena_settle(struct arena *arena);
void arenas_settle(void);
/* At the end of an arena, when nothing is in its extents and nobody else calls its hooks: all of
 * them go back. */
void arena_give_extents(struct arena *arena);

#endif
