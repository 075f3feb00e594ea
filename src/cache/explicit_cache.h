/* explicit_cache.h - caches that a program makes and names in its calls, beside the one that each
 * thread has.
 *
 * An explicit cache is a cache like any other, but nobody's: the program sees to it that one thread
 * at a time uses it. It holds blocks of one manual arena, or of automatic ones, never both: a block
 * that does not belong goes home instead. Its number is never given again while it lives.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_EXPLICIT_CACHE_H
#define PRAIRIE_CACHE_EXPLICIT_CACHE_H

#include "cache.h"

enum { EXPLICIT_CACHE_COUNT_MAX = 4094 }; /* what MALLOCX_TCACHE can name */

/* The number of a new one. The process has started. EXPLICIT_CACHE_COUNT_MAX: no memory, or no
 * number is left. */
unsigned explicit_cache_create(void);
/* NULL: there is none of this number. */
struct cache *explicit_cache_at(unsigned number);
/* Gives its blocks back, and the cache and its number too. */
void explicit_cache_destroy(unsigned number);

/* A block of the class, out of the arena unless that is NULL. NULL: no memory. */
void *explicit_cache_take(struct cache *cache, struct arena *arena, unsigned class_index);
/* The arena that a block would be out of; the first one stands for all automatic ones. */
struct arena *explicit_cache_arena(struct cache *cache);
/* False: the block belongs to another arena than those that the cache fills from. */
bool explicit_cache_put(struct cache *cache, unsigned class_index, void *block);
void explicit_cache_flush(struct cache *cache);
/* While there is one thread: all give their blocks back, and may be named for any arena again. */
void explicit_caches_empty(void);

/* Of the table of pointers, for readers of another process. */
const void *explicit_cache_table_address(void);

/* For fork and for walks. */
extern PRIVATE struct lock explicit_caches_lock;
/* Written under that lock; read without it by who has the number. */
extern PRIVATE struct cache *explicit_caches[EXPLICIT_CACHE_COUNT_MAX];
extern PRIVATE unsigned explicit_cache_end; /* under it: no number at or above was given */
void explicit_cache_visit(void (*visit)(const struct cache *cache, void *context), void *context);
/* In the child of a fork: those that were being used lose their blocks, also when it was by the
 * thread that forks, within a hook. What the others' wide magazines can hold is counted anew. */
void explicit_cache_forget_busy(void);

#endif
