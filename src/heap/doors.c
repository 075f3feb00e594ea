/* doors.c - the doors for new blocks, aligned or not, and for blocks that come back.
 * SPDX-License-Identifier: MIT
 */
#include "doors.h"
#include "hardened_held.h"
#include "large.h"

#include "../guard/guarded.h"
#include "../os/os.h"

#include <errno.h>

PUBLIC void *prairie_malloc(size_t size)
{
    struct front *front = thread_word();
    void *block;

    if (is_hardened_first(front)) return hardened_malloc(front, size, 1, false);
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

/* ---- with an alignment of their own ---- */

PUBLIC void *prairie_aligned_alloc(size_t align, size_t size)
{
    void *block;

    if (unlikely(!is_power_of_two(align))) {
        errno = EINVAL;
        return NULL;
    }
    block = class_hit(class_of_aligned(size, align));
    return likely(block != NULL) ? block : alloc_here(size, align, false);
}

PUBLIC void *prairie_memalign(size_t align, size_t size)
{
    if (unlikely(!is_power_of_two(align))) {
        if (align > (SIZE_MAX >> 1) + 1) {
            errno = EINVAL;
            return NULL;
        }
        align = align == 0 ? 1 : (size_t)1 << (highest_bit(align) + 1);
    }
    return prairie_aligned_alloc(align, size);
}

/* Says what is wrong by its value, and leaves errno alone. */
static NOINLINE int posix_miss(void **block, size_t align, size_t size)
{
    int saved_errno = errno;
    struct alloc_request request = alloc_request(size, align, false, FRAME_HERE());
    void *taken = alloc_missed(&request);

    errno = saved_errno;
    if (unlikely(taken == NULL)) return ENOMEM;
    *block = taken;
    return 0;
}

PUBLIC int prairie_posix_memalign(void **block, size_t align, size_t size)
{
    void *taken;

    if (unlikely(!is_power_of_two(align) || align < sizeof(void *))) return EINVAL;
    taken = class_hit(class_of_aligned(size, align));
    if (unlikely(taken == NULL)) return posix_miss(block, align, size);
    *block = taken;
    return 0;
}

PUBLIC void *prairie_valloc(size_t size) { return prairie_aligned_alloc(os_page_bytes(), size); }

PUBLIC void *prairie_pvalloc(size_t size)
{
    size_t page = os_page_bytes(), bytes;

    if (__builtin_add_overflow(size, page - 1, &bytes)) return refuse_memory();
    return prairie_aligned_alloc(page, max_size(round_down(bytes, page), page));
}

/* ---- giving back ---- */

PUBLIC void prairie_free(void *block)
{
    struct front *front = thread_word();
    bool stored;

    if (is_hardened_first(front) && likely(block != NULL)) {
        hardened_free(front, block);
        return;
    }
    if (CHECKED) misuse_note_free(block);
    stored = front_put(front, class_map_at(block), block);
    if (unlikely(!stored)) free_missed(front, block); /* full, or NULL, large, foreign */
}

/* A large block of the usual kind, and the size ends in its last page: the usual case, known
 * without asking what such a size has to spare. */
INLINE bool is_plain_of_size(const void *block, size_t size)
{
    uint32_t page = page_at(block);

    return is_plain_large(block, page) && large_plain_bytes(page) - size < page_bytes();
}

/* Not of the class that the size tells, as far as the class map knows. Jumped to, so that the usual
 * way has no frame. */
static NOINLINE void free_sized_unusual(void *block, size_t size)
{
    misuse_check_told_size(block, size, 1);
    prairie_free(block);
}

/* Beyond the table every size lies within a quarter of its class. */
void free_sized_beyond_table(void *block, size_t size)
{
    size_t bytes = bytes_of_offset(class_map_at(block));

    if (bytes == 0 && unlikely(!is_plain_of_size(block, size)))
        return free_sized_unusual(block, size);
    if (bytes != 0 && unlikely(!is_resized_from(size, bytes))) misuse_wrong_size(block);
    prairie_free(block);
}

/* Guarded blocks have been watched for long enough. */
static COLD void free_sized_unwatched(void *block, size_t size)
{
    guarded_end_watch();
    prairie_free_sized(block, size);
}

/* Of a class of which a sampled block lives, or a guarded one is watched, every sized free comes
 * here, but its magazine has room, without a frame (docs/decisions/0014, 0032). */
void free_sized_overflow(struct front *front, void *block, size_t size)
{
    uint8_t offset = class_map_at(block);
    uint32_t left;

    if (unlikely(offset % OFFSET_FOR_FREES != offset_of_size[size]))
        return free_sized_unusual(block, size);
    left = RELAXED_LOAD(sized_frees_left);
    if (unlikely(left != 0)) {
        RELAXED_STORE(sized_frees_left, left - 1);
        if (unlikely(left == 1)) return free_sized_unwatched(block, size);
    }
    if (likely(front_put(front, offset, block))) return;
    if (unlikely(offset == 0)) free_sized_unusual(block, size); /* only size 0 has none */
    else free_missed(front, block);
}

/* The size names the class, so the map need not be read. A NULL goes into the magazine like a
 * block: whoever takes it drops it (M3). */
PUBLIC void prairie_free_sized(void *block, size_t size)
{
    struct front *front;

    if (CHECKED) misuse_check_told(block, size, 1);
    if (unlikely(size > TABLE_BYTES_MAX)) {
        free_sized_beyond_table(block, size);
        return;
    }
    if (CHECKED) {
        prairie_free(block);
        return;
    }
    front = thread_word();
    if (unlikely(!front_put(front, offset_of_sized_free[size], block)))
        free_sized_overflow(front, block, size);
}

/* Jumped to, so that the usual way has no frame. */
static NOINLINE void free_aligned_unusual(struct front *front, void *block, size_t align,
                                          size_t size)
{
    hardened_expect_told(block, size, align);
    free_missed(front, block);
}

PUBLIC void prairie_free_aligned_sized(void *block, size_t align, size_t size)
{
    struct front *front = thread_word();

    if (CHECKED) misuse_check_told(block, size, align);
    if (CHECKED) misuse_note_free(block);
    if (unlikely(!front_put(front, class_map_at(block), block)))
        free_aligned_unusual(front, block, align, size);
}
