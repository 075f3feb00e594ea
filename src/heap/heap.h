/* heap.h - the doors: what a program calls, and the rarer ways behind them.
 *
 * Owns nothing but the order of events. Doors set errno to ENOMEM or EINVAL when they refuse and
 * keep it otherwise. Names ending in a reason (malloc_refill, free_overflow) are the ways taken for
 * that reason.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_HEAP_H
#define PRAIRIE_HEAP_HEAP_H

#include "../arenas/manual.h"
#include "../cache/thread.h"
#include "../guard/unwind.h"

#include "../../include/prairie/prairie.h"

/* Prepares the process for its first allocation. False: no memory; the next call tries again. */
bool heap_start(void);
/* What this thread's slot points at, once it is more than the constant of a thread before its first
 * call. NULL: no memory. */
struct cache *heap_attach(void);

/* In the checking flavours: a block goes to the program. NULL: none does. Returns its argument. */
void *misuse_note_take(void *block);

/* The class of an address in the class map, whichever magazine frees go to; 0: none. */
INLINE unsigned class_at(const void *address)
{
    return class_of_offset(class_map_at(address) % OFFSET_FOR_FREES);
}

/* The whole of the usual way, for sizes up to TABLE_BYTES_MAX. NULL: the magazine is empty. */
INLINE void *malloc_hit(struct cache *cache, size_t size)
{
    void *block = cache_take(cache, offset_of_size[size]);

    return CHECKED ? misuse_note_take(block) : block;
}

/* The same for a class, and for sampled threads too. NULL: there is none ready. */
INLINE void *class_hit(struct cache *cache, unsigned class_index)
{
    void *block = magazine_take(&cache->magazine[class_index]);

    return likely(block != NULL) ? block : sampled_front_take(cache, offset_of_class(class_index));
}

NOINLINE void *malloc_beyond_table(size_t size);
/* The ways of a thread whose slot points at no plain cache: its first call, one past its end, or
 * one that is counted, perhaps because it shall hold no blocks. What comes back is as class_take,
 * large_take and prairie_free have it. */
void *class_take_unusual(struct cache *front, unsigned class_index);
void *large_take_unusual(size_t size, size_t align, bool zero);
void free_unusual(struct cache *front, void *block);
/* For doors that go past the cache: what was taken or given is counted if the thread is counted. */
void *counted(void *block, size_t bytes);
void count_given(size_t bytes);
/* The whole of a door; sets ENOMEM. Jumped to, not called, so that the caller of the door is the
 * first in its stack; or given the door's own frame. `align` is 1 or a power of two. */
NOINLINE void *take_unusual(size_t size, size_t align, bool zero);
NOINLINE void *take_unusual_for(const void *frame, size_t size, size_t align, bool zero);

/* Sampled blocks, of any size, in pages of their own. Those of a manual arena are in state
 * PAGE_MANUAL, so that it knows them; NULL for `arena`: of the one that the thread's blocks come
 * from. */
void *sampled_take(struct counting_front *counting, struct arena *arena, size_t bytes,
                   const void *frame);
void sampled_put(uint32_t page);
size_t sampled_bytes(uint32_t page);
/* The number of the record of a block that begins there; 0: it is not sampled. */
uint32_t sampled_number(uint32_t page);
/* Before a manual arena is reset: its sampled blocks are gone. */
void sampled_forget_all(struct arena *arena);
/* Makes a large block a sampled one, if there is memory for that. */
void sampled_begin(struct counting_front *counting, void *block, const void *frame);
/* Around a change of size: a plain large block meanwhile. The number is 0 for one that is not
 * sampled. `block` is where it was before; `resized`: it may be gone from there. */
uint32_t sampled_pause(uint32_t page);
void sampled_go_on(const void *block, uint32_t number, bool resized);
/* As large_resize and large_resize_in_place, for a thread that is counted or a block that was
 * sampled. */
void *large_resize_counted(void *block, size_t size, const void *frame);
size_t large_resize_in_place_counted(void *block, size_t least, size_t most, const void *frame);
/* Makes every thread ready to be sampled, with stacks of up to `depth` callers. False: no memory,
 * or not alone (threads_sample). */
bool sampling_start(unsigned depth);
extern PRIVATE bool sampling_active; /* atomic: nothing is sampled while it is false */
/* Functions of the program that see samples; NULL: it has none. They are called without a lock, and
 * what they allocate is not sampled. Blocks of an arena that is reset are not told of. */
struct sampling_hooks {
    /* Return addresses of the callers, in the place of those that frames tell. */
    void (*walk)(void **return_address, unsigned *depth, unsigned most);
    void (*taken)(const void *block, size_t size, void **return_address, unsigned depth,
                  size_t bytes);
    void (*given)(const void *block, size_t bytes);
};
extern PRIVATE struct sampling_hooks sampling_hooks; /* atomic, each by itself */
/* Walks as if no hook were there: within `walk` the stack of the sample, else the caller's. */
void sampling_walk(void **return_address, unsigned *depth, unsigned most);
/* Somebody wants to look now and then: profile_poll of view/profile.h. */
extern PRIVATE bool sampling_polls; /* atomic */

/* The magazine at the place of that size had nothing. */
NOINLINE void *malloc_miss(size_t size, struct cache *cache, size_t offset);
COLD void *malloc_refill(size_t size, struct cache *cache);
/* Does what the options ask for that were read just now. Before main. */
void heap_obey_options(void);
/* Calls of realloc(block, 0) so far. */
uint64_t realloc_zero_calls(void);

/* A block of a class, from the magazine or from where magazines are filled. NULL: no memory. */
void *class_take(unsigned class_index);
NOINLINE void free_overflow(struct cache *cache, void *block);
NOINLINE void free_sized_overflow(struct cache *cache, void *block);
/* The same past all caches: straight from a slab, and straight back. */
void *uncached_take(unsigned class_index);
void uncached_free(void *block);
/* The same; `cache` is plain, or NULL for a thread that holds no blocks. */
void free_plainly(struct cache *cache, void *block);

/* Large blocks: whole pages. `zero`: all bytes must read as zero. NULL: no memory. */
void *large_take(size_t size, size_t align, bool zero);
/* The same, not counted for anybody. */
void *large_lease(size_t size, size_t align, bool zero);
/* The same, of no arena, whatever the thread is bound to. */
void *large_lease_shared(size_t size, size_t align, bool zero);
/* The same, of this arena, whatever the thread is bound to. */
void *large_lease_of(struct arena *arena, size_t size, size_t align, bool zero);
void large_put(uint32_t page);
/* The same of a vast block (heap/vast.h), sampled or not. */
void large_put_vast(uint32_t page);
/* Resizes in place or by moving; a smaller one that can do neither stays as long as it is. NULL: no
 * memory, the block is as it was. */
void *large_resize(void *block, uint32_t page, size_t size);
size_t large_bytes(uint32_t page);
/* To `most` bytes in place, or at least `least`; else the block stays as it is. Returns its bytes
 * then. */
size_t large_resize_in_place(uint32_t page, size_t least, size_t most);

/* Large blocks of an arena that owns them. */
void *manual_take(struct arena *arena, size_t size, size_t align, bool zero);
/* The same once, without help; NULL: no memory. */
void *manual_take_once(struct arena *arena, size_t pages, size_t align_pages, bool zero);
/* A block of an arena that owns it, whatever thread gives it back. */
void manual_put(uint32_t page);
void home_put(uint32_t page, void *block);
COLD void free_manual(uint32_t page, void *block);
/* Makes stale pages read as zero. */
void large_clear(char *block, size_t bytes);

/* Every byte that both blocks hold, for programs write up to the usable size. The new one was asked
 * for with `size`. */
void copy_contents(void *moved, const void *block, size_t old_bytes, size_t size);

/* May a block of this many bytes be what realloc made of a small one for a size beyond the table?
 */
INLINE bool is_resized_from(size_t size, size_t bytes)
{
    return size > TABLE_BYTES_MAX && size <= bytes && size > bytes - bytes / 4;
}

/* What a pointer is, for the doors that take one. */
enum pointer_kind {
    POINTER_FOREIGN,
    POINTER_SMALL,
    POINTER_LARGE,
    POINTER_SAMPLED,
    POINTER_INTERIOR,
    POINTER_FREED
};
enum pointer_kind pointer_kind(const void *pointer, uint32_t *page);
/* One line on stderr, and abort. `verb` is "free", "realloc" or "malloc_usable_size". */
NORETURN COLD void misuse_abort(const char *verb, enum pointer_kind kind, const void *pointer);
/* In the checking flavours: a pointer comes back, and everything that can be known about it is
 * looked at. */
void misuse_check(const char *verb, const void *pointer);
void misuse_note_free(const void *pointer);
void misuse_check_size(const void *pointer, size_t size);
/* The same where `wanted` bytes serve that size. */
void misuse_check_told(const void *pointer, size_t size, size_t wanted);

COLD void *refuse_memory(void); /* sets ENOMEM, returns NULL */

/* ---- when memory runs short ---- */

/* A block of a class, or a large one, was not to be had: the reserve, and what callbacks let go.
 * NULL: there is none all the same. */
COLD void *shortage_small(unsigned class_index);
COLD void *shortage_large(size_t pages, size_t align_pages, bool zero);
/* The same for a large block of the calling thread's arena. */
COLD void *shortage_manual(struct arena *arena, size_t pages, size_t align_pages, bool zero);
/* The same once, without help; NULL: no memory. */
void *class_take_once(unsigned class_index);
void *large_take_once(size_t pages, size_t align_pages, bool zero);
/* Near a limit, before memory for `size` bytes is taken: gives back, fills the reserve up, tells
 * callbacks. */
COLD void shortage_look(size_t size);
/* Called once, at the start of the process. */
void shortage_start(void);
/* What the options ask for, once they are read and the heap has started. */
void shortage_apply_options(void);
/* Arranges that shortage_look is called when it is worth it, after something about that has
 * changed. */
void shortage_set_look(void);
/* Gives back what this thread, depots and stocks hold ready, so that whole pages become free. */
void shortage_gather(void);
/* How much the reserve is to hold. False: it could not be filled. */
bool shortage_reserve(size_t bytes);
/* Has the program chosen that, or let it be chosen? */
bool shortage_reserve_is_chosen(void);

/* Walks everything that prairie knows; aborts on a broken invariant. */
void heap_check_all(void);
/* In the audit flavour, now and then. */
void heap_audit(void);

#endif
