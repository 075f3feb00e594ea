/* aligned.c - the doors for blocks with an alignment of their own.
 * SPDX-License-Identifier: MIT
 */
#include "heap.h"

#include <errno.h>

/* `align` is a power of two. A class whose every block is aligned, else whole pages. */
static void *take_aligned(size_t align, size_t size)
{
    unsigned class_index = class_of_aligned(size, align);

    return class_index != 0 ? class_take(class_index) : large_lease(size, align, false);
}

/* The magazine was empty, as that of class 0 is. */
static NOINLINE void *aligned_refill(size_t align, size_t size)
{
    void *block;

    if (unlikely(!cache_is_plain(thread_cache()))) return take_unusual(size, align, false);
    block = take_aligned(align, size);
    return likely(block != NULL) ? block : refuse_memory();
}

/* As malloc_miss. */
static NOINLINE void *aligned_miss(size_t align, size_t size)
{
    void *block =
        sampled_front_take(thread_cache(), offset_of_class(class_of_aligned(size, align)));

    if (unlikely(block == NULL)) return aligned_refill(align, size);
    return CHECKED ? misuse_note_take(block) : block;
}

PUBLIC void *prairie_aligned_alloc(size_t align, size_t size)
{
    unsigned class_index;
    void *block;

    if (unlikely(!is_power_of_two(align))) {
        errno = EINVAL;
        return NULL;
    }
    class_index = class_of_aligned(size, align);
    block = magazine_take(&thread_cache()->magazine[class_index]);
    if (unlikely(block == NULL)) return aligned_miss(align, size);
    return CHECKED ? misuse_note_take(block) : block;
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
static NOINLINE int posix_refill(void **block, size_t align, size_t size)
{
    int saved_errno = errno;
    void *taken;

    taken = likely(cache_is_plain(thread_cache()))
              ? take_aligned(align, size)
              : take_unusual_for(FRAME_HERE(), size, align, false);
    errno = saved_errno;
    if (unlikely(taken == NULL)) {
        (void)refuse_memory(); /* may abort */
        errno = saved_errno;
        return ENOMEM;
    }
    FRAME_LASTS();
    *block = taken;
    return 0;
}

PUBLIC int prairie_posix_memalign(void **block, size_t align, size_t size)
{
    void *taken;

    if (unlikely(!is_power_of_two(align) || align < sizeof(void *))) return EINVAL;
    taken = class_hit(thread_cache(), class_of_aligned(size, align));
    if (unlikely(taken == NULL)) return posix_refill(block, align, size);
    *block = CHECKED ? misuse_note_take(taken) : taken;
    return 0;
}

PUBLIC void *prairie_valloc(size_t size) { return prairie_aligned_alloc(os_page_bytes(), size); }

PUBLIC void *prairie_pvalloc(size_t size)
{
    size_t page = os_page_bytes(), bytes;

    if (__builtin_add_overflow(size, page - 1, &bytes)) return refuse_memory();
    return prairie_aligned_alloc(page, max_size(round_down(bytes, page), page));
}
