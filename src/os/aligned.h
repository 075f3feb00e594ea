/* aligned.h - aligned address space, where a part of a mapping can be given back.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_OS_ALIGNED_H
#define PRAIRIE_OS_ALIGNED_H

#include "os.h"

#include "../base/units.h"

/* As os_reserve, out of closed mappings that begin at any page. */
INLINE struct os_range reserve_aligned(struct os_range (*map_closed)(size_t bytes), size_t bytes,
                                       size_t align_bytes)
{
    size_t slack = align_bytes > os_page_bytes() ? align_bytes : 0;
    struct os_range raw;
    char *base, *end;

    if (bytes + slack < bytes) return (struct os_range){ NULL, 0 };
    raw = map_closed(bytes + slack);
    if (raw.base == NULL || slack == 0) return raw;
    base = (char *)round_up((uintptr_t)raw.base, align_bytes);
    end = base + bytes;
    os_release((struct os_range){ raw.base, (size_t)(base - raw.base) });
    os_release((struct os_range){ end, (size_t)(raw.base + raw.bytes - end) });
    return (struct os_range){ base, bytes };
}

#endif
