/* aligned.c - the doors for blocks with an alignment of their own.
 * SPDX-License-Identifier: MIT
 */
#include "doors.h"

#include "../os/os.h"

#include <errno.h>

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
