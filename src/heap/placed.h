/* placed.h - arenas that calls and controls name.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_PLACED_H
#define PRAIRIE_HEAP_PLACED_H

#include "../arenas/arena.h"

/* The ends of arenas, of which manual.h has the parts: what was sampled of it is forgotten, too,
 * and what the calling thread's cache has of it is flushed. */
void placed_reset(struct arena *arena);
bool placed_destroy(struct arena *arena);

/* The arena of this number, made if it is an automatic one that is not there yet. NULL: there is
 * none. */
struct arena *placed_arena(unsigned index);
/* The same, but NULL if it is not there yet. */
struct arena *placed_arena_if_made(size_t index);
/* The arena of the block at an address: of a small one, any address inside; of a large one, any in
 * its first page, for only the ends of a run are known in the page map. NULL: none is found there.
 * Large blocks of automatic arenas are said to be of the first one. */
struct arena *arena_of_address(const void *address);

#endif
