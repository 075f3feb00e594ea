/* doors.h - the short ways that doors share.
 *
 * A door takes a block from the magazine of its front, or puts it there. When there is none, or no
 * room, it jumps to the slow door (slow.h). Doors set errno to ENOMEM or EINVAL when they refuse,
 * and keep it otherwise.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_DOORS_H
#define PRAIRIE_HEAP_DOORS_H

#include "misuse.h"
#include "slow.h"

#include "../../include/prairie/prairie.h"

/* The whole of the usual way, for sizes up to TABLE_BYTES_MAX. NULL: the magazine is empty. */
INLINE void *malloc_hit(struct front *front, size_t size)
{
    void *block = front_take(front, offset_of_size[size]);

    return CHECKED ? misuse_note_take(block) : block;
}

/* The same for a class, and for sampled threads too. NULL: there is none ready, as there never is
 * of class 0. */
INLINE void *class_hit(unsigned class_index)
{
    void *block = magazine_take(&thread_word()->magazine[class_index]);

    if (unlikely(block == NULL))
        block = front_take_unseen(thread_word_again(), offset_of_class(class_index));
    return CHECKED ? misuse_note_take(block) : block;
}

/* The magazine at the offset of that size had nothing. */
NOINLINE void *malloc_miss(size_t size, struct front *front, size_t offset);
NOINLINE void *malloc_beyond_table(size_t size);
/* Where the size told that a block goes there is no room. */
NOINLINE void free_sized_overflow(struct front *front, void *block, size_t size);
/* The size told is more than TABLE_BYTES_MAX. */
NOINLINE void free_sized_beyond_table(void *block, size_t size);

/* May a block of this many bytes be what realloc made of a small one for a size beyond the table?
 */
INLINE bool is_resized_from(size_t size, size_t bytes)
{
    return size > TABLE_BYTES_MAX && size <= bytes && size > bytes - bytes / 4;
}

/* The usable bytes of what the class map does not know; aborts, in the words of that call, for what
 * is no block. NULL has none. */
NOINLINE size_t usable_beyond_map(enum misused_call call, const void *block);
/* The same of any block. */
INLINE size_t usable_bytes(enum misused_call call, const void *block)
{
    size_t bytes = bytes_of_offset(class_map_at(block));

    return likely(bytes != 0) ? bytes : usable_beyond_map(call, block);
}
/* Every byte that both blocks hold, for programs write up to the usable size. The new one was asked
 * for with `size`. */
void copy_contents(void *moved, const void *block, size_t old_bytes, size_t size);
/* Calls of realloc(block, 0) so far. */
uint64_t realloc_zero_calls(void);

#endif
