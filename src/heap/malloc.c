/* malloc.c - the door for new blocks, and calloc beside it.
 * SPDX-License-Identifier: MIT
 */
#include "doors.h"
#include "large.h"

PUBLIC void *prairie_malloc(size_t size)
{
    struct front *front = thread_front();
    void *block;

    if (unlikely(size > TABLE_BYTES_MAX)) return malloc_beyond_table(size);

    block = malloc_hit(front, size);
    if (unlikely(block == NULL)) return malloc_miss(size, front, offset_of_size[size]);
    return block;
}

/* For a sampled thread this is the usual way. */
void *malloc_miss(size_t size, struct front *front, size_t offset)
{
    void *block = front_take_unseen(front, offset);

    if (unlikely(block == NULL)) return alloc_here(size, 1, false);
    return CHECKED ? misuse_note_take(block) : block;
}

void *malloc_beyond_table(size_t size)
{
    void *block;

    if (size > SMALL_BYTES_MAX) return malloc_large(size);
    block = class_hit(class_beyond_table(size));
    return likely(block != NULL) ? block : alloc_here(size, 1, false);
}

PUBLIC void *prairie_calloc(size_t count, size_t size)
{
    unsigned class_index;
    size_t bytes;
    void *block;

    if (unlikely(__builtin_mul_overflow(count, size, &bytes))) return refuse_memory();
    if (unlikely(bytes > SMALL_BYTES_MAX)) return alloc_here(bytes, 1, true);
    class_index = class_of_size(bytes);
    block = class_hit(class_index);
    if (unlikely(block == NULL)) return alloc_here(bytes, 1, true);
    return __builtin_memset(block, 0, class_bytes[class_index]);
}
