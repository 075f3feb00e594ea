/* fake_model.h - what the fake kernel knows about each page of each reservation.
 *
 * A reservation has one byte a page in memory of its own, which the real kernel provides as it is
 * touched, so that a reservation of a TiB costs nothing. Included by fake_memory.c only, which
 * calls everything here under the fake's mutex. errno is kept.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_TEST_KERNEL_FAKE_MODEL_H
#define PRAIRIE_TEST_KERNEL_FAKE_MODEL_H

#include "fake_inside.h"

#include <sys/auxv.h>
#include <sys/mman.h>

enum { RESERVATIONS_MAX = 256 };

enum fake_page { FAKE_PAGE_RESERVED, FAKE_PAGE_COMMITTED, FAKE_PAGE_PURGED };

struct reservation {
    char *base; /* NULL: released */
    size_t bytes;
    char *raw; /* the mapping, with what alignment cost */
    size_t raw_bytes;
    uint8_t *page;     /* enum fake_page of each */
    size_t page_bytes; /* reserved, when it was made */
};

static struct {
    size_t page_bytes;
    size_t limit_bytes, other_bytes, reserve_bytes_max, commit_bytes_max;
    struct reservation reservation[RESERVATIONS_MAX];
    size_t reservation_count, reserved_bytes, committed_bytes;
    void *next_place; /* of the next reservation, if nothing is there */
} model = {
    .page_bytes = 4096,
    .limit_bytes = SIZE_MAX,
    .reserve_bytes_max = SIZE_MAX,
    .commit_bytes_max = SIZE_MAX,
};

static size_t pages_of(size_t bytes) { return bytes / model.page_bytes; }

static void *map_anonymous(void *place, size_t bytes, int protection)
{
    int saved_errno = errno;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *at = mmap(place, bytes, protection, flags, -1, 0);

    errno = saved_errno;
    return at == MAP_FAILED ? NULL : at;
}

/* The real kernel's pages may be larger than the fake one's. */
static bool is_part_of_real_page(const char *base, size_t bytes)
{
    size_t real_page = (size_t)getauxval(AT_PAGESZ);

    return !is_aligned((uintptr_t)base, real_page) || !is_aligned(bytes, real_page);
}

static void give_zeros(char *base, size_t bytes)
{
    if (is_part_of_real_page(base, bytes)) memset(base, 0, bytes);
    else if (madvise(base, bytes, MADV_DONTNEED) != 0) broken("the real kernel refused a purge");
}

static struct reservation *slot_for_reservation(void)
{
    for (size_t i = 0; i < model.reservation_count; i++)
        if (model.reservation[i].base == NULL) return &model.reservation[i];
    if (model.reservation_count == RESERVATIONS_MAX) broken("too many reservations");
    return &model.reservation[model.reservation_count++];
}

static bool fits_address_space(size_t bytes)
{
    size_t used = model.reserved_bytes + model.other_bytes;

    if (bytes > model.reserve_bytes_max) return false;
    return model.limit_bytes == SIZE_MAX
        || (used <= model.limit_bytes && bytes <= model.limit_bytes - used);
}

/* base == NULL: it does not fit. */
static struct os_range model_reserve(size_t bytes, size_t align_bytes, int protection)
{
    struct os_range none = { NULL, 0 };
    struct reservation *made;
    size_t align = max_size(align_bytes, model.page_bytes), raw_bytes;

    if (!is_power_of_two(align_bytes)) broken("a reservation with an odd alignment");
    if (bytes == 0 || bytes % model.page_bytes != 0) broken("a reservation of no whole pages");
    if (__builtin_add_overflow(bytes, align, &raw_bytes) || !fits_address_space(bytes)) return none;
    made = slot_for_reservation();
    made->raw_bytes = raw_bytes;
    made->raw = map_anonymous(model.next_place, raw_bytes, protection);
    model.next_place = NULL;
    if (made->raw == NULL) return none;
    made->base = (char *)round_up((uintptr_t)made->raw, align);
    made->bytes = bytes;
    made->page_bytes = bytes;
    made->page = map_anonymous(NULL, pages_of(bytes), PROT_READ | PROT_WRITE);
    if (made->page == NULL) broken("no memory for the model");
    model.reserved_bytes += bytes;
    return (struct os_range){ made->base, bytes };
}

/* The states of the pages of a range, which must lie in one reservation. */
static uint8_t *states_of(struct os_range range, const char *complaint)
{
    for (size_t i = 0; i < model.reservation_count; i++) {
        const struct reservation *made = &model.reservation[i];
        size_t offset = (uintptr_t)range.base - (uintptr_t)made->base;

        if (made->base == NULL || offset >= made->bytes) continue;
        if (range.bytes == 0 || range.bytes > made->bytes - offset) break;
        if (offset % model.page_bytes != 0 || range.bytes % model.page_bytes != 0)
            broken("a range that is not whole pages");
        return made->page + pages_of(offset);
    }
    broken(complaint);
}

static size_t count_in_state(const uint8_t *states, size_t pages, enum fake_page state)
{
    size_t count = 0;

    for (size_t i = 0; i < pages; i++) count += states[i] == state;
    return count;
}

/* The whole of a reservation, or its end. */
static void model_release(struct os_range range)
{
    uint8_t *states = states_of(range, "a release outside every reservation");
    size_t pages = pages_of(range.bytes);

    for (size_t i = 0; i < model.reservation_count; i++) {
        struct reservation *made = &model.reservation[i];

        if (made->base == NULL || made->base + made->bytes != range.base + range.bytes) continue;
        model.reserved_bytes -= range.bytes;
        model.committed_bytes -=
            (pages - count_in_state(states, pages, FAKE_PAGE_RESERVED)) * model.page_bytes;
        if (made->base != range.base) {
            made->bytes -= range.bytes;
            if (is_part_of_real_page(range.base, range.bytes)) return;
            if (mmap(range.base, range.bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0)
                == MAP_FAILED)
                broken("the real kernel refused a close");
            return;
        }
        (void)munmap(made->raw, made->raw_bytes);
        (void)munmap(made->page, pages_of(made->page_bytes));
        *made = (struct reservation){ 0 };
        return;
    }
    broken("a release of a part of a reservation");
}

/* The front of a reservation goes, as if it had been moved away. */
static void model_cut_front(struct os_range range)
{
    for (size_t i = 0; i < model.reservation_count; i++) {
        struct reservation *made = &model.reservation[i];

        if (made->base != range.base) continue;
        model.reserved_bytes -= range.bytes;
        model.committed_bytes -= range.bytes;
        made->base += range.bytes;
        made->bytes -= range.bytes;
        made->page += pages_of(range.bytes);
        made->page_bytes -= range.bytes;
        return;
    }
    broken("a move back from where no reservation begins");
}

/* False: more than may be committed. */
static bool model_commit(struct os_range range)
{
    uint8_t *states = states_of(range, "a commit outside every reservation");
    size_t pages = pages_of(range.bytes);
    size_t added = count_in_state(states, pages, FAKE_PAGE_RESERVED) * model.page_bytes;
    int saved_errno = errno;

    if (added > model.commit_bytes_max || model.committed_bytes > model.commit_bytes_max - added)
        return false;
    if (mprotect(range.base, range.bytes, PROT_READ | PROT_WRITE) != 0) {
        errno = saved_errno;
        return false;
    }
    for (size_t i = 0; i < pages; i++)
        if (states[i] == FAKE_PAGE_RESERVED) states[i] = FAKE_PAGE_COMMITTED;
    model.committed_bytes += added;
    return true;
}

/* Fresh; False: it is gone again. */
static bool model_commit_or_release(struct os_range range)
{
    if (model_commit(range)) return true;
    model_release(range);
    return false;
}

static void model_close(struct os_range range)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;

    if (is_part_of_real_page(range.base, range.bytes)) memset(range.base, 0, range.bytes);
    else if (mmap(range.base, range.bytes, PROT_NONE, flags, -1, 0) == MAP_FAILED)
        broken("the real kernel refused a close");
    memset(states_of(range, "a close outside every reservation"), FAKE_PAGE_RESERVED,
           pages_of(range.bytes));
    model.committed_bytes -= range.bytes;
}

/* By moving pages where the real kernel can, so that untouched ones cost nothing. What is left is
 * mapped anew, because qemu's user emulation takes it for unmapped. */
static void model_move(struct os_range from, struct os_range to)
{
    int flags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, saved_errno = errno;

    if (is_part_of_real_page(from.base, from.bytes) || is_part_of_real_page(to.base, to.bytes)
        || mremap(from.base, from.bytes, to.bytes, flags, to.base) == MAP_FAILED) {
        errno = saved_errno;
        memcpy(to.base, from.base, from.bytes);
        give_zeros(from.base, from.bytes);
        return;
    }
    if (mmap(from.base, from.bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0)
        != from.base)
        broken("the real kernel took memory away");
}

/* Asking for the impossible is wrong in every mood: this comes before any planned failure. */
static uint8_t *committed_states(struct os_range range, const char *outside, const char *missing)
{
    uint8_t *states = states_of(range, outside);

    if (count_in_state(states, pages_of(range.bytes), FAKE_PAGE_RESERVED) != 0) broken(missing);
    return states;
}

#endif
