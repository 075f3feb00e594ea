/* copies.c - memcpy and its kin, which end the process before they leave a block of the heap.
 *
 * Not part of the unity file: only the library that is loaded for this (libprairie_copies.so) is
 * linked with it, so that no other process pays for it. It takes no lock and no memory, and may be
 * called in signal handlers, before the heap has started, and before this library is relocated: a
 * function of the C library whose address is not known yet is none, and bytes are then moved here.
 *
 * What the C library does in place of it: its names that fortified programs call (__memcpy_chk and
 * its kin) lead to the same code, and the loader has their addresses. So those names are the
 * program's and not ours: what they are given is checked by the compiler's bounds only. A C
 * library that has no such names, as musl, has none of it: bytes are moved here, which is slower.
 *
 * What prairie itself copies comes to the three at the end, by the linker's --wrap. What the C
 * library copies inside of itself never comes here.
 * SPDX-License-Identifier: MIT
 */
#include "../base/fatal.h"
#include "../heap/marks.h"

/* The declarations of string.h know too much: what they promise is what is to be checked here. */
#define C_NAME(name) __asm__(name) __attribute__((weak))
extern void *c_copy(void *to, const void *from, size_t bytes, size_t room) C_NAME("__memcpy_chk");
extern void *c_move(void *to, const void *from, size_t bytes, size_t room) C_NAME("__memmove_chk");
extern void *c_fill(void *to, int value, size_t bytes, size_t room) C_NAME("__memset_chk");
extern size_t c_length(const char *text) C_NAME("strlen");
extern size_t c_length_up_to(const char *text, size_t most) C_NAME("strnlen");

/* ---- without the C library ---- */

/* The compiler must not see memmove and memset in these. */
#define NO_CALLS(byte) __asm__ volatile("" : "+r"(byte))

static NOINLINE void *own_move(void *to, const void *from, size_t bytes)
{
    char *target = to;
    const char *source = from;

    if ((uintptr_t)target - (uintptr_t)source >= bytes) {
        for (size_t i = 0; i < bytes; i++) {
            char byte = source[i];
            NO_CALLS(byte);
            target[i] = byte;
        }
        return to;
    }
    for (size_t i = bytes; i > 0; i--) {
        char byte = source[i - 1];
        NO_CALLS(byte);
        target[i - 1] = byte;
    }
    return to;
}

static NOINLINE void *own_fill(void *to, int value, size_t bytes)
{
    char *target = to;

    for (size_t i = 0; i < bytes; i++) {
        char byte = (char)value;
        NO_CALLS(byte);
        target[i] = byte;
    }
    return to;
}

INLINE void *copy(void *to, const void *from, size_t bytes)
{
    return likely(c_copy != NULL) ? c_copy(to, from, bytes, SIZE_MAX) : own_move(to, from, bytes);
}
INLINE void *move(void *to, const void *from, size_t bytes)
{
    return likely(c_move != NULL) ? c_move(to, from, bytes, SIZE_MAX) : own_move(to, from, bytes);
}
INLINE void *fill(void *to, int value, size_t bytes)
{
    return likely(c_fill != NULL) ? c_fill(to, value, bytes, SIZE_MAX) : own_fill(to, value, bytes);
}

/* ---- where blocks end ---- */

enum use { INTO, FROM };

NORETURN static COLD void tell_end(enum use use, const void *block)
{
    fatal_address(
        use == INTO ? "copy past the end of a block" : "copy from past the end of a block", block);
}

NORETURN static COLD void tell_freed(enum use use, const void *block)
{
    fatal_address(use == INTO ? "copy into a freed block" : "copy from a freed block", block);
}

/* A block of a slab has so many bytes for the program: hardened ones those that were asked for.
 * What lies behind the last block of a slab is nobody's. */
static void check_in_slab(enum use use, const char *at, size_t bytes, const struct page *record)
{
    const struct slab *slab = slab_record(record->slab);
    const struct slab_shape *shape = &slab_shape[slab->class_index];
    size_t class_size = shape->block_bytes, size = class_size;
    uintptr_t offset = (uintptr_t)at - (uintptr_t)slab->base;
    const char *block = slab->base;

    if (unlikely(offset >= shape->span_bytes)) tell_end(use, at);
    block += slab_quotient_index(slab_quotient(shape, offset)) * class_size;
    if (likely((slab->hidden & SLAB_HARDENED) != 0)) {
        uint64_t mark = mark_read(block, class_size);

        if (unlikely(mark == 0)) tell_freed(use, block);
        if (unlikely(!is_mark(block, mark))) fatal_address("write past the end of a block", block);
        size -= HARDENED_MARK_BYTES + slack_of(mark);
    }
    offset = (uintptr_t)(at - block);
    if (unlikely(offset > size) || unlikely(bytes > size - offset)) tell_end(use, block);
}

/* The page where a run's record says that it ends, of those that the bytes touch and the one behind
 * them; 0: it ends later. The first and the last page of a run alone are no PAGE_INSIDE. */
static uint32_t last_page(uint32_t page, uint32_t touched_last)
{
    const struct page *record = page_record(page);

    if (is_block_state(record->state)) return page + record->run_pages - 1;
    while (page <= touched_last + 1 && page_record(page)->state == PAGE_INSIDE) page++;
    return page <= touched_last + 1 ? page : 0;
}

/* Whole pages. What is neither a slab nor a large block is free, or lies between two uses: there
 * nothing is known, but of blocks that wait in a quarantine or a cache. */
static void check_large(enum use use, const char *at, size_t bytes, uint32_t page)
{
    size_t open_end = 1 + space.region[0].open_pages;
    /* Perhaps a page more than it is, but no sum that wraps for the length of a negative number. */
    size_t touched = page + 1 + ((bytes - 1) >> space.page_shift);
    uint32_t touched_last = (uint32_t)min_size(touched, open_end - 1), last, first;
    const struct page *record;
    const char *run;
    size_t size;

    last = last_page(page, touched_last);
    if (last == 0 || last >= open_end || page_record(last)->run_pages > last) return;
    first = last - (page_record(last)->run_pages - 1);
    record = page_record(first);
    if (first > page || !is_large_state(record->state)
        || record->run_pages != page_record(last)->run_pages)
        return;
    run = page_address(first);
    if (page_is_cached(record)) tell_freed(use, run);
    size = (size_t)record->run_pages << space.page_shift;
    if (page_is_held_hardened(record)) size -= page_bytes() + page_record(last)->bin.next;
    if ((size_t)(at - run) > size || bytes > size - (size_t)(at - run))
        tell_end(use, large_begin(first));
}

static NOINLINE void check_in_heap(enum use use, const char *at, size_t bytes, uint32_t page)
{
    const struct page *record = page_record(page);

    if (likely(record->class_at != 0)) check_in_slab(use, at, bytes, record);
    else check_large(use, at, bytes, page);
}

/* Most of what is copied lies elsewhere. Under a narrow limit of address space there are several
 * regions, of which the first is looked at. */
INLINE void check_bytes(enum use use, const void *at, size_t bytes)
{
    uint32_t page = page_in_first(at);

    if (page != 0 && likely(bytes != 0)) check_in_heap(use, at, bytes, page);
}

INLINE void check_copy(const void *to, const void *from, size_t bytes)
{
    check_bytes(INTO, to, bytes);
    check_bytes(FROM, from, bytes);
}

/* ---- bytes ---- */

PUBLIC void *memcpy(void *to, const void *from, size_t bytes);
PUBLIC void *memmove(void *to, const void *from, size_t bytes);
PUBLIC void *memset(void *to, int value, size_t bytes);
PUBLIC void *mempcpy(void *to, const void *from, size_t bytes);
PUBLIC void *__mempcpy(void *to, const void *from, size_t bytes);
PUBLIC void bcopy(const void *from, void *to, size_t bytes);
PUBLIC void bzero(void *to, size_t bytes);

void *memcpy(void *to, const void *from, size_t bytes)
{
    check_copy(to, from, bytes);
    return copy(to, from, bytes);
}

void *memmove(void *to, const void *from, size_t bytes)
{
    check_copy(to, from, bytes);
    return move(to, from, bytes);
}

void *memset(void *to, int value, size_t bytes)
{
    check_bytes(INTO, to, bytes);
    return fill(to, value, bytes);
}

void *mempcpy(void *to, const void *from, size_t bytes)
{
    check_copy(to, from, bytes);
    return (char *)copy(to, from, bytes) + bytes;
}
void *__mempcpy(void *to, const void *from, size_t bytes) ALIAS_OF(mempcpy);

void bcopy(const void *from, void *to, size_t bytes)
{
    check_copy(to, from, bytes);
    (void)move(to, from, bytes);
}

void bzero(void *to, size_t bytes)
{
    check_bytes(INTO, to, bytes);
    (void)fill(to, 0, bytes);
}

/* ---- texts ---- */

PUBLIC char *strcpy(char *to, const char *from);
PUBLIC char *stpcpy(char *to, const char *from);
PUBLIC char *strncpy(char *to, const char *from, size_t room);
PUBLIC char *stpncpy(char *to, const char *from, size_t room);
PUBLIC char *strcat(char *to, const char *from);
PUBLIC char *strncat(char *to, const char *from, size_t most);

/* Up to the zero, or `most`. */
static size_t length_of(const char *text, size_t most)
{
    size_t length = 0;

    if (likely(c_length != NULL) && most == SIZE_MAX) return c_length(text);
    if (likely(c_length_up_to != NULL)) return c_length_up_to(text, most);
    while (length < most && text[length] != '\0') length++;
    return length;
}

/* With its zero. Returns where that is. */
INLINE char *copy_text(char *to, const char *from)
{
    size_t length = length_of(from, SIZE_MAX);

    check_copy(to, from, length + 1);
    (void)copy(to, from, length + 1);
    return to + length;
}

char *stpcpy(char *to, const char *from) { return copy_text(to, from); }

char *strcpy(char *to, const char *from)
{
    (void)copy_text(to, from);
    return to;
}

/* Zeros fill the rest of the room. Returns where the first is. */
INLINE char *copy_and_fill(char *to, const char *from, size_t room)
{
    size_t length = length_of(from, room);

    check_bytes(INTO, to, room);
    check_bytes(FROM, from, length + (length < room));
    (void)copy(to, from, length);
    (void)fill(to + length, 0, room - length);
    return to + length;
}

char *stpncpy(char *to, const char *from, size_t room) { return copy_and_fill(to, from, room); }

char *strncpy(char *to, const char *from, size_t room)
{
    (void)copy_and_fill(to, from, room);
    return to;
}

char *strncat(char *to, const char *from, size_t most)
{
    size_t before = length_of(to, SIZE_MAX), length = length_of(from, most);

    check_bytes(INTO, to, before + length + 1);
    check_bytes(FROM, from, length + (length < most));
    (void)copy(to + before, from, length);
    to[before + length] = '\0';
    return to;
}

char *strcat(char *to, const char *from) { return strncat(to, from, SIZE_MAX); }

/* ---- what prairie copies itself ---- */

PRIVATE void *__wrap_memcpy(void *to, const void *from, size_t bytes);
PRIVATE void *__wrap_memmove(void *to, const void *from, size_t bytes);
PRIVATE void *__wrap_memset(void *to, int value, size_t bytes);

void *__wrap_memcpy(void *to, const void *from, size_t bytes) { return copy(to, from, bytes); }
void *__wrap_memmove(void *to, const void *from, size_t bytes) { return move(to, from, bytes); }
void *__wrap_memset(void *to, int value, size_t bytes) { return fill(to, value, bytes); }
