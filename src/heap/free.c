/* free.c - the door for blocks that come back.
 * SPDX-License-Identifier: MIT
 */
#include "doors.h"

PUBLIC void prairie_free(void *block)
{
    struct front *front = thread_front();
    bool stored;

    if (CHECKED) misuse_note_free(block);
    stored = front_put(front, class_map_at(block), block);
    if (unlikely(!stored)) free_missed(front, block); /* full, or NULL, large, foreign */
}

/* Of a class of which a sampled block lives every sized free comes here, but its magazine has room:
 * 13 instructions, without a frame (docs/decisions/0014). */
void free_sized_overflow(struct front *front, void *block)
{
    if (unlikely(!front_put(front, class_map_at(block), block))) free_missed(front, block);
}

/* The size names the class, so the map need not be read. A NULL goes into the magazine like a
 * block: whoever takes it drops it (M3). */
PUBLIC void prairie_free_sized(void *block, size_t size)
{
    struct front *front;

    if (CHECKED) misuse_check_size(block, size);
    if (CHECKED || unlikely(size > TABLE_BYTES_MAX)) {
        prairie_free(block);
        return;
    }
    front = thread_front();
    if (unlikely(!front_put(front, offset_of_sized_free[size], block)))
        free_sized_overflow(front, block);
}

PUBLIC void prairie_free_aligned_sized(void *block, size_t align, size_t size)
{
    (void)align;
    (void)size;
    prairie_free(block);
}
