/* abandoned.h - caches that ended threads left with their blocks, for the next threads.
 *
 * A thread that begins goes on with the cache that was abandoned last: it need not fill magazines
 * from slabs that the one before it would have drained into them. What no thread needed for a while
 * goes back, and all of it when memory is wanted. All of it is under threads_lock; who is given a
 * cache has it alone. They stay in the list of caches (cache_list.h), and are counted by whoever
 * counts blocks.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_ABANDONED_H
#define PRAIRIE_CACHE_ABANDONED_H

#include "cache.h"

/* With more in it a cache is drained, and with more in all of them: blocks that nobody needs may
 * hold slabs open. */
#define ABANDONED_BYTES_MAX (128 * KiB)
#define ALL_ABANDONED_BYTES_MAX (512 * KiB)
enum { ABANDONED_MAX = 8 };

/* The bytes of the blocks in its magazines, and of those that are not in place; SIZE_MAX: it has
 * wide ones, whose room others want. Of another thread's cache it is a guess. */
size_t abandoned_bytes(const struct cache *cache);
/* With so many bytes in it. False: enough are there. */
bool abandoned_put(struct cache *cache, size_t bytes);
/* The one that was put last; NULL: there is none. */
struct cache *abandoned_take(void);
/* Takes the oldest one out, for the caller to drain. CLEAR_UNNEEDED: only those that no thread came
 * down to since this last returned NULL. NULL: there is none. */
struct cache *abandoned_take_to_drain(enum clear_what what);
/* As of a moment ago; without the lock. */
bool abandoned_is_empty(void);
/* Calls `visit` for each. */
void abandoned_visit(void (*visit)(struct cache *cache));

#endif
