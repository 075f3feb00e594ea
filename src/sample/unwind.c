/* unwind.c - the chain of frame pointers.
 * SPDX-License-Identifier: MIT
 */
#include "unwind.h"

#include "../base/units.h"
#include "../os/os.h"

/* Frames may lie this far apart; what is farther is no frame. */
#define FRAME_BYTES_MAX (1 * MiB)
/* Addresses of code lie in between. Signatures of pointer authentication are above. */
#define CODE_ADDRESS_MIN ((uintptr_t)4096)
#define ADDRESS_MASK ((uintptr_t)(((uint64_t)1 << 48) - 1))

/* Both words lie so on x86-64 and aarch64. */
struct frame {
    uintptr_t next, return_address;
};

/* A copy of a piece of stack: a call of the kernel for several frames. */
struct copy {
    uintptr_t base;
    size_t bytes;
    char stack[512];
};

static bool read_frame(struct copy *copy, uintptr_t at, struct frame *frame)
{
    if (at < copy->base || at - copy->base + sizeof *frame > copy->bytes) {
        /* Not beyond the page, which may be the stack's last. */
        size_t left = os_page_bytes() - at % os_page_bytes();
        size_t wanted = max_size(min_size(left, sizeof copy->stack), sizeof *frame);

        copy->base = at;
        copy->bytes = os_copy_checked(copy->stack, (const void *)at, wanted);
        if (copy->bytes < sizeof *frame) return false;
    }
    __builtin_memcpy(frame, copy->stack + (at - copy->base), sizeof *frame);
    return true;
}

unsigned unwind_from(const void *first, uintptr_t *return_address, unsigned most)
{
    struct copy copy = { .bytes = 0 };
    struct frame frame = *(const struct frame *)first;
    uintptr_t at = (uintptr_t)first;
    unsigned count = 0;

    while (count < most) {
        uintptr_t code = frame.return_address & ADDRESS_MASK;

        if (code < CODE_ADDRESS_MIN) break;
        return_address[count++] = code;
        /* Stacks grow downwards, so callers' frames lie above. */
        if (frame.next <= at || frame.next - at > FRAME_BYTES_MAX) break;
        if (!is_aligned(frame.next, sizeof(uintptr_t))) break;
        at = frame.next;
        if (!read_frame(&copy, at, &frame)) break;
    }
    return count;
}
